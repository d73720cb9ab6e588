//! A live connection to one server process: ids are minted here, and answers find their callers.
//!
//! Every request that is begun ends in exactly one way: an answer, an error, or the end of the
//! connection, which tells requests that were never written from those that were.

mod cancel;
mod error;
mod level;
mod listen;
mod news;
mod questions;
mod receive;
mod remote;
mod waiting;

pub use error::{CallError, Reply};
pub use listen::{Heard, Listening};
pub use news::{CallEvent, LogMessage, Progress};
pub use remote::Remote;
pub use waiting::Waiting;

use super::{
    changes::Changes,
    offers::Offers,
    outgoing::{self, Ask, Meta, Modern},
    revision::Revision,
    subscriptions::Subscriptions,
};
use crate::{
    agent::{Agent, Answers},
    transport::outbox::{Frame, Head, Outbox, PushError},
};
use bytes::Bytes;
use level::{Levels, least};
use nexus_proto::{level::LogLevel, reason::Failure};
use parking_lot::Mutex;
use questions::{Candidate, Questions};
use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{
        Arc, LazyLock, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{Notify, mpsc, oneshot, watch},
    time::Instant,
};

/// More lines in a row that are no messages are not a banner: the program does not speak MCP.
const MAX_NOISE: u64 = 100;

/// What a modern server is told of our own requests: all that can be passed on, so that no list is shorter
/// than it might be.
static ALL_ANSWERS: LazyLock<String> = LazyLock::new(|| Answers::ALL.declaration());

/// What was agreed with a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// The revision that is spoken.
    pub revision: Revision,
    /// What the server can do.
    pub offers: Offers,
}

/// What a connection has around it.
pub struct Host {
    /// The name of the server.
    pub server: String,
    /// Set when the server puts a question to its client that only an agent could answer, in a call.
    pub asks: Arc<AtomicBool>,
    /// The same, when it asks for folders.
    pub asks_roots: Arc<AtomicBool>,
    /// What a legacy server is told that can be asked.
    pub declared: Answers,
    /// Whose the process is, if it is one agent's alone.
    pub owner: Option<Weak<Agent>>,
    /// Who wants to know which resources change.
    pub subscriptions: Arc<Subscriptions>,
    /// Where goes what the server logs for its client.
    pub log: Box<dyn Fn(&LogMessage) + Send + Sync>,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

/// On whose behalf something is asked, and what is wanted besides the answer.
#[derive(Debug)]
pub struct OnBehalf {
    /// Whose.
    pub agent: Arc<Agent>,
    /// Where progress and log messages are told.
    pub events: Option<mpsc::Sender<CallEvent>>,
    /// The least urgent log messages that are wanted.
    pub log_level: Option<LogLevel>,
    /// Nothing is spoiled when it is carried out twice.
    pub repeatable: bool,
    /// Arguments that the server wants to have in headers too, where there are any.
    pub headers: Vec<(String, String)>,
}

/// A live connection.
#[derive(Debug)]
pub struct Connection {
    /// What is to be written.
    pub outbox: Outbox,
    /// The lists that the server says have changed.
    pub changes: Changes,
    host: Host,
    terms: OnceLock<Terms>,
    table: Mutex<Table>,
    questions: Questions,
    listens: Mutex<HashMap<u64, mpsc::Sender<Heard>>>,
    /// How often the server has forgotten what it was told.
    renewals: watch::Sender<u64>,
    /// How much the server is to log, and how much it was told to.
    level: Mutex<Levels>,
    /// Rung when nothing is pending after new requests have been refused.
    drained: Notify,
    last_id: AtomicU64,
    oddities: AtomicU64,
    /// Lines that were no messages at all, and how many of them came in a row.
    noise: AtomicU64,
    noise_in_a_row: AtomicU64,
    received: AtomicU64,
    born: Instant,
    /// When a call last began or ended, in milliseconds after `born`.
    last_call: AtomicU64,
}

/// How long a call that was given up may still have the server ask something, or log something. A server
/// that has taken notice stops at once; one that has not will answer late.
const GHOST: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
struct Table {
    pending: HashMap<u64, Pending>,
    /// Calls that were given up and may not be over: whose, and since when.
    ghosts: HashMap<u64, (u64, Instant)>,
    /// Requests whose answers nobody waits for any more, though the server was not told. There are few.
    forgotten: HashSet<u64>,
    /// Why no new requests are taken.
    closed: Option<Arc<Failure>>,
}

impl Table {
    /// What a server may be working on now.
    fn candidates(&mut self) -> HashMap<u64, Candidate> {
        self.ghosts.retain(|_, (_, since)| since.elapsed() < GHOST);
        let ghosts = self
            .ghosts
            .iter()
            .map(|(id, (agent, _))| (*id, Candidate::Ghost(*agent)));
        let pending = self.pending.iter().filter_map(|(id, pending)| {
            let candidate = match &pending.call {
                Some(call) => Candidate::Agent(Arc::clone(&call.agent)),
                None if pending.is_probe => return None,
                None => Candidate::Us,
            };
            Some((*id, candidate))
        });
        ghosts.chain(pending).collect()
    }
}

#[derive(Debug)]
struct Pending {
    reply: oneshot::Sender<Reply>,
    /// It is a call, not a question of our own: the server is used.
    call: Option<OnBehalf>,
    /// It only asks whether the server lives.
    is_probe: bool,
}

impl Connection {
    /// A connection to a process that was just started.
    pub fn new(host: Host) -> Self {
        Self {
            outbox: Outbox::default(),
            changes: Changes::default(),
            host,
            terms: OnceLock::new(),
            table: Mutex::default(),
            questions: Questions::default(),
            listens: Mutex::default(),
            renewals: watch::channel(0).0,
            level: Mutex::default(),
            drained: Notify::new(),
            last_id: AtomicU64::new(0),
            oddities: AtomicU64::new(0),
            noise: AtomicU64::new(0),
            noise_in_a_row: AtomicU64::new(0),
            received: AtomicU64::new(0),
            born: Instant::now(),
            last_call: AtomicU64::new(0),
        }
    }

    /// What was agreed with the server; `None` before that.
    pub fn terms(&self) -> Option<Terms> {
        self.terms.get().copied()
    }

    /// It was agreed on this.
    pub fn agree(&self, terms: Terms) {
        let _ = self.terms.set(terms);
    }

    fn is_modern(&self) -> bool {
        self.terms
            .get()
            .is_some_and(|terms| terms.revision.is_modern())
    }

    /// Batches came with one revision and went with the next. Before it is known which one is spoken, there may be
    /// some: a server that batches all it says batches its first answer too.
    fn has_batches(&self) -> bool {
        let revision = self.terms.get().map(|terms| terms.revision);
        revision.is_none_or(|revision| revision <= Revision::V2025_03_26)
    }

    /// Asks something of our own.
    pub fn ask(self: &Arc<Self>, ask: &Ask<'_>) -> Result<Waiting, CallError> {
        self.ask_as(self.is_modern(), ask)
    }

    /// The same before anything is agreed on.
    pub fn ask_as(self: &Arc<Self>, modern: bool, ask: &Ask<'_>) -> Result<Waiting, CallError> {
        let meta = Meta {
            progress: false,
            modern: modern.then(|| Modern {
                capabilities: ALL_ANSWERS.as_bytes(),
                log_level: None,
            }),
        };
        let head = Head {
            repeatable: true,
            ..outgoing::head(ask, modern)
        };
        let is_probe = matches!(ask.method, "ping" | "server/discover");
        self.begin(None, is_probe, head, |id| outgoing::request(id, ask, &meta))
    }

    /// Asks something that an agent wants to know, or to have done.
    pub fn ask_for(
        self: &Arc<Self>,
        ask: &Ask<'_>,
        mut behalf: OnBehalf,
    ) -> Result<Waiting, CallError> {
        let modern = self.is_modern();
        if !modern && behalf.log_level.is_some() {
            self.adjust_level(behalf.log_level);
        }
        let capabilities = if modern {
            behalf.agent.declaration()
        } else {
            Bytes::new()
        };
        let meta = Meta {
            progress: behalf.events.is_some(),
            modern: modern.then(|| Modern {
                capabilities: &capabilities,
                log_level: least(behalf.log_level, self.level.lock().wanted),
            }),
        };
        self.stamp();
        let head = Head {
            repeatable: behalf.repeatable,
            params: std::mem::take(&mut behalf.headers),
            ..outgoing::head(ask, modern)
        };
        self.begin(Some(behalf), false, head, |id| {
            outgoing::request(id, ask, &meta)
        })
    }

    /// Asks whether the server lives.
    pub fn probe(self: &Arc<Self>) -> Result<Waiting, CallError> {
        let method = if self.is_modern() {
            "server/discover"
        } else {
            "ping"
        };
        self.ask(&Ask {
            method,
            params: &[],
        })
    }

    /// Sends news.
    pub fn notify(&self, method: &'static str, params: &[u8]) {
        let head = Head {
            method,
            ..Head::default()
        };
        self.send(head, outgoing::notification(method, params));
    }

    /// The folders of the agent whose it is have changed. A modern server asks for them when it wants them.
    pub fn roots_changed(&self) {
        let is_legacy = |terms: &Terms| !terms.revision.is_modern();
        if self.host.declared.roots && self.terms.get().is_some_and(is_legacy) {
            self.notify("notifications/roots/list_changed", b"");
        }
    }

    /// Whose it is, if it is one agent's alone.
    pub(super) fn owner(&self) -> Option<Arc<Agent>> {
        self.host.owner.as_ref().and_then(Weak::upgrade)
    }

    /// Tells when the server has forgotten what it was told.
    pub fn renewals(&self) -> watch::Receiver<u64> {
        self.renewals.subscribe()
    }

    /// How many requests wait for an answer.
    pub fn in_flight(&self) -> usize {
        self.table.lock().pending.len()
    }

    /// How many messages were dropped because they made no sense.
    pub fn oddities(&self) -> u64 {
        self.oddities.load(Ordering::Relaxed)
    }

    /// How many lines were no messages at all: a server that logs to the wrong place, as a rule.
    pub fn noise(&self) -> u64 {
        self.noise.load(Ordering::Relaxed)
    }

    /// Whether it has said nothing but noise for too long: it does not speak MCP.
    pub fn is_only_noise(&self) -> bool {
        self.noise_in_a_row.load(Ordering::Relaxed) > MAX_NOISE
    }

    /// How many messages have come: a number that grows is a sign of life.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// When a call last began or ended, or the process was started.
    pub fn last_used(&self) -> Instant {
        self.born + Duration::from_millis(self.last_call.load(Ordering::Relaxed))
    }

    /// Takes no new requests: they go to the next process. Those under way go on.
    pub fn retire(&self, cause: &Arc<Failure>) {
        let mut table = self.table.lock();
        table.closed = Some(Arc::clone(cause));
        self.ring_if_drained(&table);
    }

    /// The same, if no request is under way; otherwise nothing happens.
    pub fn retire_if_idle(&self, cause: &Arc<Failure>) -> bool {
        let mut table = self.table.lock();
        let idle = table.pending.is_empty();
        if idle {
            table.closed = Some(Arc::clone(cause));
        }
        idle
    }

    /// Waits until no request is under way. To be called once it has retired.
    pub async fn drained(&self) {
        self.drained.notified().await;
    }

    /// Ends the connection: every request that waits gets its one outcome now.
    pub fn end(&self, cause: &Arc<Failure>) {
        // In this order: whoever finds the outbox closed finds the cause in the table.
        let pending = {
            let mut table = self.table.lock();
            table.closed = Some(Arc::clone(cause));
            let pending = std::mem::take(&mut table.pending);
            self.ring_if_drained(&table);
            pending
        };
        self.questions.end();
        self.listens.lock().clear();
        let unsent = self.outbox.close();
        for (id, pending) in pending {
            let cause = Arc::clone(cause);
            let error = if unsent.contains(&id) {
                CallError::NotSent(cause)
            } else {
                CallError::Lost(cause)
            };
            let _ = pending.reply.send(Err(error));
        }
    }

    fn begin(
        self: &Arc<Self>,
        call: Option<OnBehalf>,
        is_probe: bool,
        head: Head,
        frame: impl FnOnce(u64) -> Bytes,
    ) -> Result<Waiting, CallError> {
        let id = self.next_id();
        let bytes = frame(id);
        let (reply, answer) = oneshot::channel();
        {
            let mut table = self.table.lock();
            if let Some(cause) = &table.closed {
                return Err(CallError::NotSent(Arc::clone(cause)));
            }
            let pending = Pending {
                reply,
                call,
                is_probe,
            };
            table.pending.insert(id, pending);
        }
        let waiting = Waiting::new(Arc::clone(self), id, answer);
        match self.outbox.push(Frame {
            id: Some(id),
            bytes,
            head: Head {
                request: Some(id),
                ..head
            },
        }) {
            Ok(()) => Ok(waiting),
            Err(PushError::Full) => {
                self.remove(id);
                Err(CallError::Overloaded)
            }
            // It ended between the two locks.
            Err(PushError::Closed) => {
                let ended = self.table.lock().closed.clone();
                Err(ended.map_or(CallError::Overloaded, CallError::NotSent))
            }
        }
    }

    fn next_id(&self) -> u64 {
        self.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn settle(&self, pending: Pending, reply: Reply) {
        if pending.call.is_some() {
            self.stamp();
        }
        let _ = pending.reply.send(reply);
    }

    /// The server is being used now.
    fn stamp(&self) {
        let now = u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_call.store(now, Ordering::Relaxed);
    }

    fn remove(&self, id: u64) -> Option<Pending> {
        let mut table = self.table.lock();
        let pending = table.pending.remove(&id);
        self.ring_if_drained(&table);
        pending
    }

    fn ring_if_drained(&self, table: &Table) {
        if table.closed.is_some() && table.pending.is_empty() {
            self.drained.notify_one();
        }
    }

    fn odd(&self) {
        self.oddities.fetch_add(1, Ordering::Relaxed);
    }

    fn send(&self, head: Head, bytes: Bytes) {
        // What answers nobody's call may be lost with the connection.
        let _ = self.outbox.push(Frame {
            id: None,
            bytes,
            head,
        });
    }

    /// Answers the server.
    fn respond(&self, bytes: Bytes) {
        self.send(Head::default(), bytes);
    }
}

#[cfg(test)]
mod tests;
