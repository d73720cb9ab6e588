//! What was done: one line for each call, whatever became of it. It is never a reason for a call to fail or to wait.

mod line;
mod recover;
mod slots;
mod writer;

use crate::{agent::Agent, config::ServerConfig};
use bytes::Bytes;
use line::{End, Head, Id};
use nexus_config::policy::Policy as Written;
use nexus_proto::reason::Failure;
use sha2::{Digest as _, Sha256};
use slots::{Slot, Slots};
use std::{
    path::Path,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, SyncSender, TrySendError},
    },
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::time::Instant;
use tracing::warn;
use writer::{Line, Message, Shared, Writer};

/// The file, in the folder of the audit.
pub const FILE: &str = "audit.jsonl";

/// How many lines may wait for the disk.
const QUEUE: usize = 8192;

/// What is larger is hashed, and looked at, by the writer.
const INLINE: usize = 64 * 1024;

/// How much the lines that wait may hold on to.
const MAX_WEIGHT: usize = 64 * 1024 * 1024;

/// How long the end may wait for the disk.
const FLUSH: Duration = Duration::from_secs(2);

/// Where calls are written down.
#[derive(Debug, Default)]
pub struct Audit {
    is_on: AtomicBool,
    with_arguments: AtomicBool,
    thread: Option<Thread>,
}

#[derive(Debug)]
struct Thread {
    run: u64,
    lines: SyncSender<Message>,
    slots: Option<Arc<Slots>>,
    shared: Arc<Shared>,
}

/// What somebody wants to have done.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// Who.
    pub agent: &'a Agent,
    /// The folder that they work in.
    pub project: Option<&'a Path>,
    /// `tools/call`, `resources/read` or `prompts/get`.
    pub method: &'static str,
    /// The tool, URI or prompt, as they call it.
    pub target: &'a str,
    /// JSON text, if it can have arguments.
    pub arguments: Option<Bytes>,
}

impl Audit {
    /// Writes into this folder. `calls` is the file of the calls under way: nobody else has it.
    pub fn start(folder: &Path, calls: &Path) -> Self {
        let opened = Slots::open(calls).inspect_err(|error| {
            let file = calls.display();
            warn!(%error, %file, "if this daemon is killed, calls under way will not be in the audit");
        });
        let (slots, left) = match opened {
            Ok((slots, left)) => (Some(Arc::new(slots)), left),
            Err(_) => (None, Vec::new()),
        };
        let run = u64::try_from(since_1970().as_millis()).unwrap_or(0);
        let shared = Arc::new(Shared::default());
        let (lines, queue) = mpsc::sync_channel(QUEUE);
        let writer = Writer {
            path: folder.join(FILE),
            run,
            slots: slots.clone(),
            shared: Arc::clone(&shared),
            clock: since_1970,
            failing: false,
        };
        let write = move || writer.run(&left, &queue);
        if let Err(error) = thread::Builder::new().name("audit".into()).spawn(write) {
            warn!(%error, "calls will not be in the audit");
        }
        Self {
            thread: Some(Thread {
                run,
                lines,
                slots,
                shared,
            }),
            ..Self::default()
        }
    }

    /// What is written counts from now on.
    pub fn apply(&self, written: &Written) {
        let is_on = written.audit.unwrap_or(true);
        let with_arguments = written.audit_arguments.unwrap_or(false);
        self.is_on.store(is_on, Ordering::Relaxed);
        self.with_arguments.store(with_arguments, Ordering::Relaxed);
    }

    /// A call begins. It has a line whenever the entry ends, and however.
    pub fn begin<'a>(&'a self, request: Request<'a>) -> Entry<'a> {
        let thread = self.thread.as_ref();
        let thread = thread.filter(|_| self.is_on.load(Ordering::Relaxed));
        let open = thread.map(|thread| Open {
            thread,
            with_arguments: self.with_arguments.load(Ordering::Relaxed),
            request,
            number: thread.shared.numbers.fetch_add(1, Ordering::Relaxed),
            at: since_1970(),
            began: Instant::now(),
            server: None,
            own_name: None,
            head: None,
            slot: None,
        });
        Entry(open)
    }

    /// Has everything written that is over. Waits for the disk, but not for long.
    pub fn flush(&self) {
        let Some(thread) = &self.thread else { return };
        let (told, done) = mpsc::sync_channel(1);
        if thread.lines.try_send(Message::Flush(told)).is_ok() {
            let _ = done.recv_timeout(FLUSH);
        }
    }
}

/// A call that is to have a line. One that is dropped was cancelled.
#[derive(Debug)]
pub struct Entry<'a>(Option<Open<'a>>);

#[derive(Debug)]
struct Open<'a> {
    thread: &'a Thread,
    with_arguments: bool,
    request: Request<'a>,
    number: u64,
    at: Duration,
    began: Instant,
    server: Option<Arc<ServerConfig>>,
    /// What its server calls it.
    own_name: Option<String>,
    /// The line so far, once it is about to be sent.
    head: Option<Vec<u8>>,
    slot: Option<Slot>,
}

impl Entry<'_> {
    /// It is for this server, which knows it by that name.
    pub fn found(&mut self, server: Arc<ServerConfig>, own_name: &str) {
        if let Some(open) = &mut self.0 {
            open.server = Some(server);
            open.own_name = Some(own_name.to_owned());
        }
    }

    /// Waits for a server, or for somebody's consent. If that takes time, it is noted like one that is sent.
    pub async fn waits_for<T>(&mut self, mut other: Pin<&mut impl Future<Output = T>>) -> T {
        let mut is_first = true;
        std::future::poll_fn(|context| {
            let polled = other.as_mut().poll(context);
            if polled.is_pending()
                && std::mem::take(&mut is_first)
                && let Some(open) = &mut self.0
            {
                open.note(line::LOST_WAITING);
            }
            polled
        })
        .await
    }

    /// It is let through, and is about to be sent.
    pub fn sending(&mut self) {
        if let Some(open) = &mut self.0 {
            open.head = Some(open.note(line::LOST));
        }
    }

    /// What became of it.
    pub fn end(mut self, outcome: Result<&Bytes, &Failure>) {
        if let Some(open) = self.0.take() {
            open.end(Some(outcome));
        }
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        if let Some(open) = self.0.take() {
            open.end(None);
        }
    }
}

impl Open<'_> {
    /// Returns the line so far; and notes the whole, with an end for the case that nobody comes back to it.
    fn note(&mut self, end: &[u8]) -> Vec<u8> {
        let project = self.request.project.map(Path::to_string_lossy);
        let name = self.request.agent.label();
        let arguments = self.request.arguments.as_ref().map(|arguments| {
            let hash = || Sha256::digest(arguments).into();
            (arguments.len(), (arguments.len() <= INLINE).then(hash))
        });
        let head = Head {
            id: Id {
                run: self.thread.run,
                number: self.number,
            },
            at: self.at,
            agent: self.request.agent.id(),
            name: &name,
            pid: self.request.agent.pid(),
            program: self
                .request
                .agent
                .programs()
                .own
                .first()
                .map(String::as_str),
            project: project.as_deref(),
            method: self.request.method,
            server: self.server.as_ref().map(|server| server.name.as_str()),
            target: self.own_name.as_deref().unwrap_or(self.request.target),
            arguments,
        };
        let mut line = head.text();
        if let Some(slots) = &self.thread.slots {
            let so_far = line.len();
            line.extend_from_slice(end);
            match line.len() <= recover::SLOT {
                true => slots.write(&mut self.slot, &line),
                false => slots.write(&mut self.slot, &[&head.short(), end].concat()),
            }
            line.truncate(so_far);
        }
        line
    }

    /// What became of it, for the case that the writer does not come to it any more.
    fn note_end(&mut self, head: &[u8], end: &[u8]) {
        let Some(slots) = &self.thread.slots else {
            return;
        };
        // A head that was noted in short is not where this would go; but then this does not fit either, for an end is
        // longer than the one that was noted.
        if head.len() + end.len() > recover::SLOT {
            return;
        }
        match &self.slot {
            Some(slot) => slots.write_end(slot, head.len(), end),
            // There was no room, and there may be by now.
            None => slots.write(&mut self.slot, &[head, end].concat()),
        }
    }

    fn end(mut self, outcome: Option<Result<&Bytes, &Failure>>) {
        let duration = self.began.elapsed();
        let reason = match outcome {
            Some(Err(failure)) => Some(failure.reason),
            _ => None,
        };
        let mut end = End {
            decision: line::decision(reason, self.head.is_some()),
            outcome: match outcome {
                None => "cancelled",
                Some(Ok(result)) if result.len() > INLINE => "",
                Some(Ok(result)) => line::outcome(result),
                Some(Err(failure)) => line::failed(failure.reason),
            },
            duration,
            result: match outcome {
                Some(Ok(result)) => Some(result.len()),
                _ => None,
            },
        };
        let mut ending = Vec::with_capacity(160);
        line::add_end(&mut ending, end);
        let mut text = match self.head.take() {
            Some(head) => {
                if !end.outcome.is_empty() {
                    self.note_end(&head, &ending);
                }
                head
            }
            // Nobody was to do it: what became of it is known, and is not to be forgotten either.
            None => self.note(&ending),
        };
        let mut to_judge = match outcome {
            Some(Ok(result)) if end.outcome.is_empty() => Some(result.clone()),
            _ => None,
        };
        let arguments = self.request.arguments.take();
        let mut to_hash = arguments.clone().filter(|it| it.len() > INLINE);
        let mut to_show = arguments
            .filter(|arguments| self.with_arguments && !arguments.is_empty())
            .map(|arguments| (arguments, self.server.take()));
        let shared = &self.thread.shared;
        let held = [&to_hash, &to_judge].into_iter().flatten().map(Bytes::len);
        let mut weight = held.sum::<usize>() + to_show.as_ref().map_or(0, |it| it.0.len());
        let is_whole = weight == 0;
        if shared.weight.fetch_add(weight, Ordering::Relaxed) > MAX_WEIGHT {
            // The disk does not keep up. Better that this one waits a little than that memory runs out.
            shared.weight.fetch_sub(weight, Ordering::Relaxed);
            weight = 0;
            to_show = None;
            if let Some(arguments) = to_hash.take() {
                line::add_hash(&mut text, &Sha256::digest(&arguments).into());
            }
            if let Some(result) = to_judge.take() {
                end.outcome = line::outcome(&result);
            }
        }
        if is_whole {
            text.extend_from_slice(&ending);
        }
        let line = Box::new(Line {
            text,
            to_hash,
            to_show,
            to_judge,
            end: (!is_whole).then_some(end),
            slot: self.slot.take(),
            weight,
        });
        match self.thread.lines.try_send(Message::Line(line)) {
            Ok(()) => {}
            Err(TrySendError::Full(message) | TrySendError::Disconnected(message)) => {
                shared.missing.fetch_add(1, Ordering::Relaxed);
                shared.weight.fetch_sub(weight, Ordering::Relaxed);
                if let (Message::Line(line), Some(slots)) = (message, &self.thread.slots) {
                    line.slot.into_iter().for_each(|slot| slots.free(slot));
                }
            }
        }
    }
}

fn since_1970() -> Duration {
    let now = SystemTime::now();
    // A clock that is set to before 1970 is no reason to fail.
    now.duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests;
