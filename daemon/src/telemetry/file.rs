//! Files of log lines, rotated and bounded.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

/// How much is kept.
#[derive(Debug, Clone, Copy)]
pub struct Rotation {
    /// How large a file may grow before the next one is begun.
    pub max_file: u64,
    /// How many older ones are kept.
    pub older: u32,
}

/// For logs.
const LOGS: Rotation = Rotation {
    max_file: 1024 * 1024,
    older: 2,
};

/// Adds whole lines to a log. It is opened each time, so that nobody misses that it was moved away.
pub fn append(path: &Path, text: &[u8]) -> io::Result<()> {
    append_rotating(path, text, LOGS)
}

/// Adds whole lines to a file: all of them, or none if there is no room.
pub fn append_rotating(path: &Path, text: &[u8], rotation: Rotation) -> io::Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    let open = || {
        let mut options = fs::OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt as _;
            // A link in its place is somebody's trick.
            let no_link = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
            options
                .mode(0o600)
                .custom_flags(no_link.bits().cast_signed());
        }
        options.open(path)
    };
    let file = open().or_else(|error| match path.parent() {
        Some(folder) if error.kind() == io::ErrorKind::NotFound => {
            crate::platform::make_private(folder)?;
            open()
        }
        _ => Err(error),
    });
    let mut file = file?;
    let mut length = file.metadata()?.len();
    if length > 0 && length + text.len() as u64 > rotation.max_file {
        drop(file);
        rotation.rotate(path)?;
        file = open()?;
        length = file.metadata()?.len();
    }
    file.write_all(text).inspect_err(|_| {
        // Half a line is of no use to anybody. On Windows what appends may not cut.
        let whole = fs::OpenOptions::new().write(true).open(path);
        let _ = whole.and_then(|whole| whole.set_len(length));
    })
}

impl Rotation {
    /// The file, or an older one of it: `a.log.1` is the one before `a.log`.
    pub fn numbered(self, path: &Path, n: u32) -> PathBuf {
        if n == 0 {
            return path.to_owned();
        }
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{n}"));
        PathBuf::from(name)
    }

    /// `a.log` becomes `a.log.1`, that becomes `a.log.2`, and the last one goes.
    fn rotate(self, path: &Path) -> io::Result<()> {
        for n in (0..self.older).rev() {
            let (from, to) = (self.numbered(path, n), self.numbered(path, n + 1));
            match fs::rename(from, to) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_rotated_and_the_oldest_goes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        let half = vec![b'x'; LOGS.max_file as usize * 2 / 3];
        for _ in 0..10 {
            append(&path, &half).unwrap();
        }
        let mut names: Vec<_> = fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["a.log", "a.log.1", "a.log.2"]);
        for name in names {
            assert!(fs::metadata(dir.path().join(name)).unwrap().len() <= LOGS.max_file);
        }
    }

    #[test]
    fn a_folder_that_cannot_be_made_costs_nothing_but_the_log() {
        let dir = tempfile::tempdir().unwrap();
        let blocker = dir.path().join("file");
        fs::write(&blocker, "").unwrap();
        assert!(append(&blocker.join("logs/a.log"), b"x").is_err());
    }
}
