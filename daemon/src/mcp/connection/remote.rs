//! A connection whose messages are carried over HTTP.

use super::{CallError, Connection};
use crate::{
    agent::Answers,
    mcp::{envelope, handshake},
    transport::{
        http::{Peer, Trouble},
        lines::Line,
        outbox::Outbox,
    },
};
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// A connection, as whoever carries its messages sees it.
#[derive(Debug)]
pub struct Remote {
    /// The connection.
    pub connection: Arc<Connection>,
    /// What our callers can be asked.
    pub answers: Answers,
}

impl Peer for Remote {
    fn outbox(&self) -> &Outbox {
        &self.connection.outbox
    }

    fn receive(&self, message: Line) {
        self.connection.receive(message);
    }

    fn waits_for(&self, id: u64) -> bool {
        self.connection.table.lock().pending.contains_key(&id)
            || self.connection.listens.lock().contains_key(&id)
    }

    fn settle(&self, id: u64, trouble: Trouble) {
        let error = match trouble {
            Trouble::Status(body, failure) => match envelope::error_in(&body) {
                Some(error) => CallError::Rpc(error),
                None => CallError::Refused(Arc::new(failure)),
            },
            Trouble::Refused(failure) => CallError::Refused(Arc::new(failure)),
            Trouble::Dropped(why) => CallError::Dropped(why),
            Trouble::TooLarge(size) => CallError::TooLarge(size),
            Trouble::NotMcp(what) => CallError::Malformed(what),
        };
        self.connection.trouble(id, error);
    }

    fn revision(&self) -> Option<&'static str> {
        let terms = self.connection.terms()?;
        Some(terms.revision.as_str())
    }

    fn renew(&self) -> BoxFuture<'static, Result<(), String>> {
        let (connection, answers) = (Arc::clone(&self.connection), self.answers);
        Box::pin(async move {
            handshake::introduce_again(&connection, answers).await?;
            connection.renewed();
            Ok(())
        })
    }
}

impl Connection {
    /// A request will not be answered. One that has been is left alone.
    fn trouble(&self, id: u64, error: CallError) {
        match self.remove(id) {
            Some(pending) => self.settle(pending, Err(error)),
            None => {
                // What was answered comes here too: most of the time there is nothing to be said.
                let why = || error.into_failure("listening").message;
                if !self.listen_ended(id, || Some(why())) {
                    self.table.lock().forgotten.remove(&id);
                }
            }
        }
    }

    /// The server knows nothing of what it was told before.
    fn renewed(self: &Arc<Self>) {
        let level = self.level.lock().told;
        if let Some(level) = level {
            self.tell_level(level);
        }
        self.changes.note_all();
        self.renewals.send_modify(|times| *times += 1);
    }
}
