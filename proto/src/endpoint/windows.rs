//! A named pipe that only this user may open, and only from this machine.

use super::{AcceptError, BindError, EndpointError, Peer, Stream, lock::Lock};
use interprocess::{
    local_socket::{
        GenericFilePath, ListenerOptions, Name, ToFsName as _,
        tokio::Listener as PipeListener,
        traits::{StreamCommon as _, tokio::Listener as _},
    },
    os::windows::{local_socket::ListenerOptionsExt as _, security_descriptor::SecurityDescriptor},
};
use std::{
    env,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

mod user;

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

pub(super) fn name(path: &Path) -> io::Result<Name<'_>> {
    path.to_fs_name::<GenericFilePath>()
}

/// A pipe that somebody else serves would be told this user's secrets.
pub(super) fn check_server(stream: &Stream) -> io::Result<()> {
    let Stream::NamedPipe(pipe) = stream;
    let pid = pipe.inner().server_process_id()?;
    if user::sid_of_process(pid)? == user::current_sid()? {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!("the pipe is served by another user (pid {pid})"),
    ))
}

/// The daemon's end of the endpoint.
#[derive(Debug)]
pub struct Listener {
    pipe: PipeListener,
    sid: String,
    _lock: Lock,
}

impl Listener {
    pub(super) fn bind(path: &Path) -> Result<Self, BindError> {
        let failed = |attempt| {
            move |source| BindError::Io {
                attempt,
                path: path.to_owned(),
                source,
            }
        };
        let sid = user::current_sid().map_err(failed("find the owner of"))?;
        let lock_path = lock_path(path);
        if let Some(dir) = lock_path.parent() {
            fs::create_dir_all(dir).map_err(failed("make the folder for"))?;
        }
        let lock = Lock::take(&lock_path)?;
        let pipe = private_descriptor(&sid)
            .and_then(|descriptor| {
                ListenerOptions::new()
                    .name(name(path)?)
                    .security_descriptor(descriptor)
                    .create_tokio()
            })
            .map_err(failed("listen on"))?;
        Ok(Self {
            pipe,
            sid,
            _lock: lock,
        })
    }

    /// The next connection. One from another user is an error, and is closed.
    pub async fn accept(&mut self) -> Result<(Stream, Peer), AcceptError> {
        let stream = self.pipe.accept().await?;
        let pid = stream.peer_creds()?.pid();
        let sid = pid.map(user::sid_of_process).transpose()?;
        if sid.as_deref() != Some(&self.sid) {
            return Err(AcceptError::Foreign {
                who: sid.unwrap_or_else(|| "unknown".to_owned()),
            });
        }
        Ok((stream, Peer { pid }))
    }
}

/// Everything for the user, nothing for anybody else, nothing inherited.
fn private_descriptor(sid: &str) -> io::Result<SecurityDescriptor> {
    let text = format!("D:P(A;;GA;;;{sid})");
    let wide = widestring::U16CString::from_str(text).map_err(io::Error::other)?;
    SecurityDescriptor::deserialize(&wide)
}

fn lock_path(pipe: &Path) -> PathBuf {
    let base = env::var_os("LOCALAPPDATA").map_or_else(env::temp_dir, PathBuf::from);
    let name = pipe.to_string_lossy();
    let name = name.rsplit('\\').next().unwrap_or("nexusd");
    base.join("nexus").join(format!("{name}.lock"))
}
