//! Which files may be believed. They say which programs are run: nobody else may be able to write them, nor to
//! put others in their place.

use crate::{
    diagnosis::Diagnosis,
    source::{Layer, MAX_SIZE, Source},
};
use std::{
    fs, io,
    io::Read as _,
    path::{Path, PathBuf},
};

/// Why a file cannot be believed.
#[derive(Debug)]
pub struct Doubt {
    /// The file, or a folder around it.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: String,
    /// What to do about it.
    pub fix: String,
}

/// Reads a file that may be believed. `None` where there is none.
pub fn read(path: &Path, layer: Layer) -> Result<Option<Vec<u8>>, Box<Diagnosis>> {
    let about = || Source::new(path, layer, "");
    let unreadable = |error: &io::Error| {
        let diagnosis = Diagnosis::error(
            "config::unreadable",
            format!("cannot read {}", path.display()),
        )
        .in_file(&about())
        .note(error.to_string());
        Box::new(match error.kind() {
            io::ErrorKind::PermissionDenied => {
                diagnosis.fix(format!("ls -l {} says who may read it", path.display()))
            }
            io::ErrorKind::NotFound => diagnosis.fix("is the path right?"),
            _ => diagnosis,
        })
    };
    let doubtful = |doubt: Doubt| {
        Box::new(
            Diagnosis::error(
                "config::unsafe",
                format!("{} {}", doubt.path.display(), doubt.problem),
            )
            .in_file(&about())
            .note("this file says which programs are run: only you may be able to write it")
            .fix(doubt.fix),
        )
    };
    let (file, meta) = match open(path) {
        Ok(opened) => opened,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(unreadable(&error)),
    };
    check(path, &meta).map_err(doubtful)?;
    let mut bytes = Vec::new();
    let mut limited = file.take(MAX_SIZE as u64 + 1);
    limited
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(&error))?;
    Ok(Some(bytes))
}

/// Opens a file, once: what is checked is what is read. Anything that is none could keep us waiting for ever.
pub fn open(path: &Path) -> io::Result<(fs::File, fs::Metadata)> {
    let mut options = fs::OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        // A pipe that nobody writes to is opened all the same.
        let at_once = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, at_once);
    }
    #[cfg(windows)]
    if fs::metadata(path)?.is_dir() {
        return Err(io::Error::other("it is not a file"));
    }
    let file = options.open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    Ok((file, meta))
}

/// What is in a file, whoever it belongs to, unless that is more than anybody has.
pub fn read_within(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = open(path)?.0;
    file.take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        return Err(io::Error::other("it is too large"));
    }
    Ok(bytes)
}

/// Whether nobody else could have written this file, or put it there.
pub fn check(path: &Path, meta: &fs::Metadata) -> Result<(), Doubt> {
    platform::check(path, meta)
}

#[cfg(unix)]
mod platform {
    use super::Doubt;
    use std::{
        collections::BTreeSet,
        fs::{self, Metadata},
        os::unix::fs::MetadataExt as _,
        path::{Path, PathBuf},
    };

    const STICKY: u32 = 0o1000;

    pub(super) fn check(path: &Path, meta: &Metadata) -> Result<(), Doubt> {
        one(path, meta, false)?;
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        // The way that was written, and the way that it leads: a link is as good as the folder it is in.
        let real = absolute.canonicalize().unwrap_or_else(|_| absolute.clone());
        let folders: BTreeSet<PathBuf> = absolute
            .ancestors()
            .skip(1)
            .chain(real.ancestors().skip(1))
            .map(Path::to_owned)
            .collect();
        for folder in folders {
            if let Ok(meta) = fs::metadata(&folder) {
                one(&folder, &meta, true)?;
            }
        }
        Ok(())
    }

    fn one(path: &Path, meta: &Metadata, is_folder: bool) -> Result<(), Doubt> {
        let refused = |problem: String, fix: String| {
            Err(Doubt {
                path: path.to_owned(),
                problem,
                fix,
            })
        };
        let me = rustix::process::geteuid().as_raw();
        if meta.uid() != me && meta.uid() != 0 {
            return refused(
                format!("belongs to another user (uid {})", meta.uid()),
                "use a file of your own, in a folder of your own".to_owned(),
            );
        }
        let mode = meta.mode() & 0o7777;
        // Where the sticky bit is set, as in /tmp, nobody can replace what is another's.
        if mode & 0o022 != 0 && !(is_folder && mode & STICKY != 0) {
            return refused(
                format!("is writable by others (mode {mode:04o})"),
                format!("chmod go-w {}", path.display()),
            );
        }
        Ok(())
    }
}

#[cfg(not(unix))]
mod platform {
    use super::Doubt;
    use std::{fs::Metadata, path::Path};

    /// What others may write in a user's profile on Windows, an administrator has allowed.
    pub(super) fn check(_path: &Path, _meta: &Metadata) -> Result<(), Doubt> {
        Ok(())
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn chmod(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_file_that_others_can_write_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mcp.json");
        assert_eq!(read(&path, Layer::User).unwrap(), None);
        fs::write(&path, "{}").unwrap();
        chmod(&path, 0o644);
        assert_eq!(read(&path, Layer::User).unwrap().unwrap(), b"{}");
        chmod(&path, 0o666);
        let error = read(&path, Layer::User).unwrap_err();
        assert_eq!(error.code, "config::unsafe");
        assert!(error.fixes[0].starts_with("chmod go-w "), "{error}");
    }

    #[test]
    fn so_is_one_in_a_folder_that_others_can_write() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("a/b");
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("mcp.json");
        fs::write(&path, "{}").unwrap();
        chmod(&path, 0o600);
        chmod(&dir.path().join("a"), 0o777);
        let error = read(&path, Layer::User).unwrap_err();
        assert!(error.message.contains("/a is writable"), "{error}");
        // As /tmp is.
        chmod(&dir.path().join("a"), 0o1777);
        assert!(read(&path, Layer::User).is_ok());
    }

    #[test]
    fn a_link_is_as_good_as_both_ends() {
        let dir = tempfile::tempdir().unwrap();
        let open = dir.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::write(open.join("real.json"), "{}").unwrap();
        chmod(&open.join("real.json"), 0o600);
        chmod(&open, 0o777);
        let link = dir.path().join("mcp.json");
        std::os::unix::fs::symlink(open.join("real.json"), &link).unwrap();
        assert!(read(&link, Layer::User).is_err());
        chmod(&open, 0o755);
        assert!(read(&link, Layer::User).is_ok());
    }

    #[test]
    fn what_is_no_file_keeps_nobody_waiting() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read(dir.path(), Layer::User).is_err());
        assert!(read(Path::new("/dev/zero"), Layer::User).is_err());
        let pipe = dir.path().join("pipe");
        let mode = rustix::fs::Mode::RWXU;
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, mode).unwrap();
        assert!(read(&pipe, Layer::User).is_err());
    }
}
