//! Looks again for a moment before it sleeps.
//!
//! Whoever passes a message on has, as a rule, the next one in a moment: the answer, or the next request. To fall asleep
//! and be woken for it costs more than all the work of passing it on, on a virtual machine several times as much
//! (ARCHITECTURE.md has the figures). So a thread that has just passed something on looks again for a moment, and sleeps
//! then. It does so only where messages did come that close together lately, and gives way to whoever wants its core.
//!
//! It is here because both the daemon and `nexusctl mcp` pass messages on.

mod watch;

use std::{
    cell::Cell,
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    thread,
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    runtime::{Builder, Runtime},
    sync::Notify,
};
use watch::Watch;

#[expect(
    clippy::disallowed_types,
    reason = "a clock that a test has stopped would let it look for ever"
)]
type Instant = std::time::Instant;

/// A core that comes back so late was wanted by somebody else.
const A_TURN: Duration = Duration::from_micros(5);

/// Where a message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// To a server, or to whoever passes it on to one.
    Up,
    /// To a client, or to whoever passes it on to one.
    Down,
}

thread_local! {
    static WATCH: Cell<Watch> = const { Cell::new(Watch::NEW) };
}

fn with<T>(act: impl FnOnce(&mut Watch) -> T) -> T {
    let mut watch = WATCH.get();
    let done = act(&mut watch);
    WATCH.set(watch);
    done
}

/// This thread has just passed a message on.
pub fn passed_on(way: Way) {
    with(|watch| watch.passed_on(Instant::now(), way));
}

/// A runtime of one thread that looks again for a moment.
pub fn runtime() -> io::Result<Runtime> {
    let bell = Arc::new(Notify::new());
    let rings = Arc::clone(&bell);
    let runtime = Builder::new_current_thread()
        .enable_all()
        .on_thread_park(move || {
            if with(|watch| watch.looks_again(Instant::now)) {
                give_way();
                // A runtime that has a task to run looks for what has come, and does not sleep.
                rings.notify_one();
            }
        })
        .build()?;
    runtime.spawn(async move {
        loop {
            bell.notified().await;
        }
    });
    Ok(runtime)
}

/// Lets others have the core, if they want it.
fn give_way() {
    let before = Instant::now();
    thread::yield_now();
    let took = before.elapsed();
    if took > A_TURN {
        with(|watch| watch.gave_way(before + took, took));
    }
}

/// A stream to whose other end messages are passed on.
#[derive(Debug)]
pub struct Passing<S> {
    stream: S,
    way: Way,
}

impl<S> Passing<S> {
    /// What is written goes this way.
    pub fn new(way: Way, stream: S) -> Self {
        Self { stream, way }
    }

    fn noted(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(_)) = written {
            passed_on(self.way);
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Passing<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Passing<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.noted(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.noted(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpStream,
        time::timeout,
    };

    #[test]
    fn a_runtime_that_looks_again_hears_what_comes_and_keeps_time() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let echo = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut byte = [0];
            while stream.read_exact(&mut byte).is_ok() {
                stream.write_all(&byte).unwrap();
            }
        });
        runtime().unwrap().block_on(async {
            let stream = TcpStream::connect(at).await.unwrap();
            let mut stream = Passing::new(Way::Up, stream);
            for n in 0..=255 {
                stream.write_all(&[n]).await.unwrap();
                assert_eq!(stream.read_u8().await.unwrap(), n);
            }
            // Nobody answers this: a timer ends it.
            let now = Instant::now();
            let lucky = |watch: &mut Watch| {
                *watch = Watch::NEW;
                for _ in 0..=watch::ENOUGH {
                    watch.looks_again(|| now);
                    watch.passed_on(now, Way::Down);
                }
                watch.is_looking()
            };
            assert!(with(lucky));
            let late = timeout(Duration::from_millis(100), stream.read_u8());
            assert!(late.await.is_err());
            assert!(!with(|watch| watch.is_looking()));
        });
        echo.join().unwrap();
    }
}
