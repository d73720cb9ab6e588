//! A Unix socket in a private directory.

mod stream;

pub use stream::Stream;

use super::{AcceptError, BindError, EndpointError, Peer, lock::Lock};
use interprocess::{
    local_socket::{
        GenericFilePath, ListenerOptions, Name, ToFsName as _,
        tokio::{Listener as SocketListener, Stream as Socket},
        traits::{
            StreamCommon as _,
            tokio::{Listener as _, Stream as _},
        },
    },
    os::unix::{
        local_socket::ListenerOptionsExt as _, uds_local_socket::tokio::Listener as UdsListener,
    },
};
use rustix::process::geteuid;
use std::{
    ffi::OsString,
    fs::{self, DirBuilder},
    io,
    os::{
        fd::OwnedFd,
        unix::{
            ffi::OsStringExt as _,
            fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _},
            net::UnixStream,
        },
    },
    path::{Path, PathBuf, absolute as absolute_path},
    time::Duration,
};

/// What fits into `sockaddr_un`, less the closing zero.
const MAX_PATH: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

pub(super) fn absolute(path: PathBuf) -> PathBuf {
    absolute_path(&path).unwrap_or(path)
}

pub(super) fn check(path: &Path) -> Result<(), EndpointError> {
    if path.as_os_str().len() > MAX_PATH {
        return Err(EndpointError::PathTooLong {
            path: path.to_owned(),
            max: MAX_PATH,
        });
    }
    Ok(())
}

/// The user's runtime directory, else the user's state folder.
pub(super) fn default_path(
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<PathBuf, EndpointError> {
    let folder = |name: &str| {
        variable(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let base = folder("XDG_RUNTIME_DIR")
        // A cron job or `su` has no such variable, but its user may well have the directory.
        .or_else(login_runtime_dir)
        .or_else(|| folder("XDG_STATE_HOME"))
        .or_else(|| folder("HOME").map(|home| home.join(".local/state")))
        .ok_or(EndpointError::NoHome)?;
    let own = base.join("nexus").join("nexusd.sock");
    if own.exists() {
        return Ok(own);
    }
    // A host where the system runs it for this user.
    let user = variable("USER").or_else(|| variable("LOGNAME"));
    let system = user.and_then(|user| system_socket(&user.into_string().ok()?));
    Ok(system.unwrap_or(own))
}

/// The socket that the system's own manager has made for this user, if it has.
fn system_socket(user: &str) -> Option<PathBuf> {
    let is_plain = !user.is_empty() && !user.contains(['/', '.']);
    let path = is_plain.then(|| PathBuf::from(format!("/run/nexus-{user}/nexusd.sock")))?;
    let meta = fs::symlink_metadata(&path).ok()?;
    (meta.file_type().is_socket() && meta.uid() == geteuid().as_raw()).then_some(path)
}

fn login_runtime_dir() -> Option<PathBuf> {
    let uid = geteuid().as_raw();
    let dir = PathBuf::from(format!("/run/user/{uid}"));
    let meta = fs::symlink_metadata(&dir).ok()?;
    (meta.is_dir() && meta.uid() == uid).then_some(dir)
}

fn name(path: &Path) -> io::Result<Name<'_>> {
    path.to_fs_name::<GenericFilePath>()
}

pub(super) async fn connect(path: &Path) -> io::Result<Stream> {
    let socket = Socket::connect(name(path)?).await?;
    check_server(&socket)?;
    own(socket)
}

/// Takes it from the crate that made it.
fn own(socket: Socket) -> io::Result<Stream> {
    let Socket::UdSocket(socket) = socket;
    Stream::new(socket.try_into()?)
}

/// A socket that somebody else serves would be told this user's secrets.
fn check_server(socket: &Socket) -> io::Result<()> {
    let (uid, mine) = (socket.peer_creds()?.euid(), geteuid().as_raw());
    // Where the system's own manager has made the socket, it is root's; root needs no trick.
    if uid == Some(mine) || uid == Some(0) {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        match uid {
            Some(uid) => format!("the socket is served by another user (uid {uid})"),
            None => "cannot tell which user serves the socket".to_owned(),
        },
    ))
}

/// The daemon's end of the endpoint. The socket is gone when it is dropped.
#[derive(Debug)]
pub struct Listener {
    socket: SocketListener,
    path: PathBuf,
    /// The socket's file, if it is ours to remove.
    inode: Option<(u64, u64)>,
    // Dropped last: the lock is held until the socket is gone.
    lock: Option<Lock>,
}

impl Listener {
    pub(super) fn bind(path: &Path) -> Result<Self, BindError> {
        let dir = path.parent().unwrap_or(Path::new("/"));
        private_directory(dir)?;
        let lock = Lock::take(&lock_path(path))?;
        let (socket, inode) = listen(path)?;
        Ok(Self {
            socket,
            path: path.to_owned(),
            inode: Some(inode),
            lock: Some(lock),
        })
    }

    /// Takes over a socket that somebody else has made, keeps, and gives to one daemon at a time. Its
    /// file is not ours to remove. Returns where it is, too.
    pub(super) fn adopt(socket: OwnedFd) -> Result<(Self, PathBuf), BindError> {
        let failed = |source| BindError::Io {
            attempt: "take over",
            path: "the socket that was passed on".into(),
            source,
        };
        let address = rustix::net::getsockname(&socket).map_err(|e| failed(e.into()))?;
        let address = rustix::net::SocketAddrUnix::try_from(address);
        let path = address.ok().and_then(|address| {
            let path = address.path()?.to_bytes().to_owned();
            Some(PathBuf::from(OsString::from_vec(path)))
        });
        let path = path.ok_or_else(|| failed(io::Error::other("it has no path")))?;
        // A daemon that was started by hand holds it. Where we may not make one, nobody else can.
        let lock = match Lock::take(&lock_path(&path)) {
            Err(BindError::Io { source, .. })
                if source.kind() == io::ErrorKind::PermissionDenied =>
            {
                None
            }
            lock => Some(lock?),
        };
        let socket = UdsListener::try_from(socket).map_err(failed)?;
        let listener = Self {
            socket: socket.into(),
            path: path.clone(),
            inode: None,
            lock,
        };
        Ok((listener, path))
    }

    /// The next connection. One from another user is an error, and is closed.
    pub async fn accept(&mut self) -> Result<(Stream, Peer), AcceptError> {
        loop {
            let socket = tokio::select! {
                socket = self.socket.accept() => socket?,
                () = tokio::time::sleep(LOOK) => {
                    self.restore()?;
                    continue;
                }
            };
            let creds = socket.peer_creds()?;
            let pid = creds.pid().map(i32::cast_unsigned);
            if creds.euid() == Some(geteuid().as_raw()) {
                return Ok((own(socket)?, Peer { pid }));
            }
            let known = |n: Option<u32>| n.map_or("?".to_owned(), |n| n.to_string());
            return Err(AcceptError::Foreign {
                who: format!("uid {}, pid {}", known(creds.euid()), known(pid)),
            });
        }
    }

    /// Makes the socket anew if its file is gone, as cleaners of temporary folders do. What another
    /// daemon has put in its place is left alone.
    fn restore(&mut self) -> Result<(), AcceptError> {
        let missing = matches!(inode(&self.path), Err(e) if e.kind() == io::ErrorKind::NotFound);
        if !missing {
            return Ok(());
        }
        let anew = || {
            private_directory(self.path.parent().unwrap_or(Path::new("/")))?;
            let lock_path = lock_path(&self.path);
            let is_there = self
                .lock
                .as_ref()
                .is_some_and(|lock| lock.is_at(&lock_path));
            let lock = (!is_there).then(|| Lock::take(&lock_path));
            Ok((lock.transpose()?, listen(&self.path)?))
        };
        let (lock, (socket, inode)) = anew().map_err(AcceptError::Lost)?;
        self.socket = socket;
        self.inode = Some(inode);
        if lock.is_some() {
            self.lock = lock;
        }
        Err(AcceptError::Restored)
    }
}

/// How often a listener that nobody calls looks whether its socket is still there.
const LOOK: Duration = Duration::from_secs(2);

fn lock_path(path: &Path) -> PathBuf {
    let mut lock = path.as_os_str().to_owned();
    lock.push(".lock");
    lock.into()
}

/// Makes the socket. Only for who holds the lock.
fn listen(path: &Path) -> Result<(SocketListener, (u64, u64)), BindError> {
    let failed = |attempt| {
        move |source| BindError::Io {
            attempt,
            path: path.to_owned(),
            source,
        }
    };
    match fs::symlink_metadata(path) {
        // Somebody without the lock listens: systemd, which starts its own daemon for whoever calls.
        Ok(meta) if meta.file_type().is_socket() && UnixStream::connect(path).is_ok() => {
            return Err(BindError::AlreadyRunning { pid: None });
        }
        // Whoever served it is gone: we have the lock.
        Ok(meta) if meta.file_type().is_socket() => {
            fs::remove_file(path).map_err(failed("remove the stale socket"))?;
        }
        Ok(_) => {
            return Err(BindError::NotASocket {
                path: path.to_owned(),
            });
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed("look at")(error)),
    }
    let socket = name(path)
        .and_then(|name| {
            // The mode is set before the socket has a name: it is never open to others.
            ListenerOptions::new()
                .name(name)
                .mode(0o600)
                .reclaim_name(false)
                .create_tokio()
        })
        .map_err(failed("listen on"))?;
    let inode = inode(path).map_err(failed("look at"))?;
    Ok((socket, inode))
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Whatever has taken its place meanwhile is not ours to remove.
        if self.inode.is_some() && inode(&self.path).ok() == self.inode {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn inode(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|meta| (meta.dev(), meta.ino()))
}

/// Makes the directory if there is none, and refuses one that others could meddle with.
fn private_directory(dir: &Path) -> Result<(), BindError> {
    let failed = |attempt| {
        move |source| BindError::Io {
            attempt,
            path: dir.to_owned(),
            source,
        }
    };
    let mut builder = DirBuilder::new();
    builder
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(failed("make the directory"))?;
    let meta = fs::symlink_metadata(dir).map_err(failed("look at"))?;
    let unsafe_because = |problem: String, hint: String| {
        Err(BindError::UnsafeDirectory {
            dir: dir.to_owned(),
            problem,
            hint,
        })
    };
    let elsewhere = "choose another place with --socket or NEXUS_SOCKET".to_owned();
    if meta.is_symlink() {
        return unsafe_because("is a symbolic link".into(), elsewhere);
    }
    if meta.uid() != geteuid().as_raw() {
        return unsafe_because(
            format!("belongs to another user (uid {})", meta.uid()),
            elsewhere,
        );
    }
    let mode = meta.mode() & 0o7777;
    if mode & 0o022 != 0 {
        // A directory with the sticky bit is meant for everybody: it must stay so.
        let hint = if mode & 0o1000 == 0 {
            format!("chmod 700 {}", dir.display())
        } else {
            elsewhere
        };
        return unsafe_because(format!("is writable by others (mode {mode:04o})"), hint);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        collections::HashMap,
        os::unix::fs::{PermissionsExt as _, symlink},
    };

    fn path_with(variables: &[(&str, &str)]) -> Option<PathBuf> {
        let variables: HashMap<_, _> = variables.iter().copied().collect();
        default_path(|name| variables.get(name).map(OsString::from)).ok()
    }

    #[test]
    fn the_runtime_directory_comes_first() {
        assert_eq!(
            path_with(&[("XDG_RUNTIME_DIR", "/r"), ("XDG_STATE_HOME", "/s")]),
            Some("/r/nexus/nexusd.sock".into())
        );
    }

    #[test]
    fn without_a_runtime_directory_the_state_folder_is_used() {
        if login_runtime_dir().is_some() {
            return; // this user's runtime directory would be found
        }
        assert_eq!(
            path_with(&[("XDG_STATE_HOME", "/s"), ("HOME", "/h")]),
            Some("/s/nexus/nexusd.sock".into())
        );
        assert_eq!(
            path_with(&[("XDG_RUNTIME_DIR", "relative"), ("HOME", "/h")]),
            Some("/h/.local/state/nexus/nexusd.sock".into())
        );
        assert_eq!(path_with(&[]), None);
    }

    #[test]
    fn a_path_that_does_not_fit_is_refused() {
        let long = PathBuf::from(format!("/{}", "x".repeat(MAX_PATH)));
        let error = check(&long).unwrap_err().to_string();
        assert!(
            error.contains("too long") && error.contains("107"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn the_socket_and_its_directory_are_private_and_go_away() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("nexus/nexusd.sock");
        let listener = Listener::bind(&path).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        assert_eq!(mode(&path), 0o600);
        drop(listener);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn a_second_daemon_learns_who_runs() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("nexus/nexusd.sock");
        let _first = Listener::bind(&path).unwrap();
        let error = Listener::bind(&path).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("already running, pid {}", std::process::id())
        );
    }

    #[tokio::test]
    async fn a_stale_socket_is_replaced_and_anything_else_is_left_alone() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("nexus/nexusd.sock");
        drop(Listener::bind(&path).unwrap());
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        drop(Listener::bind(&path).unwrap());
        fs::write(&path, "precious").unwrap();
        let error = Listener::bind(&path).unwrap_err();
        assert!(matches!(error, BindError::NotASocket { .. }), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }

    #[tokio::test]
    async fn a_directory_that_others_can_write_is_refused_with_what_to_do() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("nexus");
        fs::create_dir(&dir).unwrap();
        for (mode, what_to_do) in [
            (0o777, "chmod 700 "),
            (0o1777, "choose another place "),
            (0o770, "chmod 700 "),
        ] {
            fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
            match Listener::bind(&dir.join("nexusd.sock")).unwrap_err() {
                BindError::UnsafeDirectory { problem, hint, .. } => {
                    assert!(problem.contains("writable by others"), "{problem}");
                    assert!(hint.starts_with(what_to_do), "{hint}");
                }
                other => panic!("{other}"),
            }
        }
    }

    #[tokio::test]
    async fn a_symlinked_directory_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let (real, link) = (home.path().join("real"), home.path().join("link"));
        fs::create_dir(&real).unwrap();
        symlink(&real, &link).unwrap();
        let error = Listener::bind(&link.join("nexusd.sock")).unwrap_err();
        assert!(error.to_string().contains("symbolic link"), "{error}");
    }

    #[tokio::test]
    async fn a_directory_of_another_user_is_refused() {
        // Only root can give a directory away; anybody else can use one of root's.
        let home = tempfile::tempdir().unwrap();
        let dir = if geteuid().is_root() {
            let dir = home.path().join("theirs");
            fs::create_dir(&dir).unwrap();
            std::os::unix::fs::chown(&dir, Some(65534), None).unwrap();
            dir
        } else {
            PathBuf::from("/")
        };
        let error = Listener::bind(&dir.join("nexusd.sock")).unwrap_err();
        assert!(error.to_string().contains("another user"), "{error}");
    }
}
