//! The thread that writes lines. A disk that is slow or full holds nobody up: it costs lines, and they are counted.

use super::{
    super::redact::redacted,
    line::{self, End, Id},
    recover::{self, Left},
    slots::{Slot, Slots},
};
use crate::{
    config::ServerConfig,
    telemetry::file::{Rotation, append_rotating},
};
use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc::{Receiver, SyncSender},
    },
    thread,
    time::Duration,
};
use tracing::warn;

/// Eight files of 8 MB.
pub(super) const ROTATION: Rotation = Rotation {
    max_file: 8 * 1024 * 1024,
    older: 7,
};

/// So much is written at once.
const BATCH: usize = 256 * 1024;

/// How long lines are waited for that could be written together. They are in their slots meanwhile; and whoever has a
/// line does not have to wake the thread each time, which would take longer than all else.
const PAUSE: Duration = Duration::from_millis(20);

/// Slots whose lines are written are emptied when so much more has been, if there was no time before: the next daemon
/// looks for their lines in what was written last, of which it knows at least one file.
const STALE: usize = 2 * 1024 * 1024;

/// Longer arguments are not written down.
const MAX_ARGUMENTS: usize = 64 * 1024;

/// What the writer is told.
#[derive(Debug)]
pub(super) enum Message {
    /// A call is over.
    Line(Box<Line>),
    /// Everything before it is to be written.
    Flush(SyncSender<()>),
}

/// A call that is over.
#[derive(Debug)]
pub(super) struct Line {
    /// The whole line, or its beginning.
    pub(super) text: Vec<u8>,
    /// Arguments whose hash is not in the head yet.
    pub(super) to_hash: Option<Bytes>,
    /// Arguments that are to be written down, and what its server was given.
    pub(super) to_show: Option<(Bytes, Option<Arc<ServerConfig>>)>,
    /// A result that nobody has looked at yet.
    pub(super) to_judge: Option<Bytes>,
    /// What has to follow, if it is not the whole line.
    pub(super) end: Option<End>,
    pub(super) slot: Option<Slot>,
    /// How much memory it holds on to.
    pub(super) weight: usize,
}

/// What callers and the writer share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Lines that were lost, and not told of yet.
    pub(super) missing: AtomicU64,
    /// How much the lines that wait hold on to.
    pub(super) weight: AtomicUsize,
    /// How many lines there have been.
    pub(super) numbers: AtomicU64,
}

#[derive(Debug)]
pub(super) struct Writer {
    pub(super) path: PathBuf,
    pub(super) run: u64,
    pub(super) slots: Option<Arc<Slots>>,
    pub(super) shared: Arc<Shared>,
    /// The time of day, since 1970.
    pub(super) clock: fn() -> Duration,
    pub(super) failing: bool,
}

impl Writer {
    /// Writes until nobody has anything more to say. First what an earlier daemon has left.
    pub(super) fn run(mut self, slots: &[u8], queue: &Receiver<Message>) {
        mend(&self.path);
        self.recover(slots);
        let mut written = 0;
        while let Some(first) = self.next(queue) {
            let (mut text, mut done) = (Vec::new(), Vec::new());
            let (mut lines, mut flushed) = (0, Vec::new());
            let mut next = Some(first);
            // What has come together is written together.
            while let Some(message) = next.take() {
                match message {
                    Message::Line(line) => {
                        lines += 1;
                        let weight = line.weight;
                        done.extend(line.finish(&mut text));
                        self.shared.weight.fetch_sub(weight, Ordering::Relaxed);
                    }
                    Message::Flush(told) => flushed.push(told),
                }
                if text.len() < BATCH {
                    next = queue.try_recv().ok();
                }
            }
            self.write(&text, lines);
            // Whoever waits is not kept, and what waits already neither.
            let may_rest = flushed.is_empty() && text.len() < BATCH;
            if let Some(slots) = &self.slots {
                match self.failing {
                    true => done.into_iter().for_each(|slot| slots.free(slot)),
                    false => slots.written(done),
                }
                written += text.len();
                if !flushed.is_empty() || written > STALE {
                    slots.tidy();
                    written = 0;
                }
            }
            for told in flushed {
                let _ = told.try_send(());
            }
            if may_rest {
                thread::sleep(PAUSE);
            }
        }
    }

    /// What comes next. Before it is waited for, slots are emptied: nobody knows how long that takes.
    fn next(&self, queue: &Receiver<Message>) -> Option<Message> {
        let waiting = queue.try_recv().ok();
        waiting.or_else(|| {
            self.slots.iter().for_each(|slots| slots.tidy());
            queue.recv().ok()
        })
    }

    fn recover(&mut self, slots: &[u8]) {
        let Some(here) = self.slots.clone() else {
            return;
        };
        let written = [ROTATION.numbered(&self.path, 1), self.path.clone()];
        let written = written.map(|path| fs::read(path).unwrap_or_default());
        let Left { taken, lines } = recover::left(slots, &[&written[0], &written[1]]);
        if !lines.is_empty() {
            let calls = lines.len();
            warn!(calls, "an earlier daemon was ended in the middle of calls");
            self.write(lines.concat().as_bytes(), lines.len() as u64);
        }
        for slot in taken {
            here.free(Slot(slot));
        }
    }

    fn write(&mut self, text: &[u8], lines: u64) {
        if text.is_empty() && self.shared.missing.load(Ordering::Relaxed) == 0 {
            return;
        }
        let missing = self.shared.missing.swap(0, Ordering::Relaxed);
        let mut told = Vec::new();
        let text = match missing {
            0 => text,
            _ => {
                let number = self.shared.numbers.fetch_add(1, Ordering::Relaxed);
                let run = self.run;
                told.extend(line::missing(Id { run, number }, (self.clock)(), missing));
                told.extend_from_slice(text);
                &told
            }
        };
        match append_rotating(&self.path, text, ROTATION) {
            Ok(()) => self.failing = false,
            Err(error) => {
                let missing = missing + lines;
                self.shared.missing.fetch_add(missing, Ordering::Relaxed);
                if !std::mem::replace(&mut self.failing, true) {
                    let path = self.path.display();
                    warn!(%error, %path, "the audit cannot be written: calls go on, their lines are lost");
                }
            }
        }
    }
}

impl Line {
    fn finish(self, to: &mut Vec<u8>) -> Option<Slot> {
        to.extend_from_slice(&self.text);
        if let Some(arguments) = &self.to_hash {
            line::add_hash(to, &Sha256::digest(arguments).into());
        }
        if let Some((arguments, server)) = &self.to_show {
            let secrets = server.as_ref().map(|server| server.secrets());
            let secrets = secrets.unwrap_or_default();
            match redacted(arguments, &secrets, MAX_ARGUMENTS) {
                Some(arguments) => {
                    to.extend_from_slice(b",\"arguments\":");
                    to.extend_from_slice(arguments.as_bytes());
                }
                None => to.extend_from_slice(b",\"arguments\":null"),
            }
        }
        if let Some(mut end) = self.end {
            if let Some(result) = &self.to_judge {
                end.outcome = line::outcome(result);
            }
            line::add_end(to, end);
        }
        self.slot
    }
}

/// Takes away a part of a line that a daemon left that was killed while it wrote.
fn mend(path: &Path) {
    let Ok(text) = fs::read(path) else { return };
    let whole = recover::whole_lines(&text);
    if whole < text.len() {
        let file = fs::OpenOptions::new().write(true).open(path);
        let _ = file.and_then(|file| file.set_len(whole as u64));
    }
}
