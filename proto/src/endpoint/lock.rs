//! The lock that decides which daemon has the endpoint, and says who it is.

use super::BindError;
use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{Read as _, Seek as _, Write as _},
    path::Path,
    thread,
    time::Duration,
};

/// Held for the life of the daemon; the system lets go of it however the daemon ends. The file
/// stays: a lock on a file that others may unlink is no lock.
#[derive(Debug)]
pub(super) struct Lock(#[cfg_attr(windows, expect(dead_code, reason = "held, not read"))] File);

impl Lock {
    /// Whether others who look for the lock find this one.
    #[cfg(unix)]
    pub(super) fn is_at(&self, path: &Path) -> bool {
        is_still_there(&self.0, path)
    }

    pub(super) fn take(path: &Path) -> Result<Self, BindError> {
        let failed = |attempt| {
            let path = path.to_owned();
            move |source| BindError::Io {
                attempt,
                path,
                source,
            }
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt as _;
            let no_follow = rustix::fs::OFlags::NOFOLLOW.bits();
            options.mode(0o600).custom_flags(no_follow.cast_signed());
        }
        loop {
            let mut file = options.open(path).map_err(failed("open"))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(BindError::AlreadyRunning {
                        pid: read_pid(&mut file),
                    });
                }
                Err(TryLockError::Error(source)) => return Err(failed("lock")(source)),
            }
            if is_still_there(&file, path) {
                write_pid(&mut file).map_err(failed("write"))?;
                return Ok(Self(file));
            }
        }
    }
}

/// Whether the file that was locked is the one that others will find.
#[cfg(unix)]
fn is_still_there(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let (Ok(ours), Ok(there)) = (file.metadata(), path.symlink_metadata()) else {
        return false;
    };
    (ours.dev(), ours.ino()) == (there.dev(), there.ino())
}

/// A file that is open cannot be removed here.
#[cfg(not(unix))]
fn is_still_there(_file: &File, _path: &Path) -> bool {
    true
}

fn write_pid(file: &mut File) -> std::io::Result<()> {
    // One write of one length, so that a reader never sees a part of it.
    let text = format!("{:<19}\n", std::process::id());
    file.write_all(text.as_bytes())
}

/// Who has the lock. The winner writes its name just after it has won: a loser that comes in
/// between waits a moment for it.
fn read_pid(file: &mut File) -> Option<u32> {
    for _ in 0..50 {
        let mut text = String::new();
        file.rewind().ok()?;
        // On Windows the locked file cannot be read; the pid is then not known.
        file.read_to_string(&mut text).ok()?;
        let alive =
            |pid: &u32| !cfg!(target_os = "linux") || Path::new(&format!("/proc/{pid}")).exists();
        if let Some(pid) = text.trim().parse().ok().filter(alive) {
            return Some(pid);
        }
        thread::sleep(Duration::from_millis(2));
    }
    None
}
