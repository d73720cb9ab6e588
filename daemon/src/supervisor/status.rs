//! What the world may know of a server's process: published by its actor, read by everybody.

use super::machine::{Command, HOPE, Machine, State};
use crate::mcp::connection::Connection;
use nexus_proto::reason::{Failure, Reason};
use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::time::Instant;

/// A caller waits this long for the next try, and no longer.
const WORTH_WAITING: Duration = Duration::from_secs(5);

/// A server's process as it is now.
#[derive(Debug, Clone)]
pub struct Status {
    /// Where it is in its life.
    pub state: State,
    /// Since when, for people.
    pub state_since: SystemTime,
    /// Why it is where it is.
    pub cause: String,
    /// When it is tried again, for people.
    pub next_try: Option<SystemTime>,
    /// The same, for decisions: the clock on the wall may jump.
    next_try_at: Option<Instant>,
    /// From when on a call may have it tried, though it keeps ending or cannot start.
    hope_at: Option<Instant>,
    /// It keeps ending, also while it is being tried again.
    pub looping: bool,
    /// How many processes could not be ended, not even by the system.
    pub leaked: u32,
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
    /// No process, and none on its way: it has to be wanted first.
    Asleep,
    /// No, and waiting would not help.
    Refused(Failure),
}

impl Status {
    /// A server that does not run yet.
    pub fn new() -> Self {
        Self {
            state: State::Stopped,
            state_since: SystemTime::now(),
            cause: String::new(),
            next_try: None,
            next_try_at: None,
            hope_at: None,
            looping: false,
            leaked: 0,
            wanted: false,
            pid: None,
            generation: 0,
            restarts: 0,
            connection: None,
            silences: 0,
            latency: None,
            last_failure: None,
        }
    }

    /// Whatever was known of its process is no longer so. Its number is not given again.
    pub(super) fn forget(&mut self) {
        *self = Self {
            generation: self.generation,
            restarts: self.restarts,
            leaked: self.leaked,
            ..Self::new()
        };
    }

    /// Takes over where the machine is, and why. `mono` is now. Returns whether that is news.
    pub(super) fn follow(&mut self, machine: &Machine, mono: Duration, cause: &str) -> bool {
        let state = machine.state();
        let before = (self.state, self.wanted, self.generation, self.looping);
        let news = (
            state,
            machine.wanted(),
            machine.generation().0,
            machine.is_looping(),
        );
        self.restarts = machine.restarts();
        if news == before {
            return false;
        }
        let now = SystemTime::now();
        if std::mem::discriminant(&state) != std::mem::discriminant(&self.state) {
            self.state_since = now;
            cause.clone_into(&mut self.cause);
        }
        (self.state, self.wanted, self.generation, self.looping) = news;
        let left = match state {
            State::Backoff { until } | State::CrashLoop { until, .. } => {
                Some(until.since_beginning().saturating_sub(mono))
            }
            _ => None,
        };
        self.next_try = left.map(|left| now + left);
        self.next_try_at = left.map(|left| Instant::now() + left);
        self.hope_at = match state {
            State::CrashLoop { .. } | State::Failed { .. } => Some(Instant::now() + HOPE),
            _ => None,
        };
        true
    }

    /// Whether a call can be sent now.
    pub fn readiness(&self) -> Readiness {
        if let Some(connection) = &self.connection {
            return Readiness::Ready(Arc::clone(connection));
        }
        match self.state {
            State::Stopped => Readiness::Asleep,
            State::Failed { .. } => Readiness::Refused(self.cause()),
            State::CrashLoop { .. } => Readiness::Refused(self.keeps_ending()),
            // It is being tried once more; whoever waited for that might wait in vain, again and again.
            State::Queued | State::Starting { .. } if self.looping => {
                Readiness::Refused(self.keeps_ending())
            }
            State::Backoff { .. } if self.next_try_in() > WORTH_WAITING => {
                Readiness::Refused(self.refusal())
            }
            State::Stopping { .. } if !self.wanted => Readiness::Asleep,
            State::Queued
            | State::Starting { .. }
            | State::Ready { .. }
            | State::Backoff { .. }
            | State::Stopping { .. } => Readiness::Wait,
        }
    }

    /// Whether a call may have it tried, though it keeps ending or cannot start.
    pub fn has_hope(&self) -> bool {
        // Whoever wants another credential does not want to be shown the old one again.
        !self.needs_auth() && self.hope_at.is_some_and(|at| at <= Instant::now())
    }

    /// Whether it waits for a credential.
    pub fn needs_auth(&self) -> bool {
        let past = self.last_failure.as_ref();
        matches!(self.state, State::Failed { .. })
            && past.is_some_and(|past| past.failure.reason == Reason::NeedsAuth)
    }

    /// Whether nothing more will happen by itself soon.
    pub fn is_settled(&self, command: Command) -> bool {
        match command {
            // Somebody may want it again before it is gone.
            Command::Stop | Command::Rest => matches!(self.state, State::Stopped) || self.wanted,
            Command::Start | Command::Restart | Command::Demand | Command::Replace => {
                matches!(
                    self.state,
                    State::Failed { .. } | State::CrashLoop { .. } | State::Stopped
                ) || self.connection.is_some()
            }
        }
    }

    /// Why it does not run, and when it will be tried again.
    pub fn refusal(&self) -> Failure {
        let next_try = self.next_try_at.map(|_| self.next_try_in());
        self.cause().with(|details| {
            details.retry_after = next_try.or(details.retry_after);
        })
    }

    fn keeps_ending(&self) -> Failure {
        let failure = self.refusal();
        let what = match failure.reason {
            Reason::Unreachable | Reason::HttpError => "the server keeps failing",
            _ => "the server keeps ending",
        };
        Failure {
            reason: Reason::CrashLoop,
            message: format!("{what}: {}", failure.message),
            ..failure
        }
    }

    fn next_try_in(&self) -> Duration {
        let left = |at: Instant| at.saturating_duration_since(Instant::now());
        self.next_try_at.map(left).unwrap_or_default()
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
