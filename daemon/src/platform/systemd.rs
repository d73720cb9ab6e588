//! Tells systemd how we are, if it is there to hear it.

use super::manager::Notice;
use std::{io, os::fd::OwnedFd, time::Duration};

/// Tells systemd. Without systemd nothing happens.
pub fn tell(notice: Notice<'_>) {
    use sd_notify::NotifyState;
    let told = match notice {
        Notice::Ready => sd_notify::notify(&[NotifyState::Ready]),
        Notice::Reloading => match NotifyState::monotonic_usec_now() {
            Ok(now) => sd_notify::notify(&[NotifyState::Reloading, now]),
            Err(error) => Err(error),
        },
        Notice::Stopping => sd_notify::notify(&[NotifyState::Stopping]),
        Notice::Alive => sd_notify::notify(&[NotifyState::Watchdog]),
        Notice::Status(text) => sd_notify::notify(&[NotifyState::Status(text)]),
    };
    if let Err(error) = told {
        tracing::debug!(%error, ?notice, "cannot tell systemd");
    }
}

/// Whether systemd has started us, and wants to hear of us.
pub fn is_there() -> bool {
    std::env::var_os("NOTIFY_SOCKET").is_some()
}

/// The socket that systemd has made for us, if it has.
#[expect(unsafe_code, reason = "a number becomes an owner")]
pub fn socket() -> io::Result<Option<OwnedFd>> {
    use rustix::io::{FdFlags, fcntl_setfd};
    use std::os::fd::FromRawFd as _;
    let mut sockets = sd_notify::listen_fds()?;
    let Some(socket) = sockets.next() else {
        return Ok(None);
    };
    if sockets.next().is_some() {
        return Err(io::Error::other("systemd passed on more than one socket"));
    }
    // SAFETY: systemd opened it for this process, and nobody else here looks for it.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    // Ours alone: no server is to inherit it.
    fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
    Ok(Some(socket))
}

/// How often systemd wants to hear that we live, if it does.
pub fn watchdog() -> Option<Duration> {
    sd_notify::watchdog_enabled()
}
