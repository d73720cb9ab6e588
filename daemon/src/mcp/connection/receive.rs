//! What comes from the server: each answer to whoever waits for it.

use super::{CallError, Connection, Reply};
use crate::{
    mcp::{
        envelope::{self, EnvelopeError, Incoming, RpcError},
        salvage,
    },
    transport::lines::Line,
};
use bytes::Bytes;
use std::sync::{Arc, atomic::Ordering};

impl Connection {
    /// Takes a line from the server.
    pub fn receive(self: &Arc<Self>, line: Line) {
        match line {
            Line::Whole(line) if self.has_batches() => match envelope::batch(&line) {
                Some(messages) => {
                    for message in messages {
                        self.receive_message(&message);
                    }
                }
                None => self.receive_message(&line),
            },
            Line::Whole(line) => self.receive_message(&line),
            Line::Oversized { head, tail, length } => {
                let found = salvage::id_of_oversized(&head, &tail);
                self.settle_or_count(found, || Err(CallError::TooLarge(length)));
            }
        }
    }

    fn receive_message(self: &Arc<Self>, message: &Bytes) {
        match envelope::parse(message) {
            Ok(message) => {
                self.received.fetch_add(1, Ordering::Relaxed);
                self.noise_in_a_row.store(0, Ordering::Relaxed);
                self.dispatch(message);
            }
            Err(error) => self.spoiled(message, &error),
        }
    }

    fn dispatch(self: &Arc<Self>, message: Incoming) {
        match message {
            Incoming::Response { id, outcome } => {
                self.answered(id, outcome);
            }
            Incoming::Request { id, method, params } => self.asked(id, method, params),
            Incoming::Notification { method, params } => self.told(&method, &params),
        }
    }

    fn spoiled(&self, line: &Bytes, error: &EnvelopeError) {
        // What is good JSON and yet no message is somebody else's: a log line, perhaps.
        let id = match error {
            EnvelopeError::NotText(_) | EnvelopeError::Malformed(_) => salvage::id_of_spoiled(line),
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

    pub(super) fn answered(self: &Arc<Self>, id: u64, outcome: Result<Bytes, RpcError>) {
        match self.remove(id) {
            Some(pending) => {
                if let Err(error) = &outcome {
                    self.note_pages(&pending, error);
                }
                self.questions.answered(id);
                let had_level = pending
                    .call
                    .as_ref()
                    .is_some_and(|call| call.log_level.is_some());
                self.settle(pending, outcome.map_err(CallError::Rpc));
                if had_level && !self.is_modern() {
                    self.adjust_level(None);
                }
            }
            None if self.late(id) => self.questions.answered(id),
            None if self.listen_ended(id, || outcome.err().map(|error| error.message)) => {}
            None if self.table.lock().forgotten.remove(&id) => {}
            None => self.odd(),
        }
    }

    /// Gives a request its outcome. Late, repeated and unknown answers are dropped and counted.
    fn settle_or_count(&self, id: Option<u64>, reply: impl FnOnce() -> Reply) {
        match id.and_then(|id| self.remove(id)) {
            Some(pending) => {
                id.into_iter().for_each(|id| self.questions.answered(id));
                self.settle(pending, reply());
            }
            None => self.odd(),
        }
    }
}
