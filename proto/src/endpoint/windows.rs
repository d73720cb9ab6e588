//! A named pipe that only this user may open, and only from this machine.

pub use interprocess::local_socket::tokio::Stream;

use super::{AcceptError, BindError, EndpointError, Peer, lock::Lock};
use interprocess::{
    local_socket::{
        GenericFilePath, ListenerOptions, Name, ToFsName as _,
        tokio::Listener as PipeListener,
        traits::{StreamCommon as _, tokio::Listener as _},
    },
    os::windows::{
        local_socket::ListenerOptionsExt as _,
        named_pipe::local_socket::tokio::Stream as PipeStream,
        security_descriptor::SecurityDescriptor,
    },
};
use std::{
    env,
    ffi::OsString,
    fs::{self, OpenOptions},
    io,
    os::windows::{
        fs::OpenOptionsExt as _,
        io::{AsHandle as _, OwnedHandle},
    },
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::time::{sleep, timeout};
use windows_sys::Win32::{
    Foundation::ERROR_PIPE_BUSY,
    Storage::FileSystem::{FILE_FLAG_OVERLAPPED, SECURITY_IDENTIFICATION},
};

#[cfg(test)]
mod tests;
pub mod user;

const PIPES: &str = r"\\.\pipe\";

/// A plain name means a pipe of that name.
pub(super) fn absolute(path: PathBuf) -> PathBuf {
    let is_pipe = path.to_str().is_some_and(|path| path.starts_with(r"\\"));
    if is_pipe {
        path
    } else {
        let name = path.to_string_lossy().replace(['\\', '/', ':'], "-");
        PathBuf::from(format!("{PIPES}{name}"))
    }
}

pub(super) fn check(path: &Path) -> Result<(), EndpointError> {
    const MAX_PATH: usize = 256;
    if path.as_os_str().len() > MAX_PATH {
        return Err(EndpointError::PathTooLong {
            path: path.to_owned(),
            max: MAX_PATH,
        });
    }
    Ok(())
}

/// The pipe is named with the user's SID: two users never share one.
pub(super) fn default_path(
    _variable: impl Fn(&str) -> Option<OsString>,
) -> Result<PathBuf, EndpointError> {
    let sid = user::current_sid().map_err(EndpointError::NoUser)?;
    Ok(PathBuf::from(format!("{PIPES}nexusd-{sid}")))
}

fn name(path: &Path) -> io::Result<Name<'_>> {
    path.to_fs_name::<GenericFilePath>()
}

pub(super) async fn connect(path: &Path) -> io::Result<Stream> {
    // All instances are taken until the daemon has made the next one, which is soon.
    const BUSY: Duration = Duration::from_millis(5);
    const PATIENCE: Duration = Duration::from_secs(5);
    let open = async {
        loop {
            let opened = OpenOptions::new()
                .read(true)
                .write(true)
                .custom_flags(FILE_FLAG_OVERLAPPED)
                // The server may learn who we are; it may not act in our name.
                .security_qos_flags(SECURITY_IDENTIFICATION)
                .open(path);
            match opened {
                Err(error) if error.raw_os_error() == Some(ERROR_PIPE_BUSY.cast_signed()) => {
                    sleep(BUSY).await;
                }
                opened => return opened,
            }
        }
    };
    let file = timeout(PATIENCE, open).await??;
    let pipe = PipeStream::try_from(OwnedHandle::from(file));
    let pipe = pipe.map_err(|error| io::Error::other(error.to_string()))?;
    let stream = pipe.into();
    check_server(&stream)?;
    Ok(stream)
}

/// A pipe that somebody else serves would be told this user's secrets. Its owner says who made it, and
/// nobody can name an owner that he is not. Our service and the system itself are no strangers: only an
/// administrator can make them serve.
fn check_server(stream: &Stream) -> io::Result<()> {
    let Stream::NamedPipe(pipe) = stream;
    let owner = user::owner_of(pipe.as_handle())?;
    if owner == user::current_sid()? || [user::SERVICE, user::SYSTEM].contains(&&*owner) {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!("the pipe is served by another user ({owner})"),
    ))
}

/// The daemon's end of the endpoint.
#[derive(Debug)]
pub struct Listener {
    pipe: PipeListener,
    /// Who may come.
    sids: Vec<String>,
    _lock: Lock,
}

impl Listener {
    pub(super) fn bind(path: &Path) -> Result<Self, BindError> {
        Self::bind_for(path, None)
    }

    pub(super) fn bind_for(path: &Path, client: Option<&str>) -> Result<Self, BindError> {
        let failed = |attempt| {
            move |source| BindError::Io {
                attempt,
                path: path.to_owned(),
                source,
            }
        };
        let mut sids = vec![user::current_sid().map_err(failed("find the owner of"))?];
        sids.extend(client.map(str::to_owned));
        let lock_path = lock_path(path);
        if let Some(dir) = lock_path.parent() {
            fs::create_dir_all(dir).map_err(failed("make the folder for"))?;
        }
        let lock = Lock::take(&lock_path)?;
        // The first instance of its name, and none for other machines: both are what interprocess does
        // where nothing else is said.
        let pipe = private_descriptor(&sids)
            .and_then(|descriptor| {
                ListenerOptions::new()
                    .name(name(path)?)
                    .security_descriptor(descriptor)
                    .create_tokio()
            })
            .map_err(failed("listen on"))?;
        Ok(Self {
            pipe,
            sids,
            _lock: lock,
        })
    }

    /// The next connection. One from another user is an error, and is closed.
    pub async fn accept(&mut self) -> Result<(Stream, Peer), AcceptError> {
        let stream = self.pipe.accept().await?;
        let pid = stream.peer_creds()?.pid();
        let Stream::NamedPipe(pipe) = &stream;
        let foreign = |who: String| AcceptError::Foreign { who };
        let sid = user::sid_of_client(pipe.as_handle(), pid)
            .map_err(|error| foreign(format!("unknown: {error}")))?;
        if !self.sids.contains(&sid) {
            return Err(foreign(sid));
        }
        Ok((stream, Peer { pid }))
    }
}

/// Ours, with everything for those who may come, nothing for anybody else, nothing inherited.
fn private_descriptor(sids: &[String]) -> io::Result<SecurityDescriptor> {
    let allowed: String = sids.iter().map(|sid| format!("(A;;GA;;;{sid})")).collect();
    let text = format!("O:{}D:P{allowed}", sids[0]);
    let wide = widestring::U16CString::from_str(text).map_err(io::Error::other)?;
    SecurityDescriptor::deserialize(&wide)
}

fn lock_path(pipe: &Path) -> PathBuf {
    let base = env::var_os("LOCALAPPDATA").map_or_else(env::temp_dir, PathBuf::from);
    let name = pipe.to_string_lossy();
    let name = name.rsplit('\\').next().unwrap_or("nexusd");
    base.join("nexus").join(format!("{name}.lock"))
}
