//! What a server writes to its standard error: always read, the last of it kept, all of it written to
//! a file as far as that is bearable.

pub mod file;

use file::LogFile;
use parking_lot::{Mutex, RwLock};
use std::{collections::VecDeque, fmt, sync::Arc, time::SystemTime};
use tokio::sync::broadcast;

/// How much is kept of one server.
const MAX_BYTES: usize = 64 * 1024;

/// What a line costs besides its text.
const OVERHEAD: usize = 96;

/// How long a line may be; a longer one is cut.
pub const MAX_LINE: usize = 8 * 1024;

/// How many lines a slow follower may be behind.
const FOLLOWERS_LAG: usize = 256;

/// Which process of a server wrote something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// Which of the instances that the server has had.
    pub instance: u32,
    /// Which process of that instance.
    pub generation: u64,
}

/// One line.
#[derive(Debug)]
pub struct LogLine {
    /// Without its end.
    pub text: String,
    /// When it was read.
    pub at: SystemTime,
    /// Who wrote it.
    pub source: Source,
    /// It was logged for whoever called, and is nobody else's business.
    for_clients: bool,
}

/// The last lines of one server.
#[derive(Debug)]
pub struct LogRing {
    secrets: RwLock<Secrets>,
    kept: Mutex<Kept>,
    file: Option<LogFile>,
}

/// What is never to be seen, not even in a `Debug`.
#[derive(Default)]
struct Secrets(Vec<String>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[derive(Debug)]
struct Kept {
    lines: VecDeque<Arc<LogLine>>,
    bytes: usize,
    // Made for the first follower: a ring of its own is too much for a server nobody looks at.
    followers: Option<broadcast::Sender<Arc<LogLine>>>,
}

impl LogRing {
    /// An empty one, which is also written to a file.
    pub fn new(file: Option<LogFile>) -> Self {
        Self {
            file,
            secrets: RwLock::default(),
            kept: Mutex::new(Kept {
                lines: VecDeque::new(),
                bytes: 0,
                followers: None,
            }),
        }
    }

    /// What is never to be seen in it.
    pub fn hide(&self, secrets: Vec<String>) {
        *self.secrets.write() = Secrets(secrets);
    }

    /// Adds a line, and forgets the oldest ones if there are too many.
    pub fn push(&self, source: Source, text: String) {
        self.add(source, text, false);
    }

    /// The same for what a server logs for its clients: it does not go with the news of its end.
    pub fn push_for_clients(&self, source: Source, text: String) {
        self.add(source, text, true);
    }

    fn add(&self, source: Source, mut text: String, for_clients: bool) {
        for secret in &self.secrets.read().0 {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), "***");
            }
        }
        let line = Arc::new(LogLine {
            text,
            at: SystemTime::now(),
            source,
            for_clients,
        });
        if let Some(file) = &self.file {
            file.push(&line);
        }
        let mut kept = self.kept.lock();
        kept.bytes += line.text.len() + OVERHEAD;
        kept.lines.push_back(Arc::clone(&line));
        while kept.bytes > MAX_BYTES
            && let Some(oldest) = kept.lines.pop_front()
        {
            kept.bytes -= oldest.text.len() + OVERHEAD;
        }
        if let Some(followers) = &kept.followers
            && followers.send(line).is_err()
        {
            kept.followers = None;
        }
    }

    /// How many lines did not reach the file.
    pub fn lost(&self) -> u64 {
        self.file.as_ref().map_or(0, LogFile::lost)
    }

    /// The last `n` lines of one process.
    pub fn tail_of(&self, source: Source, n: usize) -> Vec<String> {
        let kept = self.kept.lock();
        let own = kept.lines.iter().rev();
        let own = own.filter(|line| line.source == source && !line.for_clients);
        let mut lines: Vec<String> = own.take(n).map(|line| line.text.clone()).collect();
        lines.reverse();
        lines
    }

    /// The last `n` lines, and what comes after them.
    pub fn follow(&self, n: usize) -> (Vec<Arc<LogLine>>, broadcast::Receiver<Arc<LogLine>>) {
        let mut kept = self.kept.lock();
        let skipped = kept.lines.len().saturating_sub(n);
        let lines = kept.lines.iter().skip(skipped).cloned().collect();
        let followers = kept
            .followers
            .get_or_insert_with(|| broadcast::channel(FOLLOWERS_LAG).0);
        (lines, followers.subscribe())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(generation: u64) -> Source {
        Source {
            instance: 1,
            generation,
        }
    }

    #[test]
    fn what_is_secret_is_not_kept() {
        let ring = LogRing::new(None);
        ring.hide(vec!["hunter2-secret".into()]);
        ring.push(source(1), "token=hunter2-secret;".into());
        assert_eq!(ring.tail_of(source(1), 1), ["token=***;"]);
        assert!(!format!("{ring:?}").contains("hunter2"));
    }

    #[test]
    fn the_oldest_lines_are_forgotten() {
        let ring = LogRing::new(None);
        for i in 0..10_000 {
            ring.push(source(1), format!("line {i} {}", "x".repeat(100)));
        }
        let kept = ring.kept.lock();
        assert!(kept.bytes <= MAX_BYTES);
        assert!(kept.lines.back().unwrap().text.starts_with("line 9999 "));
        assert!(kept.lines.len() > 100);
    }

    #[test]
    fn the_tail_is_of_one_process_only() {
        let ring = LogRing::new(None);
        ring.push(source(1), "old".into());
        ring.push(source(2), "a".into());
        ring.push(source(2), "b".into());
        ring.push(source(2), "c".into());
        assert_eq!(ring.tail_of(source(2), 2), ["b", "c"]);
        assert_eq!(ring.tail_of(source(2), 9), ["a", "b", "c"]);
    }

    #[tokio::test]
    async fn a_follower_gets_what_was_and_what_comes() {
        let ring = LogRing::new(None);
        ring.push(source(1), "before".into());
        let (lines, mut news) = ring.follow(10);
        ring.push(source(1), "after".into());
        assert_eq!(lines[0].text, "before");
        assert_eq!(news.recv().await.unwrap().text, "after");
    }
}
