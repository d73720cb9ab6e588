//! Files of log lines, rotated and bounded.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

/// How large a file may grow before the next one is begun.
const MAX_FILE: u64 = 1024 * 1024;

/// How many older ones are kept.
const OLDER: u32 = 2;

/// Adds whole lines to a file. It is opened each time, so that nobody misses that it was moved away.
pub fn append(path: &Path, text: &[u8]) -> io::Result<()> {
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
    if file.metadata()?.len() + text.len() as u64 > MAX_FILE {
        drop(file);
        rotate(path)?;
        file = open()?;
    }
    file.write_all(text)
}

/// `a.log` becomes `a.log.1`, that becomes `a.log.2`, and the last one goes.
fn rotate(path: &Path) -> io::Result<()> {
    let numbered = |n: u32| match n {
        0 => path.to_owned(),
        n => {
            let mut name = path.as_os_str().to_owned();
            name.push(format!(".{n}"));
            PathBuf::from(name)
        }
    };
    for n in (0..OLDER).rev() {
        match fs::rename(numbered(n), numbered(n + 1)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_rotated_and_the_oldest_goes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        let half = vec![b'x'; MAX_FILE as usize * 2 / 3];
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
            assert!(fs::metadata(dir.path().join(name)).unwrap().len() <= MAX_FILE);
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
