//! A connection, watched for what comes and not for room to write.
//!
//! A socket that is watched for both wakes its owner each time the other side has read something: once more for each
//! message, and for nothing. So it is watched for room only while there is none.

use rustix::net::{SendAncillaryBuffer, SendFlags, Shutdown};
use std::{
    io::{self, IoSlice},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, Interest, ReadBuf},
    net::{UnixStream, unix::pipe},
};

/// Whoever writes to a connection that was closed is told, and not ended.
#[cfg(not(target_vendor = "apple"))]
const QUIET: SendFlags = SendFlags::NOSIGNAL;
#[cfg(target_vendor = "apple")]
const QUIET: SendFlags = SendFlags::empty();

/// How long it is waited for a descriptor.
const LATER: Duration = Duration::from_millis(20);

/// A connection, on either side.
#[derive(Debug)]
pub struct Stream {
    /// It is a socket: nothing else of tokio's is watched for reading alone.
    socket: pipe::Receiver,
    /// The same socket while the other side is slow to read.
    full: Option<UnixStream>,
}

impl Stream {
    /// A socket that does not block.
    pub(super) fn new(socket: OwnedFd) -> io::Result<Self> {
        Ok(Self {
            socket: pipe::Receiver::from_owned_fd_unchecked(socket)?,
            full: None,
        })
    }

    fn poll_send(
        &mut self,
        context: &mut Context<'_>,
        send: impl Fn(BorrowedFd<'_>) -> rustix::io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            let sent = match &self.full {
                None => send(self.socket.as_fd()).map_err(io::Error::from),
                Some(full) => {
                    ready!(full.poll_write_ready(context))?;
                    full.try_io(Interest::WRITABLE, || Ok(send(full.as_fd())?))
                }
            };
            match sent {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.full.is_none() {
                        match self.socket.as_fd().try_clone_to_owned() {
                            Ok(same) => self.full = Some(UnixStream::from_std(same.into())?),
                            // Out of descriptors, as a rule: it passes.
                            Err(_) => return wake_later(context),
                        }
                    }
                }
                sent => {
                    self.full = None;
                    return Poll::Ready(sent);
                }
            }
        }
    }
}

/// Comes back after a while.
fn wake_later<T>(context: &Context<'_>) -> Poll<T> {
    let waker = context.waker().clone();
    tokio::spawn(async move {
        tokio::time::sleep(LATER).await;
        waker.wake();
    });
    Poll::Pending
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(context, into)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_send(context, |to| rustix::net::send(to, bytes, QUIET))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_send(context, |to| {
            let mut nothing = SendAncillaryBuffer::default();
            rustix::net::sendmsg(to, slices, &mut nothing, QUIET)
        })
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let closed = rustix::net::shutdown(&self.socket, Shutdown::Write);
        Poll::Ready(closed.map_err(io::Error::from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream as Socket;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    fn pair() -> [Stream; 2] {
        let (one, other) = Socket::pair().unwrap();
        [one, other].map(|socket| {
            socket.set_nonblocking(true).unwrap();
            Stream::new(socket.into()).unwrap()
        })
    }

    #[tokio::test]
    async fn what_does_not_fit_waits_for_room_and_nothing_is_lost() {
        let [mut one, mut other] = pair();
        let sent: Vec<u8> = (0..3_000_000u32).map(|n| (n % 251) as u8).collect();
        let copy = sent.clone();
        let writer = tokio::spawn(async move {
            for chunk in copy.chunks(700_001) {
                one.write_all(chunk).await.unwrap();
            }
            // All was read: nothing more has to be waited for.
            one.shutdown().await.unwrap();
            one
        });
        let mut read = Vec::new();
        other.read_to_end(&mut read).await.unwrap();
        assert!(read == sent);
        let mut one = writer.await.unwrap();
        assert!(one.full.is_none());
        // The other direction is still open.
        let slices = [IoSlice::new(b"still "), IoSlice::new(b"here")];
        assert_eq!(other.write_vectored(&slices).await.unwrap(), 10);
        drop(other);
        let mut rest = String::new();
        one.read_to_string(&mut rest).await.unwrap();
        assert_eq!(rest, "still here");
        let gone = one.write_all(b"anybody?").await.unwrap_err();
        assert_eq!(gone.kind(), io::ErrorKind::BrokenPipe);
    }
}
