//! Where the daemon listens and how it is reached: one rule for both sides.
//!
//! The endpoint is private to one user. On Unix it is a socket (0600) in a directory of that
//! user's (0700), and each side checks the other's uid; on Windows it is a named pipe that only
//! that user may open. A lock beside it is taken before anything is touched, so that of several
//! daemons exactly one wins and the others know who did.

mod lock;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix as platform;
#[cfg(windows)]
use windows as platform;

use std::{
    env, fmt, io,
    path::{Path, PathBuf},
};

pub use platform::{Listener, Stream};
#[cfg(windows)]
pub use windows::user;

/// The variable that overrides the place of the endpoint.
pub const SOCKET_VARIABLE: &str = "NEXUS_SOCKET";

/// The place of the endpoint: the path of a socket, or the name of a pipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint(PathBuf);

/// Who is at the other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Its process, for the record only: numbers of processes are used again.
    pub pid: Option<u32>,
}

/// Why there is no endpoint to speak of.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// Nothing says where the user's files are.
    #[error("cannot tell where the socket belongs: neither XDG_RUNTIME_DIR nor HOME is set")]
    NoHome,
    /// Sockets have short names.
    #[error("the socket's path is too long: {} is {} bytes, the limit is {max}", .path.display(), .path.as_os_str().len())]
    PathTooLong {
        /// The path.
        path: PathBuf,
        /// How long it may be.
        max: usize,
    },
    /// The user's identity could not be read.
    #[error("cannot tell who the current user is")]
    NoUser(#[source] io::Error),
}

/// Why the daemon cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another daemon has the endpoint.
    #[error("already running{}", pid.map(|pid| format!(", pid {pid}")).unwrap_or_default())]
    AlreadyRunning {
        /// Its process, if it has told.
        pid: Option<u32>,
    },
    /// The directory is not safe to have a private socket in.
    #[error("the socket's directory {} {problem}", dir.display())]
    UnsafeDirectory {
        /// The directory.
        dir: PathBuf,
        /// What is wrong with it.
        problem: String,
        /// What to do about it.
        hint: String,
    },
    /// Something that is not a socket is in the way.
    #[error("{} exists and is not a socket", path.display())]
    NotASocket {
        /// Where.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot {attempt} {}", path.display())]
    Io {
        /// What was attempted.
        attempt: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// Why a connection was not taken.
#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    /// It came from another user.
    #[error("refused a connection from another user ({who})")]
    Foreign {
        /// Which user, and which process if that is known.
        who: String,
    },
    /// Nobody could have come: the socket's file had been removed. It was made anew.
    #[error("the socket had been removed, and was made anew")]
    Restored,
    /// The socket's file has been removed, and cannot be made anew.
    #[error("the socket has been removed, and cannot be made anew")]
    Lost(#[source] BindError),
    /// The system refused.
    #[error("cannot accept a connection")]
    Io(#[from] io::Error),
}

impl Endpoint {
    /// The place that was asked for, else `NEXUS_SOCKET`, else the user's own.
    pub fn resolve(asked: Option<&Path>) -> Result<Self, EndpointError> {
        let named = asked.map(Path::to_owned).or_else(|| {
            env::var_os(SOCKET_VARIABLE)
                .filter(|v| !v.is_empty())
                .map(PathBuf::from)
        });
        let path = match named {
            Some(path) => platform::absolute(path),
            None => platform::default_path(|name| env::var_os(name))?,
        };
        platform::check(&path)?;
        Ok(Self(path))
    }

    /// The path of the socket, or the name of the pipe.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Connects to the daemon, and makes sure that it is this user's.
    pub async fn connect(&self) -> io::Result<Stream> {
        platform::connect(&self.0).await
    }

    /// Takes over a socket that systemd has made and gives to one daemon at a time.
    #[cfg(unix)]
    pub fn adopt(socket: std::os::fd::OwnedFd) -> Result<(Self, Listener), BindError> {
        let (listener, path) = Listener::adopt(socket)?;
        Ok((Self(path), listener))
    }

    /// Takes the endpoint: exactly one daemon can.
    pub fn bind(&self) -> Result<Listener, BindError> {
        Listener::bind(&self.0)
    }

    /// Takes the endpoint for a service, which another user may use as well.
    #[cfg(windows)]
    pub fn bind_for(&self, client: &str) -> Result<Listener, BindError> {
        Listener::bind_for(&self.0, Some(client))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}
