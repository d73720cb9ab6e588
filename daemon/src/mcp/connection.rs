//! A live connection to one server process: ids are minted here, and answers find their callers.
//!
//! Every request that is begun ends in exactly one way: an answer, an error, or the end of the
//! connection, which tells requests that were never written from those that were.

use super::{
    envelope::{self, EnvelopeError, Incoming, RpcError},
    outgoing,
};
use crate::transport::{
    lines::Line,
    outbox::{Frame, Outbox, PushError},
};
use bytes::Bytes;
use nexus_proto::reason::{Failure, Reason};
use parking_lot::Mutex;
use serde::Deserialize;
use std::{
    collections::HashMap,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    sync::{Notify, mpsc, oneshot},
    time::Instant,
};

/// How much of each end of a line is searched for an id.
const SEARCHED: usize = 4096;

/// More lines in a row that are no messages are not a banner: the program does not speak MCP.
const MAX_NOISE: u64 = 100;

/// What only an agent can answer, not a go-between.
const AGENTS_QUESTIONS: [&str; 3] = ["sampling/createMessage", "elicitation/create", "roots/list"];

/// What came of a request.
pub type Reply = Result<Bytes, CallError>;

/// Why a request has no result.
#[derive(Debug, Clone)]
pub enum CallError {
    /// The server answered with an error.
    Rpc(RpcError),
    /// The connection ended before the request was written: it was not carried out.
    NotSent(Arc<Failure>),
    /// The connection ended after the request was written: nobody knows what became of it.
    Lost(Arc<Failure>),
    /// Too much is waiting to be written.
    Overloaded,
    /// The answer was longer than is allowed.
    TooLarge(u64),
    /// The answer is not MCP.
    Malformed(String),
}

/// How far a call has come.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Progress {
    /// Grows from event to event.
    pub progress: f64,
    /// What it grows to.
    #[serde(default)]
    pub total: Option<f64>,
    /// A word for people.
    #[serde(default)]
    pub message: Option<String>,
}

/// A live connection.
#[derive(Debug)]
pub struct Connection {
    /// What is to be written.
    pub outbox: Outbox,
    /// Rung when the server says that its tools have changed.
    pub tools_changed: Notify,
    table: Mutex<Table>,
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
    /// Set when the server puts a question to its client that only an agent could answer.
    asks: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct Table {
    pending: HashMap<u64, Pending>,
    /// Why no new requests are taken.
    closed: Option<Arc<Failure>>,
}

#[derive(Debug)]
struct Pending {
    reply: oneshot::Sender<Reply>,
    /// It is a call, not a question of our own: the server is used.
    is_call: bool,
    progress: Option<mpsc::Sender<Progress>>,
}

impl Connection {
    /// A connection to a process that was just started. `asks` is set once the server asks its client
    /// something.
    pub fn new(asks: Arc<AtomicBool>) -> Self {
        Self {
            outbox: Outbox::default(),
            tools_changed: Notify::new(),
            table: Mutex::default(),
            drained: Notify::new(),
            last_id: AtomicU64::new(0),
            oddities: AtomicU64::new(0),
            noise: AtomicU64::new(0),
            noise_in_a_row: AtomicU64::new(0),
            received: AtomicU64::new(0),
            born: Instant::now(),
            last_call: AtomicU64::new(0),
            asks,
        }
    }

    /// Sends a request. `params` is JSON text, empty for none.
    pub fn request(self: &Arc<Self>, method: &str, params: &[u8]) -> Result<Waiting, CallError> {
        self.begin(false, None, |id| outgoing::request(id, method, params))
    }

    /// Calls a tool. `arguments` is JSON text, empty for none.
    pub fn call_tool(
        self: &Arc<Self>,
        tool: &str,
        arguments: &[u8],
        progress: Option<mpsc::Sender<Progress>>,
    ) -> Result<Waiting, CallError> {
        let wants_progress = progress.is_some();
        self.stamp();
        self.begin(true, progress, |id| {
            outgoing::tool_call(id, tool, arguments, wants_progress)
        })
    }

    /// Sends news.
    pub fn notify(&self, method: &str, params: &[u8]) {
        self.send(outgoing::notification(method, params));
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

    /// Takes a line from the server.
    pub fn receive(&self, line: Line) {
        match line {
            Line::Whole(line) => match envelope::parse(&line) {
                Ok(message) => {
                    self.received.fetch_add(1, Ordering::Relaxed);
                    self.noise_in_a_row.store(0, Ordering::Relaxed);
                    self.dispatch(message);
                }
                Err(error) => self.spoiled(&line, &error),
            },
            Line::Oversized { head, tail, length } => {
                let found = envelope::salvage_id(&head, &tail);
                self.settle_or_count(found, || Err(CallError::TooLarge(length)));
            }
        }
    }

    fn begin(
        self: &Arc<Self>,
        is_call: bool,
        progress: Option<mpsc::Sender<Progress>>,
        frame: impl FnOnce(u64) -> Bytes,
    ) -> Result<Waiting, CallError> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let bytes = frame(id);
        let (reply, answer) = oneshot::channel();
        {
            let mut table = self.table.lock();
            if let Some(cause) = &table.closed {
                return Err(CallError::NotSent(Arc::clone(cause)));
            }
            let pending = Pending {
                reply,
                is_call,
                progress,
            };
            table.pending.insert(id, pending);
        }
        let waiting = Waiting {
            connection: Arc::clone(self),
            id,
            answer,
            settled: false,
        };
        match self.outbox.push(Frame {
            id: Some(id),
            bytes,
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

    fn dispatch(&self, message: Incoming) {
        match message {
            Incoming::Response { id, outcome } => {
                self.settle_or_count(Some(id), || outcome.map_err(CallError::Rpc));
            }
            Incoming::Request { id, method } => self.send(match method.as_str() {
                "ping" => outgoing::response(&id, b"{}"),
                method => {
                    if AGENTS_QUESTIONS.contains(&method) {
                        self.asks.store(true, Ordering::Relaxed);
                    }
                    outgoing::error_response(&id, -32601, "Method not found")
                }
            }),
            Incoming::Notification { method, params } => match method.as_str() {
                "notifications/progress" => self.progress(&params),
                "notifications/tools/list_changed" => self.tools_changed.notify_one(),
                _ => {}
            },
        }
    }

    fn progress(&self, params: &[u8]) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params {
            progress_token: u64,
            #[serde(flatten)]
            progress: Progress,
        }
        let Ok(params) = serde_json::from_slice::<Params>(params) else {
            return self.odd();
        };
        let table = self.table.lock();
        match table.pending.get(&params.progress_token) {
            Some(Pending {
                progress: Some(to), ..
            }) => {
                // A caller that reads too slowly misses some: what comes later says more.
                let _ = to.try_send(params.progress);
            }
            _ => self.odd(),
        }
    }

    fn spoiled(&self, line: &Bytes, error: &EnvelopeError) {
        let head = &line[..line.len().min(SEARCHED)];
        let tail = &line[line.len().saturating_sub(SEARCHED)..];
        // What is good JSON and yet no message is somebody else's: a log line, perhaps.
        let id = match error {
            EnvelopeError::NotText(_) | EnvelopeError::Malformed(_) => {
                envelope::salvage_id(head, tail)
            }
            _ => None,
        };
        if id.is_none()
            && matches!(
                error,
                EnvelopeError::NotText(_) | EnvelopeError::Malformed(_)
            )
        {
            self.noise.fetch_add(1, Ordering::Relaxed);
            self.noise_in_a_row.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.settle_or_count(id, || Err(CallError::Malformed(error.to_string())));
    }

    /// Gives a request its outcome. Late, repeated and unknown answers are dropped and counted.
    fn settle_or_count(&self, id: Option<u64>, reply: impl FnOnce() -> Reply) {
        match id.and_then(|id| self.remove(id)) {
            Some(pending) => {
                if pending.is_call {
                    self.stamp();
                }
                let _ = pending.reply.send(reply());
            }
            None => self.odd(),
        }
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

    fn send(&self, bytes: Bytes) {
        // What answers nobody's call may be lost with the connection.
        let _ = self.outbox.push(Frame { id: None, bytes });
    }

    fn abandon(&self, id: u64) {
        if self.remove(id).is_none() || self.outbox.take_back(id) {
            return;
        }
        let bytes = outgoing::cancelled(id, "the caller went away");
        self.outbox.push_always(Frame { id: None, bytes });
    }
}

/// A request that has been sent. Dropping it cancels the request.
#[derive(Debug)]
pub struct Waiting {
    connection: Arc<Connection>,
    id: u64,
    answer: oneshot::Receiver<Reply>,
    settled: bool,
}

impl Future for Waiting {
    type Output = Reply;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Reply> {
        let reply = ready!(Pin::new(&mut self.answer).poll(cx));
        self.settled = true;
        // The sender is only ever dropped by sending: `end` comes before the connection goes.
        Poll::Ready(reply.unwrap_or_else(|_| {
            let cause = Failure::new(Reason::Internal, "the connection went away");
            Err(CallError::Lost(Arc::new(cause)))
        }))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.settled {
            self.connection.abandon(self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn connection() -> Arc<Connection> {
        Arc::new(Connection::new(Arc::default()))
    }

    fn cause() -> Arc<Failure> {
        Arc::new(Failure::new(Reason::ServerExited, "exit code 7"))
    }

    fn line(text: &str) -> Line {
        Line::Whole(Bytes::copy_from_slice(text.as_bytes()))
    }

    async fn written(connection: &Connection) -> Vec<Value> {
        let mut batch = Vec::new();
        connection.outbox.next_batch(100, &mut batch).await;
        let read = |frame: &Frame| serde_json::from_slice(&frame.bytes).unwrap();
        batch.iter().map(read).collect()
    }

    #[tokio::test]
    async fn answers_find_their_callers_in_any_order() {
        let connection = connection();
        let first = connection.request("a", b"").unwrap();
        let second = connection.request("b", b"").unwrap();
        connection.receive(line(r#"{"id":2,"result":"two"}"#));
        connection.receive(line(r#"{"id":1,"result":"one"}"#));
        assert_eq!(first.await.unwrap(), "\"one\"");
        assert_eq!(second.await.unwrap(), "\"two\"");
        assert_eq!(connection.in_flight(), 0);
    }

    #[tokio::test]
    async fn repeated_unknown_and_strange_answers_are_dropped_and_counted() {
        let connection = connection();
        let call = connection.request("a", b"").unwrap();
        for text in [
            r#"{"id":99,"result":{}}"#,
            r#"{"id":"1","result":{}}"#,
            r#"{"id":null,"result":{}}"#,
            "npm warn deprecated",
        ] {
            connection.receive(line(text));
        }
        connection.receive(line(r#"{"id":1,"result":"first"}"#));
        connection.receive(line(r#"{"id":1,"result":"second"}"#));
        assert_eq!(call.await.unwrap(), "\"first\"");
        assert_eq!((connection.oddities(), connection.noise()), (4, 1));
    }

    #[tokio::test]
    async fn the_end_tells_what_was_written_from_what_was_not() {
        let connection = connection();
        let sent = connection.request("a", b"").unwrap();
        written(&connection).await;
        let unsent = connection.request("b", b"").unwrap();
        connection.end(&cause());
        assert!(matches!(sent.await, Err(CallError::Lost(_))));
        assert!(matches!(unsent.await, Err(CallError::NotSent(_))));
        let late = connection.request("c", b"").map(|_| ());
        assert!(matches!(late, Err(CallError::NotSent(_))));
    }

    #[tokio::test]
    async fn a_caller_that_goes_away_cancels_what_was_written_and_takes_back_what_was_not() {
        let connection = connection();
        let sent = connection.request("a", b"").unwrap();
        written(&connection).await;
        drop(sent);
        drop(connection.request("b", b"").unwrap());
        let news = written(&connection).await;
        assert_eq!(news.len(), 1, "{news:?}");
        assert_eq!(news[0]["method"], "notifications/cancelled");
        assert_eq!(news[0]["params"]["requestId"], 1);
        connection.receive(line(r#"{"id":1,"result":"late"}"#));
        assert_eq!(connection.oddities(), 1);
    }

    #[tokio::test]
    async fn a_line_that_cannot_be_kept_fails_its_own_call_only() {
        let connection = connection();
        let large = connection.request("a", b"").unwrap();
        let spoiled = connection.request("b", b"").unwrap();
        let good = connection.request("c", b"").unwrap();
        connection.receive(Line::Oversized {
            head: Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"result":{"#),
            tail: Bytes::from_static(b"}}"),
            length: 1 << 30,
        });
        connection.receive(Line::Whole(Bytes::from_static(
            b"{\"id\":2,\"result\":{\"text\":\"\xff\"}}",
        )));
        connection.receive(line(r#"{"id":3,"result":{}}"#));
        assert!(matches!(large.await, Err(CallError::TooLarge(_))));
        assert!(matches!(spoiled.await, Err(CallError::Malformed(_))));
        assert!(good.await.is_ok());
    }

    #[tokio::test]
    async fn progress_reaches_its_own_call_and_no_other() {
        let connection = connection();
        let (to, mut from) = mpsc::channel(4);
        let call = connection.call_tool("t", b"{}", Some(to)).unwrap();
        let _other = connection.call_tool("t", b"{}", None).unwrap();
        for token in ["1", "2", "99", "\"1\""] {
            connection.receive(line(&format!(
                r#"{{"method":"notifications/progress","params":{{"progressToken":{token},"progress":0.5,"total":1}}}}"#
            )));
        }
        assert_eq!(from.try_recv().unwrap().total, Some(1.0));
        assert!(from.try_recv().is_err());
        drop(call);
    }

    #[tokio::test]
    async fn a_question_of_the_servers_is_answered() {
        let connection = connection();
        connection.receive(line(r#"{"id":"p","method":"ping"}"#));
        connection.receive(line(r#"{"id":8,"method":"sampling/createMessage"}"#));
        let answers = written(&connection).await;
        assert_eq!(answers[0]["result"], serde_json::json!({}));
        assert_eq!(answers[1]["error"]["code"], -32601);
        assert!(connection.asks.load(Ordering::Relaxed));
    }

    #[tokio::test]
    async fn a_banner_is_forgiven_and_a_flood_of_noise_is_not() {
        let connection = connection();
        for _ in 0..3 {
            for _ in 0..MAX_NOISE {
                connection.receive(line("npm warn deprecated"));
            }
            assert!(!connection.is_only_noise());
            connection.receive(line(r#"{"method":"notifications/message"}"#));
        }
        for _ in 0..=MAX_NOISE {
            connection.receive(line("npm warn deprecated"));
        }
        assert!(connection.is_only_noise());
    }

    #[tokio::test]
    async fn one_that_retires_takes_nothing_new_and_finishes_what_it_has() {
        let connection = connection();
        let call = connection.request("a", b"").unwrap();
        assert!(!connection.retire_if_idle(&cause()));
        connection.retire(&cause());
        let late = connection.request("b", b"").map(|_| ());
        assert!(matches!(late, Err(CallError::NotSent(_))));
        let mut drained = std::pin::pin!(connection.drained());
        assert!(futures_util::poll!(&mut drained).is_pending());
        connection.receive(line(r#"{"id":1,"result":"one"}"#));
        drained.await;
        assert_eq!(call.await.unwrap(), "\"one\"");
    }

    #[tokio::test]
    async fn one_that_retires_idle_is_drained_at_once() {
        let connection = connection();
        connection.retire(&cause());
        connection.drained().await;
    }
}
