//! The life of one server, as a pure function: no clock, no dice, no I/O.
//!
//! What is wanted is kept apart from what is. Each process has a [`Generation`]; news of an
//! earlier one changes nothing. The next thing to do in time is [`Machine::deadline`], derived
//! from the state, so there is no timer to forget.

use super::restart::{RestartBudget, Run, Verdict};
use std::{ops::Sub, time::Duration};

/// A moment, counted from the start of the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mono(Duration);

impl Mono {
    /// So long after the start of the daemon.
    pub const fn new(since_start: Duration) -> Self {
        Self(since_start)
    }

    /// So many seconds after the start of the daemon.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// How long after the start of the daemon.
    pub const fn since_start(self) -> Duration {
        self.0
    }

    fn plus(self, duration: Duration) -> Self {
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
    /// From closing its input to asking it to end.
    pub close: Duration,
    /// From asking it to end to ending it.
    pub terminate: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(60),
            close: Duration::from_secs(2),
            terminate: Duration::from_secs(3),
        }
    }
}

/// Where a server is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// No process, and none wanted.
    Stopped,
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
        /// When the next try is.
        until: Mono,
    },
    /// No process, and trying again would not help.
    Failed,
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

/// What an operator wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// It should run.
    Start,
    /// It should not run.
    Stop,
    /// It should run, in a new process.
    Restart,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// An operator wants something.
    Command(Command),
    /// The process could not be started, and trying again would not help.
    CannotSpawn(Generation),
    /// The process could not be started this time.
    SpawnFailed(Generation),
    /// The handshake is done.
    Ready(Generation),
    /// The handshake failed.
    HandshakeFailed(Generation),
    /// The process may live, but there is no talking to it: it has closed a pipe, or hangs.
    GaveUp(Generation),
    /// The process has ended.
    Exited(Generation),
    /// Time has passed.
    Tick,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Start a process.
    Spawn(Generation),
    /// Close its input.
    CloseInput(Generation),
    /// Ask it to end.
    Terminate(Generation),
    /// End it.
    Kill(Generation),
}

/// What became of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is being carried out.
    Accepted,
    /// There was nothing to do.
    AlreadyTrue,
}

/// The life of one server.
#[derive(Debug, Clone)]
pub struct Machine {
    state: State,
    wanted: bool,
    generation: Generation,
    restarts: u32,
    limits: Limits,
    budget: RestartBudget,
}

impl Machine {
    /// A server that does not run yet.
    pub fn new(limits: Limits, seed: u64) -> Self {
        Self {
            state: State::Stopped,
            wanted: false,
            generation: Generation::default(),
            restarts: 0,
            limits,
            budget: RestartBudget::new(seed),
        }
    }

    /// How long a start may take from now on.
    pub fn set_start_limit(&mut self, limit: Duration) {
        self.limits.start = limit;
    }

    /// Where it is.
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether it is meant to run.
    pub fn wanted(&self) -> bool {
        self.wanted
    }

    /// The newest process.
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// How often it was started again without anyone asking.
    pub fn restarts(&self) -> u32 {
        self.restarts
    }

    /// When `step` wants to be called next, if nothing happens before.
    pub fn deadline(&self) -> Option<Mono> {
        match self.state {
            State::Starting { since } => Some(since.plus(self.limits.start)),
            State::Backoff { until } | State::CrashLoop { until } => Some(until),
            State::Stopping { until, step, .. } if step != StopStep::Killed => Some(until),
            State::Stopping { .. } | State::Stopped | State::Ready { .. } | State::Failed => None,
        }
    }

    /// What a command would come to now.
    pub fn answer(&self, command: Command) -> Outcome {
        let nothing_to_do = matches!(
            (command, self.state),
            (Command::Start, State::Starting { .. } | State::Ready { .. })
                | (Command::Stop, State::Stopped)
                | (
                    Command::Stop,
                    State::Stopping {
                        then: Then::Rest,
                        ..
                    },
                )
        );
        if nothing_to_do {
            Outcome::AlreadyTrue
        } else {
            Outcome::Accepted
        }
    }

    /// Something happened: what is to be done?
    pub fn step(&mut self, now: Mono, event: Event) -> Option<Action> {
        match event {
            Event::Command(command) => self.command(now, command),
            Event::Tick => self.tick(now),
            Event::CannotSpawn(g) if self.is_starting(g) => {
                self.state = State::Failed;
                None
            }
            Event::SpawnFailed(g) if self.is_starting(g) => self.recover(now, Run::NeverReady),
            Event::Ready(g) if self.is_starting(g) => {
                if let State::Starting { since } = self.state {
                    self.state = State::Ready {
                        since: now,
                        startup: now - since,
                    };
                }
                None
            }
            Event::HandshakeFailed(g) if self.is_starting(g) => {
                Some(self.begin_stop(now, Then::Recover(Run::NeverReady)))
            }
            Event::GaveUp(g) if g == self.generation => self.give_up(now),
            Event::Exited(g) if g == self.generation => self.exited(now),
            // News of an earlier process, or of one that is being ended anyway.
            _ => None,
        }
    }

    fn command(&mut self, now: Mono, command: Command) -> Option<Action> {
        self.wanted = command != Command::Stop;
        if self.wanted {
            self.budget.forgive();
        }
        match (command, self.state) {
            (
                Command::Start | Command::Restart,
                State::Stopped | State::Backoff { .. } | State::CrashLoop { .. } | State::Failed,
            ) => Some(self.spawn(now)),
            (Command::Start, State::Starting { .. } | State::Ready { .. }) => None,
            (Command::Restart, State::Starting { .. } | State::Ready { .. }) => {
                Some(self.begin_stop(now, Then::Restart))
            }
            (Command::Stop, State::Starting { .. } | State::Ready { .. }) => {
                Some(self.begin_stop(now, Then::Rest))
            }
            (Command::Stop, State::Stopping { .. }) => self.stop_then(Then::Rest),
            (_, State::Stopping { .. }) => self.stop_then(Then::Restart),
            (
                Command::Stop,
                State::Stopped | State::Backoff { .. } | State::CrashLoop { .. } | State::Failed,
            ) => {
                self.state = State::Stopped;
                None
            }
        }
    }

    fn tick(&mut self, now: Mono) -> Option<Action> {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return None;
        }
        match self.state {
            State::Starting { .. } => Some(self.begin_stop(now, Then::Recover(Run::NeverReady))),
            State::Backoff { .. } | State::CrashLoop { .. } => {
                self.restarts += 1;
                Some(self.spawn(now))
            }
            State::Stopping { step, then, .. } => Some(self.next_stop_step(now, step, then)),
            State::Stopped | State::Ready { .. } | State::Failed => None,
        }
    }

    fn give_up(&mut self, now: Mono) -> Option<Action> {
        let run = self.run(now)?;
        self.state = State::Stopping {
            step: StopStep::Killed,
            until: now,
            then: Then::Recover(run),
        };
        Some(Action::Kill(self.generation))
    }

    fn exited(&mut self, now: Mono) -> Option<Action> {
        match self.state {
            State::Starting { .. } | State::Ready { .. } => {
                let run = self.run(now)?;
                self.recover(now, run)
            }
            State::Stopping { then, .. } => match then {
                Then::Rest => {
                    self.state = State::Stopped;
                    None
                }
                Then::Restart => Some(self.spawn(now)),
                Then::Recover(run) => self.recover(now, run),
            },
            State::Stopped | State::Backoff { .. } | State::CrashLoop { .. } | State::Failed => {
                None
            }
        }
    }

    fn recover(&mut self, now: Mono, run: Run) -> Option<Action> {
        match self.budget.ended(now, run) {
            Verdict::Now => {
                self.restarts += 1;
                return Some(self.spawn(now));
            }
            Verdict::After(delay) => {
                self.state = State::Backoff {
                    until: now.plus(delay),
                }
            }
            Verdict::CrashLoop(delay) => {
                self.state = State::CrashLoop {
                    until: now.plus(delay),
                }
            }
        }
        None
    }

    fn spawn(&mut self, now: Mono) -> Action {
        self.generation = Generation(self.generation.0 + 1);
        self.state = State::Starting { since: now };
        Action::Spawn(self.generation)
    }

    fn begin_stop(&mut self, now: Mono, then: Then) -> Action {
        self.state = State::Stopping {
            step: StopStep::Closed,
            until: now.plus(self.limits.close),
            then,
        };
        Action::CloseInput(self.generation)
    }

    fn next_stop_step(&mut self, now: Mono, step: StopStep, then: Then) -> Action {
        let (step, action) = match step {
            StopStep::Closed => (StopStep::Terminated, Action::Terminate(self.generation)),
            StopStep::Terminated | StopStep::Killed => {
                (StopStep::Killed, Action::Kill(self.generation))
            }
        };
        self.state = State::Stopping {
            step,
            until: now.plus(self.limits.terminate),
            then,
        };
        action
    }

    fn stop_then(&mut self, next: Then) -> Option<Action> {
        if let State::Stopping { then, .. } = &mut self.state {
            *then = next;
        }
        None
    }

    fn is_starting(&self, generation: Generation) -> bool {
        generation == self.generation && matches!(self.state, State::Starting { .. })
    }

    /// How the present process has done so far; `None` when it is being ended already.
    fn run(&self, now: Mono) -> Option<Run> {
        match self.state {
            State::Starting { .. } => Some(Run::NeverReady),
            State::Ready { since, startup } => Some(Run::Ready {
                uptime: now - since,
                startup,
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
