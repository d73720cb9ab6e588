//! Standard input and output, read and written without a thread between where that can be.

use std::io;
use tokio::io::{AsyncRead, AsyncWrite};

/// Both.
pub(super) struct Stdio {
    pub(super) input: Box<dyn AsyncRead + Unpin>,
    pub(super) output: Box<dyn AsyncWrite + Unpin>,
}

impl Stdio {
    pub(super) fn open() -> io::Result<Self> {
        #[cfg(unix)]
        {
            Ok(Self {
                input: unix::input()?,
                output: unix::output()?,
            })
        }
        #[cfg(not(unix))]
        {
            Ok(Self {
                input: Box::new(tokio::io::stdin()),
                output: Box::new(tokio::io::stdout()),
            })
        }
    }
}

#[cfg(unix)]
mod unix {
    use std::{
        io,
        os::{
            fd::{AsFd as _, OwnedFd},
            unix::net::UnixStream as StdStream,
        },
    };
    use tokio::{
        io::{AsyncRead, AsyncWrite},
        net::{UnixStream, unix::pipe},
    };

    /// A pipe or a socket is what clients give, as a rule.
    fn stream(fd: OwnedFd) -> io::Result<UnixStream> {
        let stream = StdStream::from(fd);
        // Only a socket has an address.
        stream.local_addr()?;
        stream.set_nonblocking(true)?;
        UnixStream::from_std(stream)
    }

    pub(super) fn input() -> io::Result<Box<dyn AsyncRead + Unpin>> {
        let copy = || io::stdin().as_fd().try_clone_to_owned();
        if let Ok(pipe) = pipe::Receiver::from_owned_fd(copy()?) {
            return Ok(Box::new(pipe));
        }
        match stream(copy()?) {
            Ok(socket) => Ok(Box::new(socket)),
            Err(_) => Ok(Box::new(tokio::io::stdin())),
        }
    }

    pub(super) fn output() -> io::Result<Box<dyn AsyncWrite + Unpin>> {
        let copy = || io::stdout().as_fd().try_clone_to_owned();
        if let Ok(pipe) = pipe::Sender::from_owned_fd(copy()?) {
            return Ok(Box::new(pipe));
        }
        match stream(copy()?) {
            Ok(socket) => Ok(Box::new(socket)),
            Err(_) => Ok(Box::new(tokio::io::stdout())),
        }
    }
}

/// Done when nobody can read what we write any more. The end of our input alone does not say so.
pub(super) async fn client_gone() {
    #[cfg(unix)]
    {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        use std::time::Duration;
        let stdout = io::stdout();
        loop {
            let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
            let now = Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            let _ = poll(&mut fds, Some(&now));
            if fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    }
    #[cfg(not(unix))]
    std::future::pending::<()>().await;
}
