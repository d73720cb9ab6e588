//! Requests that nobody waits for any more.

use super::Connection;
use crate::{
    mcp::outgoing,
    transport::outbox::{Frame, Head},
};
use tokio::time::Instant;

impl Connection {
    pub(super) fn forget(&self, id: u64) {
        if self.remove(id).is_some() {
            self.table.lock().forgotten.insert(id);
        }
    }

    /// A request that was given up is answered all the same: it is over now. Counted, as all that is late.
    pub(super) fn late(&self, id: u64) -> bool {
        let is_ghost = self.table.lock().ghosts.remove(&id).is_some();
        if is_ghost {
            self.odd();
        }
        is_ghost
    }

    pub(super) fn abandon(&self, id: u64) {
        let agent = {
            let mut table = self.table.lock();
            let Some(pending) = table.pending.remove(&id) else {
                return;
            };
            self.ring_if_drained(&table);
            if self.outbox.take_back(id) {
                drop(table);
                return self.questions.answered(id);
            }
            // Nothing comes of a probe but its answer.
            if pending.is_probe {
                drop(table);
                return self.tell_cancelled(id);
            }
            // The server may work on it for a while, and ask.
            let agent = pending.call.map_or(0, |call| call.agent.id());
            table.ghosts.insert(id, (agent, Instant::now()));
            agent
        };
        self.questions.given_up(id, agent);
        self.tell_cancelled(id);
    }

    pub(super) fn tell_cancelled(&self, id: u64) {
        self.take_back(id, "the caller went away");
    }

    /// Tells the server that nobody waits for a request any more.
    pub(super) fn take_back(&self, id: u64, reason: &str) {
        self.outbox.push_always(Frame {
            id: None,
            bytes: outgoing::cancelled(id, reason),
            head: Head {
                method: "notifications/cancelled",
                cancels: Some(id),
                modern: self.is_modern(),
                ..Head::default()
            },
        });
    }
}
