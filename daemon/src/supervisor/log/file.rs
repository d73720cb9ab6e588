//! Logs of servers on disk, rotated and bounded, so that what a server said is still there after the
//! daemon has gone. One thread writes for all of them: a disk that is slow or full holds nobody up.

use super::LogLine;
use std::{
    collections::HashMap,
    fmt::Write as _,
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};
use tokio::time::Instant;
use tracing::warn;
use tracing_subscriber::fmt::{
    format::Writer,
    time::{FormatTime as _, SystemTime as Timestamp},
};

/// How large a file may grow before the next one is begun.
const MAX_FILE: u64 = 1024 * 1024;

/// How many older ones are kept.
const OLDER: u32 = 2;

/// How much of one server is written in a second, and how much of it at once.
const RATE: u64 = 256 * 1024;
const BURST: u64 = 1024 * 1024;

/// How many lines may wait for the disk.
const QUEUE: usize = 256;

/// The folder that the logs are in, and the thread that writes them.
#[derive(Debug, Clone)]
pub struct LogFolder {
    folder: Arc<Path>,
    lines: SyncSender<(Arc<Path>, Arc<LogLine>)>,
}

/// The log of one server.
#[derive(Debug)]
pub struct LogFile {
    path: Arc<Path>,
    folder: LogFolder,
    lost: AtomicU64,
}

impl LogFolder {
    /// In this folder, which is made when there is something to write.
    pub fn new(folder: &Path) -> Self {
        let (lines, queue) = sync_channel(QUEUE);
        let writer = move || Logs::default().write_all(&queue);
        // Without it there are no files, and nothing else is missing.
        if let Err(error) = thread::Builder::new().name("logs".into()).spawn(writer) {
            warn!(%error, "the logs of servers cannot be written to files");
        }
        Self {
            folder: folder.into(),
            lines,
        }
    }

    /// The log of the server of this name, which has to be good for a file.
    pub fn file(&self, name: &str) -> LogFile {
        LogFile {
            path: self.folder.join(format!("{name}.log")).into(),
            folder: self.clone(),
            lost: AtomicU64::new(0),
        }
    }
}

impl LogFile {
    /// Adds a line, if the disk keeps up.
    pub(super) fn push(&self, line: &Arc<LogLine>) {
        let sent = (Arc::clone(&self.path), Arc::clone(line));
        if self.folder.lines.try_send(sent).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many lines were lost because the disk did not keep up.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

/// What the thread knows.
#[derive(Default)]
struct Logs {
    budgets: HashMap<Arc<Path>, Budget>,
    failing: bool,
}

impl Logs {
    fn write_all(&mut self, queue: &Receiver<(Arc<Path>, Arc<LogLine>)>) {
        while let Ok(first) = queue.recv() {
            // What has come together is written together.
            let batch = std::iter::once(first).chain(queue.try_iter().take(QUEUE));
            let mut texts: HashMap<Arc<Path>, String> = HashMap::new();
            for (path, line) in batch {
                let budget = self.budgets.entry(Arc::clone(&path)).or_default();
                budget.print(&line, texts.entry(path).or_default(), Instant::now());
            }
            for (path, text) in texts {
                match append(&path, text.as_bytes()) {
                    Ok(()) => self.failing = false,
                    Err(error) => {
                        if !std::mem::replace(&mut self.failing, true) {
                            let path = path.display();
                            warn!(%error, %path, "a log cannot be written: lines are lost");
                        }
                    }
                }
            }
        }
    }
}

/// How much of one server may be written.
struct Budget {
    left: u64,
    since: Instant,
    dropped: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            left: BURST,
            since: Instant::now(),
            dropped: 0,
        }
    }
}

impl Budget {
    fn print(&mut self, line: &LogLine, to: &mut String, now: Instant) {
        let earned = now.duration_since(self.since);
        if earned > Duration::from_millis(10) {
            let earned = (earned.as_secs_f64() * RATE as f64) as u64;
            self.left = self.left.saturating_add(earned).min(BURST);
            self.since = now;
        }
        let cost = line.text.len() as u64 + 40;
        if self.left < cost {
            self.dropped += 1;
            return;
        }
        self.left -= cost;
        let dropped = std::mem::take(&mut self.dropped);
        if dropped > 0 {
            let _ = writeln!(to, "... {dropped} lines were too many and are not here");
        }
        let _ = Timestamp.format_time(&mut Writer::new(to));
        let super::Source {
            instance,
            generation,
        } = line.source;
        let _ = writeln!(to, " [{instance}.{generation}] {}", line.text);
    }
}

fn append(path: &Path, text: &[u8]) -> io::Result<()> {
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
    use super::{super::Source, *};
    use std::time::SystemTime;

    fn line(text: &str) -> Arc<LogLine> {
        Arc::new(LogLine {
            text: text.into(),
            at: SystemTime::now(),
            source: Source {
                instance: 1,
                generation: 2,
            },
            for_clients: false,
        })
    }

    #[test]
    fn lines_reach_the_disk_with_who_wrote_them() {
        let dir = tempfile::tempdir().unwrap();
        let folder = LogFolder::new(&dir.path().join("logs"));
        let file = folder.file("a");
        file.push(&line("hello"));
        let path = dir.path().join("logs/a.log");
        let text = loop {
            match fs::read_to_string(&path) {
                Ok(text) if text.ends_with('\n') => break text,
                _ => thread::sleep(Duration::from_millis(1)),
            }
        };
        assert!(text.ends_with("Z [1.2] hello\n"), "{text}");
        assert_eq!(file.lost(), 0);
    }

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
    fn a_flood_is_cut_off_and_says_so() {
        let mut budget = Budget::default();
        let now = budget.since;
        let mut text = String::new();
        let flood = line(&"x".repeat(1000));
        for _ in 0..10_000 {
            budget.print(&flood, &mut text, now);
        }
        assert!(text.len() as u64 <= BURST + 1000, "{}", text.len());
        text.clear();
        budget.print(&flood, &mut text, now + Duration::from_secs(1));
        assert!(text.starts_with("... "), "{text}");
    }

    #[test]
    fn a_folder_that_cannot_be_made_costs_nothing_but_the_log() {
        let dir = tempfile::tempdir().unwrap();
        let blocker = dir.path().join("file");
        fs::write(&blocker, "").unwrap();
        assert!(append(&blocker.join("logs/a.log"), b"x").is_err());
    }
}
