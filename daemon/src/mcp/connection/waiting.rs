//! A request that has been sent, until its answer comes.

use super::{CallError, Connection, Reply};
use nexus_proto::reason::{Failure, Reason};
use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tokio::sync::oneshot;

/// A request that has been sent. Dropping it cancels the request.
#[derive(Debug)]
pub struct Waiting {
    connection: Arc<Connection>,
    id: u64,
    answer: oneshot::Receiver<Reply>,
    settled: bool,
    /// The server is not told when nobody waits any more.
    quiet: bool,
}

impl Waiting {
    pub(super) fn new(
        connection: Arc<Connection>,
        id: u64,
        answer: oneshot::Receiver<Reply>,
    ) -> Self {
        Self {
            connection,
            id,
            answer,
            settled: false,
            quiet: false,
        }
    }

    /// The same, except that the server is not told when nobody waits any more: the answer is let go then.
    pub fn quietly(mut self) -> Self {
        self.quiet = true;
        self
    }
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
        match (self.settled, self.quiet) {
            (true, _) => {}
            (false, true) => self.connection.forget(self.id),
            (false, false) => self.connection.abandon(self.id),
        }
    }
}
