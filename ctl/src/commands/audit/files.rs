//! The files of the audit, the oldest first, and what is added to them.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

/// More older files than the daemon keeps.
const OLDER: u32 = 16;

/// A file is told from the one that takes its place by how its first line begins: no two lines do so alike.
const HEAD: usize = 48;

/// Reads lines in the order in which they were written, also while files are moved away.
#[derive(Debug)]
pub(super) struct Files {
    path: PathBuf,
    current: Option<Current>,
}

#[derive(Debug)]
struct Current {
    file: File,
    head: Vec<u8>,
    /// A line that is on its way.
    rest: Vec<u8>,
}

impl Files {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            current: None,
        }
    }

    /// What has come since the last time; at first, everything.
    pub(super) fn read(&mut self, mut tell: impl FnMut(&str)) -> io::Result<()> {
        let Some(current) = &mut self.current else {
            return self.go_on(OLDER, &mut tell);
        };
        current.read(&mut tell)?;
        let is_same = match head(&self.path)? {
            Some(head) => head == current.head,
            // It was just moved away, and the next line begins another.
            None => true,
        };
        if is_same {
            return Ok(());
        }
        // What was added to it before it was moved.
        current.read(&mut tell)?;
        let head_of = |n: &u32| head(&numbered(&self.path, *n)).ok().flatten();
        let moved = (1..=OLDER).find(|n| head_of(n).as_ref() == Some(&current.head));
        self.go_on(moved.map_or(OLDER, |n| n - 1), &mut tell)
    }

    /// Reads this one of the older files, and those after it.
    fn go_on(&mut self, first: u32, tell: &mut impl FnMut(&str)) -> io::Result<()> {
        for n in (0..=first).rev() {
            let Some(mut next) = Current::open(&numbered(&self.path, n))? else {
                continue;
            };
            next.read(tell)?;
            self.current = Some(next);
        }
        Ok(())
    }
}

impl Current {
    fn open(path: &Path) -> io::Result<Option<Self>> {
        let Some(head) = head(path)? else {
            return Ok(None);
        };
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(0))?;
        Ok(Some(Self {
            file,
            head,
            rest: Vec::new(),
        }))
    }

    fn read(&mut self, tell: &mut impl FnMut(&str)) -> io::Result<()> {
        let mut part = vec![0; 64 * 1024];
        loop {
            let count = self.file.read(&mut part)?;
            if count == 0 {
                return Ok(());
            }
            self.rest.extend_from_slice(&part[..count]);
            let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else {
                continue;
            };
            let rest = self.rest.split_off(end + 1);
            String::from_utf8_lossy(&self.rest)
                .lines()
                .for_each(&mut *tell);
            self.rest = rest;
        }
    }
}

/// How a file begins, if there is one with a line.
fn head(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut head = Vec::new();
    file.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
    Ok((head.len() == HEAD).then_some(head))
}

fn numbered(path: &Path, n: u32) -> PathBuf {
    if n == 0 {
        return path.to_owned();
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{n}"));
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, io::Write as _};

    fn line(n: u32) -> String {
        format!("{{\"id\":\"run-{n:04}\",\"at\":\"2026-07-28T09:05:00.000Z\"}}")
    }

    fn add(path: &Path, lines: std::ops::Range<u32>) {
        let mut file = File::options()
            .append(true)
            .create(true)
            .open(path)
            .unwrap();
        for n in lines {
            writeln!(file, "{}", line(n)).unwrap();
        }
    }

    fn rotate(path: &Path) {
        for n in (0..7).rev() {
            let _ = fs::rename(numbered(path, n), numbered(path, n + 1));
        }
    }

    #[test]
    fn every_line_is_read_once_and_in_order_whatever_is_moved() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.jsonl");
        let mut files = Files::new(path.clone());
        let mut read = Vec::new();
        let mut look = |files: &mut Files| files.read(|line| read.push(line.to_owned())).unwrap();
        look(&mut files);
        add(&path, 0..3);
        rotate(&path);
        add(&path, 3..5);
        look(&mut files);
        look(&mut files);
        add(&path, 5..7);
        rotate(&path);
        look(&mut files);
        add(&path, 7..9);
        rotate(&path);
        add(&path, 9..12);
        rotate(&path);
        add(&path, 12..13);
        look(&mut files);
        // Half a line is none yet.
        let mut file = File::options().append(true).open(&path).unwrap();
        write!(file, "{}", &line(13)[..20]).unwrap();
        look(&mut files);
        writeln!(file, "{}", &line(13)[20..]).unwrap();
        look(&mut files);
        let all: Vec<_> = (0..14).map(line).collect();
        assert_eq!(read, all);
    }
}
