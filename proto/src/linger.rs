//! Looks again for a moment before it sleeps.
//!
//! Whoever passes a message on has, as a rule, the next one in a moment: the answer, or the next request. To fall asleep
//! and be woken for it costs more than all the work of passing it on, on a virtual machine several times as much
//! (ARCHITECTURE.md has the figures). So a thread that has just passed something on looks again for a moment, and sleeps
//! then. It does so only where messages did come that close together lately, and gives way to whoever wants its core.

use std::{cell::Cell, io, sync::Arc, thread, time::Duration};
use tokio::{
    runtime::{Builder, Runtime},
    sync::Notify,
    time::Instant,
};

/// How long a thread looks again: about as long as it would take to fall asleep and be woken.
const MOMENT: Duration = Duration::from_micros(100);

/// A thread looks again from so much luck on; a look in vain costs as much.
const ENOUGH: u8 = 4;

/// It has no more luck than this, so that it also stops.
const MOST: u8 = 32;

/// A core that comes back so late was wanted by somebody else.
const OTHERS: Duration = Duration::from_micros(5);

/// What a thread knows of what it passed on. It is told the time.
#[derive(Debug, Clone, Copy)]
struct Linger {
    /// When something was last passed on.
    last: Option<Instant>,
    /// It looks again because of that.
    looking: bool,
    /// How often messages came close together lately.
    luck: u8,
}

impl Linger {
    const NEW: Self = Self {
        last: None,
        looking: false,
        luck: 0,
    };

    fn passed_on(&mut self, now: Instant) {
        // Whoever sleeps is woken late.
        let is_close = |last| now.duration_since(last) < 2 * MOMENT;
        if self.last.is_some_and(is_close) {
            self.luck = MOST.min(self.luck + 1);
        }
        self.last = Some(now);
        self.looking = self.luck >= ENOUGH;
    }

    /// There is nothing to do: whether to look again rather than to sleep.
    fn looks_again(&mut self, now: Instant) -> bool {
        let is_over = |last| now.duration_since(last) >= MOMENT;
        if self.looking && self.last.is_none_or(is_over) {
            self.looking = false;
            self.luck = self.luck.saturating_sub(ENOUGH);
            // What comes now comes too late to be called close.
            self.last = None;
        }
        self.looking
    }

    /// Somebody else wanted the core: this look is the last until something is passed on again.
    fn gave_way(&mut self) {
        self.looking = false;
    }
}

thread_local! {
    static LINGER: Cell<Linger> = const { Cell::new(Linger::NEW) };
}

fn with<T>(act: impl FnOnce(&mut Linger) -> T) -> T {
    let mut linger = LINGER.get();
    let done = act(&mut linger);
    LINGER.set(linger);
    done
}

/// This thread has just passed a message on.
pub fn passed_on() {
    with(|linger| linger.passed_on(Instant::now()));
}

/// A runtime of one thread that looks again for a moment.
pub fn runtime() -> io::Result<Runtime> {
    let again = Arc::new(Notify::new());
    let look = Arc::clone(&again);
    let runtime = Builder::new_current_thread()
        .enable_all()
        .on_thread_park(move || {
            let now = Instant::now();
            if with(|linger| linger.looks_again(now)) {
                thread::yield_now();
                if now.elapsed() > OTHERS {
                    with(Linger::gave_way);
                }
                // A runtime that has a task to run looks for what has come, and does not sleep.
                look.notify_one();
            }
        })
        .build()?;
    runtime.spawn(async move {
        loop {
            again.notified().await;
        }
    });
    Ok(runtime)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    const SHORT: Duration = Duration::from_micros(1);

    /// One that has passed many messages on, the last one at the time that is returned.
    fn lucky() -> (Linger, Instant) {
        let mut linger = Linger::NEW;
        let mut now = Instant::now();
        for _ in 0..100 {
            now += SHORT;
            linger.passed_on(now);
        }
        (linger, now)
    }

    #[test]
    fn messages_far_apart_are_no_reason_to_look() {
        let mut linger = Linger::NEW;
        let mut now = Instant::now();
        for _ in 0..100 {
            linger.passed_on(now);
            assert!(!linger.looks_again(now + SHORT));
            now += 2 * MOMENT;
        }
    }

    #[test]
    fn some_messages_close_together_are() {
        let mut linger = Linger::NEW;
        let start = Instant::now();
        let looks = (0..8).map(|n| {
            linger.passed_on(start + n * SHORT);
            linger.looks_again(start + n * SHORT)
        });
        let first = looks.take_while(|looks| !looks).count();
        assert_eq!(first, usize::from(ENOUGH));
    }

    #[test]
    fn it_looks_for_a_moment_and_no_longer() {
        let (mut linger, now) = lucky();
        assert!(linger.looks_again(now));
        assert!(linger.looks_again(now + MOMENT - SHORT));
        assert!(!linger.looks_again(now + MOMENT));
        assert!(!linger.looks_again(now + MOMENT));
        linger.passed_on(now + MOMENT);
        assert!(linger.looks_again(now + MOMENT));
    }

    #[test]
    fn whoever_looks_in_vain_time_and_again_stops() {
        let (mut linger, mut now) = lucky();
        let mut looked = 0;
        loop {
            now += 10 * MOMENT;
            linger.passed_on(now);
            if !linger.looks_again(now + SHORT) {
                break;
            }
            assert!(!linger.looks_again(now + MOMENT));
            looked += 1;
        }
        assert_eq!(looked, MOST / ENOUGH);
    }

    /// The worst that can come: what is always just too late to be worth a look.
    #[test]
    fn what_is_always_a_little_late_is_mostly_slept_through() {
        let (mut linger, mut now) = lucky();
        let mut looked = 0;
        for _ in 0..1000 {
            now += MOMENT + SHORT;
            looked += u32::from(linger.looks_again(now - 2 * SHORT));
            linger.looks_again(now - SHORT);
            linger.passed_on(now);
        }
        assert!(looked < 250, "{looked}");
    }

    #[test]
    fn whoever_gave_way_sleeps_until_there_is_more() {
        let (mut linger, now) = lucky();
        linger.gave_way();
        assert!(!linger.looks_again(now));
        linger.passed_on(now + SHORT);
        assert!(linger.looks_again(now + SHORT));
        assert_eq!(linger.luck, MOST);
    }

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
            let mut stream = tokio::net::TcpStream::connect(at).await.unwrap();
            for n in 0..=255 {
                stream.write_all(&[n]).await.unwrap();
                passed_on();
                assert_eq!(stream.read_u8().await.unwrap(), n);
            }
            (0..ENOUGH).for_each(|_| passed_on());
            let late = tokio::time::timeout(Duration::from_millis(5), stream.read_u8());
            assert!(late.await.is_err());
            assert!(!with(|linger| linger.looking));
        });
        echo.join().unwrap();
    }
}
