//! Logs of servers on disk, rotated and bounded, so that what a server said is still there after the
//! daemon has gone. One thread writes for all of them: a disk that is slow or full holds nobody up.

use super::LogLine;
use crate::telemetry::file::append;
use std::{
    collections::HashMap,
    fmt::Write as _,
    path::Path,
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

#[cfg(test)]
mod tests {
    use super::{super::Source, *};
    use std::{fs, time::SystemTime};

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
}
