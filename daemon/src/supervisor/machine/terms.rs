//! The words in which the life of a server is told.

use crate::supervisor::restart::Run;
use std::{ops::Sub, time::Duration};

/// A moment, counted from when the server began to be looked after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mono(Duration);

impl Mono {
    /// So long after the beginning.
    pub const fn new(since_beginning: Duration) -> Self {
        Self(since_beginning)
    }

    /// So many seconds after the beginning.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// How long after the beginning.
    pub const fn since_beginning(self) -> Duration {
        self.0
    }

    pub(super) fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

impl Sub for Mono {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// Counts the processes of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Generation(pub u64);

/// How long each thing may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// From the start of the process to the end of the handshake.
    pub start: Duration,
    /// From no longer sending it calls to closing its input, when it is replaced.
    pub drain: Duration,
    /// From closing its input to asking it to end.
    pub close: Duration,
    /// From asking it to end to ending it.
    pub terminate: Duration,
    /// From ending it to doing without the news of its end.
    pub abandon: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(60),
            drain: Duration::from_secs(10),
            close: Duration::from_secs(2),
            terminate: Duration::from_secs(3),
            abandon: Duration::from_secs(5),
        }
    }
}

/// Where a server is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// No process, and none wanted.
    Stopped,
    /// No process yet: others are being started first.
    Queued,
    /// A process whose handshake is under way.
    Starting {
        /// When it was started.
        since: Mono,
    },
    /// A process that answers calls.
    Ready {
        /// Since when.
        since: Mono,
        /// How long it took to become so.
        startup: Duration,
    },
    /// No process; one is started later.
    Backoff {
        /// When.
        until: Mono,
    },
    /// As `Backoff`, after too many ends.
    CrashLoop {
        /// Since when.
        since: Mono,
        /// When the next try is.
        until: Mono,
    },
    /// No process, and trying again would not help.
    Failed {
        /// Since when.
        since: Mono,
    },
    /// A process that is being ended.
    Stopping {
        /// How far that has come.
        step: StopStep,
        /// When the next step is due.
        until: Mono,
        /// What follows.
        then: Then,
    },
}

/// How a process is ended: each step is harder than the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopStep {
    /// It gets no new calls; those under way are waited for.
    Draining,
    /// Its input was closed.
    Closed,
    /// It was asked to end.
    Terminated,
    /// It was ended. Only the system can still hold it.
    Killed,
}

/// What follows the end of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// Nothing.
    Rest,
    /// A new process, at once.
    Restart,
    /// What the budget says: it did not end of anybody's will.
    Recover(Run),
}

/// What somebody wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// An operator: it should run.
    Start,
    /// An operator: it should not run.
    Stop,
    /// An operator: it should run, in a new process.
    Restart,
    /// A caller: it should run, if there is hope.
    Demand,
    /// Nobody has needed it for long: it need not run. No call is under way.
    Rest,
    /// What it runs has changed: if it is wanted, in a new process once its calls are done.
    Replace,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Somebody wants something.
    Command(Command),
    /// It is its turn to be started.
    Turn(Generation),
    /// The process could not be started, and trying again would not help.
    CannotSpawn(Generation),
    /// The process could not be started this time.
    SpawnFailed(Generation),
    /// The system has no room for another process now, whichever it is.
    NoRoom(Generation),
    /// The handshake is done.
    Ready(Generation),
    /// The handshake failed.
    HandshakeFailed(Generation),
    /// The process may live, but there is no talking to it: it has closed a pipe, or hangs.
    GaveUp(Generation),
    /// No call is under way any more.
    Drained(Generation),
    /// The process has ended by itself, well and with nothing to do.
    Left(Generation),
    /// The process has ended.
    Exited(Generation),
    /// There is no talking to it until somebody does something about that, and nothing is left of it.
    Denied(Generation),
    /// The process has ended because it was greeted in a way that it does not know. That is our fault, and
    /// the next one is greeted in another.
    Misgreeted(Generation),
    /// Time has passed.
    Tick,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Wait for its turn to be started.
    Queue(Generation),
    /// Start a process.
    Spawn(Generation),
    /// Send it no new calls, and tell when those under way are done.
    Retire(Generation),
    /// Close its input.
    CloseInput(Generation),
    /// Ask it to end.
    Terminate(Generation),
    /// End it.
    Kill(Generation),
    /// Do without it: not even the system can end it. It counts as ended.
    Abandon(Generation),
}

/// What became of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is being carried out.
    Accepted,
    /// There was nothing to do.
    AlreadyTrue,
    /// It cannot be done now.
    Refused,
}
