//! The way back to a client.

use bytes::Bytes;
use tokio::sync::mpsc;

/// One message to a client, with its end of line.
#[derive(Debug)]
pub struct Message {
    /// JSON text.
    pub text: Bytes,
    /// What it is to its receiver.
    pub kind: Kind,
}

/// What a message is to its receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// News: nothing is expected of it.
    News,
    /// A question, which wants an answer.
    Question,
    /// The end of a request: a result, or an error of this code.
    Answer(Option<i64>),
}

/// The way back to a client, for what belongs to one request or to none.
#[derive(Debug, Clone)]
pub struct Out(mpsc::Sender<Message>);

impl Out {
    /// A way back on which so many messages may wait.
    pub fn new(waiting: usize) -> (Self, mpsc::Receiver<Message>) {
        let (to, from) = mpsc::channel(waiting);
        (Self(to), from)
    }

    /// Sends what must not be lost. False when nobody is there any more.
    pub async fn send(&self, text: Bytes, kind: Kind) -> bool {
        self.0.send(Message { text, kind }).await.is_ok()
    }

    /// Waits for room for one message. `None` when nobody is there any more.
    pub(super) async fn room(&self) -> Option<mpsc::Permit<'_, Message>> {
        self.0.reserve().await.ok()
    }

    /// Sends news, which may be lost on a client that does not read.
    pub(super) fn offer(&self, text: Bytes) {
        let kind = Kind::News;
        let _ = self.0.try_send(Message { text, kind });
    }

    /// Done when nobody is there any more.
    pub(super) async fn closed(&self) {
        self.0.closed().await;
    }

    /// Whether somebody is there.
    pub fn is_open(&self) -> bool {
        !self.0.is_closed()
    }

    /// The same way, which this does not keep open.
    pub fn downgrade(&self) -> WeakOut {
        WeakOut(self.0.downgrade())
    }
}

/// A way back that is there for as long as somebody else keeps it open.
#[derive(Debug, Clone)]
pub struct WeakOut(mpsc::WeakSender<Message>);

impl WeakOut {
    /// The way back, if it is still open.
    pub fn upgrade(&self) -> Option<Out> {
        self.0.upgrade().map(Out)
    }
}
