//! What the world may know of a server's process: published by its actor, read by everybody.

use super::machine::{Command, Machine, State};
use crate::mcp::{
    connection::Connection,
    handshake::{ServerInfo, ToolList},
};
use nexus_proto::reason::{Failure, Reason};
use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

/// A caller waits this long for the next try, and no longer.
const WORTH_WAITING: Duration = Duration::from_secs(5);

/// A server's process as it is now.
#[derive(Debug, Clone)]
pub struct Status {
    /// Where it is in its life.
    pub state: State,
    /// Since when, for people.
    pub state_since: SystemTime,
    /// When it is tried again, for people.
    pub next_try: Option<SystemTime>,
    /// Whether it is meant to run.
    pub wanted: bool,
    /// The process.
    pub pid: Option<u32>,
    /// How many processes there have been.
    pub generation: u64,
    /// How often it was started again without anyone asking.
    pub restarts: u32,
    /// The connection, while it is ready. Calls go straight through it.
    pub connection: Option<Arc<Connection>>,
    /// What it said of itself, also after it has ended.
    pub info: Option<Arc<ServerInfo>>,
    /// Its tools, also after it has ended: they are what it will have again. `None` until they
    /// have been listed once.
    pub tools: Option<Arc<ToolList>>,
    /// Why its tools could not be listed.
    pub list_error: Option<String>,
    /// How many questions whether it lives it has left unanswered.
    pub silences: u32,
    /// How long the last answer took.
    pub latency: Option<Duration>,
    /// Why it last ended or could not start.
    pub last_failure: Option<Arc<PastFailure>>,
}

/// Why a process ended or could not start, and when.
#[derive(Debug)]
pub struct PastFailure {
    /// Why.
    pub failure: Arc<Failure>,
    /// When.
    pub at: SystemTime,
}

/// Whether a call can be sent now.
#[derive(Debug)]
pub enum Readiness {
    /// Through this connection.
    Ready(Arc<Connection>),
    /// Not yet: wait for a change.
    Wait,
    /// No, and waiting would not help.
    Refused(Failure),
}

impl Status {
    /// A server that does not run yet.
    pub fn new() -> Self {
        Self {
            state: State::Stopped,
            state_since: SystemTime::now(),
            next_try: None,
            wanted: false,
            pid: None,
            generation: 0,
            restarts: 0,
            connection: None,
            info: None,
            tools: None,
            list_error: None,
            silences: 0,
            latency: None,
            last_failure: None,
        }
    }

    /// Takes over where the machine is. `now` is the same moment on both clocks.
    pub(super) fn follow(&mut self, machine: &Machine, now: SystemTime, mono: Duration) {
        let state = machine.state();
        if std::mem::discriminant(&state) != std::mem::discriminant(&self.state) {
            self.state_since = now;
        }
        self.state = state;
        self.next_try = match state {
            State::Backoff { until } | State::CrashLoop { until } => {
                Some(now + until.since_start().saturating_sub(mono))
            }
            _ => None,
        };
        self.wanted = machine.wanted();
        self.generation = machine.generation().0;
        self.restarts = machine.restarts();
    }

    /// Whether a call can be sent now.
    pub fn readiness(&self) -> Readiness {
        if let Some(connection) = &self.connection {
            return Readiness::Ready(Arc::clone(connection));
        }
        match self.state {
            State::Stopped => {
                Readiness::Refused(Failure::new(Reason::ServerStopped, "the server is stopped"))
            }
            State::Failed => Readiness::Refused(self.cause()),
            State::CrashLoop { .. } => {
                let failure = self.refusal();
                Readiness::Refused(Failure {
                    reason: Reason::CrashLoop,
                    message: format!("the server keeps ending: {}", failure.message),
                    ..failure
                })
            }
            State::Backoff { .. } if self.next_try_in() > WORTH_WAITING => {
                Readiness::Refused(self.refusal())
            }
            State::Stopping { .. } if !self.wanted => Readiness::Refused(Failure::new(
                Reason::ServerStopped,
                "the server is being stopped",
            )),
            State::Starting { .. }
            | State::Ready { .. }
            | State::Backoff { .. }
            | State::Stopping { .. } => Readiness::Wait,
        }
    }

    /// Whether nothing more will happen by itself soon.
    pub fn is_settled(&self, command: Command) -> bool {
        match command {
            // Somebody may want it again before it is gone.
            Command::Stop => matches!(self.state, State::Stopped) || self.wanted,
            Command::Start | Command::Restart => {
                matches!(
                    self.state,
                    State::Failed | State::CrashLoop { .. } | State::Stopped
                ) || self.connection.is_some()
            }
        }
    }

    /// Why it does not run, and when it will be tried again.
    pub fn refusal(&self) -> Failure {
        let retry_after = Some(self.next_try_in());
        self.cause()
            .with(|details| details.retry_after = retry_after)
    }

    fn next_try_in(&self) -> Duration {
        let left = |at: SystemTime| at.duration_since(SystemTime::now()).ok();
        self.next_try.and_then(left).unwrap_or_default()
    }

    fn cause(&self) -> Failure {
        match &self.last_failure {
            Some(past) => (*past.failure).clone(),
            None => Failure::new(Reason::Internal, "the server failed for an unknown reason"),
        }
    }
}

impl Default for Status {
    fn default() -> Self {
        Self::new()
    }
}
