//! One process of a server, or the place for one.

use super::{
    gate::{Gate, Pass},
    key::{Caller, Key},
    server::Server,
};
use crate::{
    mcp::connection::Connection,
    supervisor::{
        Instance,
        machine::{Command, State},
        status::{Readiness, Status},
    },
};
use nexus_proto::reason::{Failure, Reason};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

/// How long one that nobody can find any more may finish its calls.
const FAREWELL: Duration = Duration::from_secs(10);

/// One process of a server, or the place for one.
#[derive(Debug)]
pub struct Member {
    /// Whose it is.
    pub key: Key,
    /// Tells it from the others that the server has had.
    pub number: u32,
    pub(super) instance: Instance,
    pub(super) gate: Arc<Gate>,
}

/// The right to make one call, and where.
#[derive(Debug)]
pub struct Admission {
    /// The process.
    pub member: Arc<Member>,
    pub(super) _pass: Pass,
}

impl Member {
    /// What is known of its process now. Not to be held across an await, nor looked at twice at once.
    pub fn current(&self) -> watch::Ref<'_, Status> {
        self.instance.current()
    }

    /// Whether a caller may know of it: it is the operator, or it may share it.
    pub fn is_for(&self, caller: &Caller) -> bool {
        caller.standing.is_operator() || self.key.whose.has(caller)
    }

    /// Calls that are under way, and those that wait for their turn.
    pub fn counts(&self) -> (usize, usize) {
        self.gate.counts()
    }

    /// Its connection, waited for if it is on its way. Whoever waits for a start that fails is told
    /// why, and does not wait for the next one.
    pub async fn ready(&self, server: &Server) -> Result<Arc<Connection>, Failure> {
        // The way of every call, and short.
        if let Some(connection) = &self.instance.current().connection {
            return Ok(Arc::clone(connection));
        }
        let mut status = self.instance.status();
        let known_failure = status.borrow().last_failure.clone();
        loop {
            let asleep = {
                let status = status.borrow_and_update();
                let asleep = match status.readiness() {
                    Readiness::Ready(connection) => return Ok(connection),
                    Readiness::Refused(failure) => {
                        if status.has_hope() {
                            self.instance.hint_demand();
                        }
                        return Err(server.about(failure));
                    }
                    Readiness::Asleep if server.is_held() => return Err(server.stopped()),
                    Readiness::Asleep => true,
                    Readiness::Wait => false,
                };
                let failed_meanwhile = match (&status.last_failure, &known_failure) {
                    (Some(now), Some(before)) => !Arc::ptr_eq(now, before),
                    (now, _) => now.is_some(),
                };
                if failed_meanwhile && matches!(status.state, State::Backoff { .. } | State::Queued)
                {
                    return Err(server.about(status.refusal()));
                }
                asleep
            };
            if asleep {
                self.instance.demand().await;
            }
            if status.changed().await.is_err() {
                let message = "the server's supervisor has gone";
                return Err(server.about(Failure::new(Reason::Internal, message)));
            }
        }
    }

    /// Waits until a connection that has ended is no longer offered.
    pub async fn lost(&self, connection: &Arc<Connection>) {
        let is_other = |status: &Status| !offers(status, connection);
        let _ = self.instance.status().wait_for(is_other).await;
    }

    pub(super) fn has_lost(&self, connection: &Arc<Connection>) -> bool {
        !offers(&self.instance.current(), connection)
    }

    /// Whether there is no process, and none is being ended.
    pub(super) fn is_at_rest(&self) -> bool {
        self.instance.current().state == State::Stopped
    }

    /// Nobody can find it any more: it finishes its calls, and ends.
    pub(super) async fn end(&self) {
        let started = Instant::now();
        while self.gate.load() > 0 && started.elapsed() < FAREWELL {
            sleep(Duration::from_millis(10)).await;
        }
        self.instance.command(Command::Stop).await;
        let stopped = |status: &Status| status.is_settled(Command::Stop);
        let _ = self.instance.status().wait_for(stopped).await;
    }
}

fn offers(status: &Status, connection: &Arc<Connection>) -> bool {
    let offered = status.connection.as_ref();
    offered.is_some_and(|offered| Arc::ptr_eq(offered, connection))
}
