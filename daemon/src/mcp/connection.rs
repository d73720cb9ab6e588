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
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
};
use tokio::sync::{Notify, mpsc, oneshot};

/// How much of each end of a line is searched for an id.
const SEARCHED: usize = 4096;

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
#[derive(Debug, Default)]
pub struct Connection {
    /// What is to be written.
    pub outbox: Outbox,
    /// Rung when the server says that its tools have changed.
    pub tools_changed: Notify,
    table: Mutex<Table>,
    last_id: AtomicU64,
    oddities: AtomicU64,
    received: AtomicU64,
}

#[derive(Debug, Default)]
struct Table {
    pending: HashMap<u64, Pending>,
    ended: Option<Arc<Failure>>,
}

#[derive(Debug)]
struct Pending {
    reply: oneshot::Sender<Reply>,
    progress: Option<mpsc::Sender<Progress>>,
}

impl Connection {
    /// Sends a request. `params` is JSON text, empty for none.
    pub fn request(self: &Arc<Self>, method: &str, params: &[u8]) -> Result<Waiting, CallError> {
        self.begin(None, |id| outgoing::request(id, method, params))
    }

    /// Calls a tool. `arguments` is JSON text, empty for none.
    pub fn call_tool(
        self: &Arc<Self>,
        tool: &str,
        arguments: &[u8],
        progress: Option<mpsc::Sender<Progress>>,
    ) -> Result<Waiting, CallError> {
        let wants_progress = progress.is_some();
        self.begin(progress, |id| {
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

    /// How many messages have come: a number that grows is a sign of life.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Ends the connection: every request that waits gets its one outcome now.
    pub fn end(&self, cause: &Arc<Failure>) {
        // In this order: whoever finds the outbox closed finds the cause in the table.
        let pending = {
            let mut table = self.table.lock();
            table.ended = Some(Arc::clone(cause));
            std::mem::take(&mut table.pending)
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
        progress: Option<mpsc::Sender<Progress>>,
        frame: impl FnOnce(u64) -> Bytes,
    ) -> Result<Waiting, CallError> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let bytes = frame(id);
        let (reply, answer) = oneshot::channel();
        {
            let mut table = self.table.lock();
            if let Some(cause) = &table.ended {
                return Err(CallError::NotSent(Arc::clone(cause)));
            }
            table.pending.insert(id, Pending { reply, progress });
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
                self.table.lock().pending.remove(&id);
                Err(CallError::Overloaded)
            }
            // It ended between the two locks.
            Err(PushError::Closed) => {
                let ended = self.table.lock().ended.clone();
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
                _ => outgoing::error_response(&id, -32601, "Method not found"),
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
        self.settle_or_count(id, || Err(CallError::Malformed(error.to_string())));
    }

    /// Gives a request its outcome. Late, repeated and unknown answers are dropped and counted.
    fn settle_or_count(&self, id: Option<u64>, reply: impl FnOnce() -> Reply) {
        match id.and_then(|id| self.table.lock().pending.remove(&id)) {
            Some(pending) => {
                let _ = pending.reply.send(reply());
            }
            None => self.odd(),
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
        if self.table.lock().pending.remove(&id).is_none() || self.outbox.take_back(id) {
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
        let connection = Arc::new(Connection::default());
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
        let connection = Arc::new(Connection::default());
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
        assert_eq!(connection.oddities(), 5);
    }

    #[tokio::test]
    async fn the_end_tells_what_was_written_from_what_was_not() {
        let connection = Arc::new(Connection::default());
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
        let connection = Arc::new(Connection::default());
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
        let connection = Arc::new(Connection::default());
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
        let connection = Arc::new(Connection::default());
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
        let connection = Arc::new(Connection::default());
        connection.receive(line(r#"{"id":"p","method":"ping"}"#));
        connection.receive(line(r#"{"id":8,"method":"sampling/createMessage"}"#));
        let answers = written(&connection).await;
        assert_eq!(answers[0]["result"], serde_json::json!({}));
        assert_eq!(answers[1]["error"]["code"], -32601);
    }
}
