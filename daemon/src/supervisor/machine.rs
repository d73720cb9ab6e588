//! The life of one server, as a pure function: no clock, no dice, no I/O.
//!
//! What is wanted is kept apart from what is. Each process has a [`Generation`]; news of an
//! earlier one changes nothing. The next thing to do in time is [`Machine::deadline`], derived
//! from the state, so there is no timer to forget.

mod terms;

pub use terms::*;

use super::restart::{RestartBudget, Run, Verdict};
use std::time::Duration;

/// A call may have a server tried that keeps ending or cannot start, but not sooner than this after
/// the last time.
pub const HOPE: Duration = Duration::from_secs(10);

/// The life of one server.
#[derive(Debug, Clone)]
pub struct Machine {
    state: State,
    wanted: bool,
    generation: Generation,
    restarts: u32,
    limits: Limits,
    budget: RestartBudget,
    keep_alive: bool,
    /// A process was greeted in a way that it did not survive, and none has been ready since.
    misgreeted: bool,
}

impl Machine {
    /// A server that does not run yet, and the last process that it had.
    pub fn new(limits: Limits, keep_alive: bool, last: Generation, seed: u64) -> Self {
        Self {
            state: State::Stopped,
            wanted: false,
            generation: last,
            restarts: 0,
            limits,
            budget: RestartBudget::new(seed),
            keep_alive,
            misgreeted: false,
        }
    }

    /// How long a start may take from now on, and whether it runs also when nobody needs it.
    pub fn reconfigure(&mut self, start: Duration, keep_alive: bool) {
        self.limits.start = start;
        self.keep_alive = keep_alive;
    }

    /// Where it is.
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether it is meant to run.
    pub fn wanted(&self) -> bool {
        self.wanted
    }

    /// Whether it keeps ending, also while it is tried again.
    pub fn is_looping(&self) -> bool {
        self.budget.is_looping()
    }

    /// The newest process.
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// Whether a process that does not survive how it was greeted is started again without blame.
    pub fn forgives_greeting(&self) -> bool {
        !self.misgreeted && matches!(self.state, State::Starting { .. })
    }

    /// How often it was started again without anyone asking.
    pub fn restarts(&self) -> u32 {
        self.restarts
    }

    /// When `step` wants to be called next, if nothing happens before.
    pub fn deadline(&self) -> Option<Mono> {
        match self.state {
            State::Starting { since } => Some(since.plus(self.limits.start)),
            State::Backoff { until }
            | State::CrashLoop { until, .. }
            | State::Stopping { until, .. } => Some(until),
            State::Stopped | State::Queued | State::Ready { .. } | State::Failed { .. } => None,
        }
    }

    /// What a command would come to now.
    pub fn answer(&self, now: Mono, command: Command) -> Outcome {
        use {Command as C, State as S};
        match (command, self.state) {
            (C::Start, S::Queued | S::Starting { .. } | S::Ready { .. })
            | (C::Stop | C::Rest | C::Replace, S::Stopped)
            | (C::Demand, S::Queued | S::Starting { .. } | S::Ready { .. } | S::Backoff { .. }) => {
                Outcome::AlreadyTrue
            }
            (
                C::Stop,
                S::Stopping {
                    then: Then::Rest, ..
                },
            ) => Outcome::AlreadyTrue,
            (C::Demand, S::CrashLoop { since, .. } | S::Failed { since }) if now - since < HOPE => {
                Outcome::Refused
            }
            (C::Rest, state) if !matches!(state, S::Ready { .. }) => Outcome::Refused,
            _ => Outcome::Accepted,
        }
    }

    /// Something happened: what is to be done?
    pub fn step(&mut self, now: Mono, event: Event) -> Option<Action> {
        match event {
            Event::Command(command) => self.command(now, command),
            Event::Tick => self.tick(now),
            Event::Turn(g) if g == self.generation && self.state == State::Queued => {
                self.state = State::Starting { since: now };
                Some(Action::Spawn(g))
            }
            Event::CannotSpawn(g) if self.is_starting(g) => {
                self.state = State::Failed { since: now };
                None
            }
            Event::SpawnFailed(g) if self.is_starting(g) => self.recover(now, Run::NeverReady),
            // It is not the server's fault: it waits, and nothing is charged.
            Event::NoRoom(g) if self.is_starting(g) => {
                self.state = State::Queued;
                Some(Action::Queue(g))
            }
            Event::Ready(g) if self.is_starting(g) => {
                self.misgreeted = false;
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
            Event::Drained(g) if g == self.generation => match self.state {
                State::Stopping {
                    step: StopStep::Draining,
                    then,
                    ..
                } => Some(self.begin_stop(now, then)),
                _ => None,
            },
            Event::Left(g) if g == self.generation => self.left(now),
            Event::Exited(g) if g == self.generation => self.exited(now),
            Event::Denied(g) if g == self.generation => self.denied(now),
            Event::Misgreeted(g) if g == self.generation => {
                // Once: whoever ends again in the same way does so for another reason.
                let first = !std::mem::replace(&mut self.misgreeted, true);
                match first && self.is_starting(g) {
                    true => Some(self.queue()),
                    false => self.exited(now),
                }
            }
            // News of an earlier process, or of one that is being ended anyway.
            _ => None,
        }
    }

    fn command(&mut self, now: Mono, command: Command) -> Option<Action> {
        if self.answer(now, command) == Outcome::Refused {
            return None;
        }
        match command {
            Command::Start | Command::Restart => {
                self.wanted = true;
                self.budget.forgive();
            }
            Command::Demand => self.wanted = true,
            Command::Stop | Command::Rest => self.wanted = false,
            Command::Replace if self.wanted => self.budget.forgive(),
            Command::Replace => return None,
        }
        match (command, self.state) {
            (Command::Stop | Command::Rest, state) => self.stop(now, state),
            // It runs, or is on its way.
            (
                Command::Demand,
                State::Backoff { .. }
                | State::Queued
                | State::Starting { .. }
                | State::Ready { .. },
            )
            | (Command::Start, State::Queued | State::Starting { .. } | State::Ready { .. })
            | (Command::Restart | Command::Replace, State::Queued) => None,
            (Command::Replace, State::Ready { .. }) => {
                self.state = State::Stopping {
                    step: StopStep::Draining,
                    until: now.plus(self.limits.drain),
                    then: Then::Restart,
                };
                Some(Action::Retire(self.generation))
            }
            (Command::Restart | Command::Replace, State::Starting { .. } | State::Ready { .. }) => {
                Some(self.begin_stop(now, Then::Restart))
            }
            (
                Command::Restart,
                State::Stopping {
                    step: StopStep::Draining,
                    ..
                },
            ) => Some(self.begin_stop(now, Then::Restart)),
            (
                Command::Demand,
                State::Stopping {
                    then: Then::Restart | Then::Recover(_),
                    ..
                },
            ) => None,
            (_, State::Stopping { .. }) => self.stop_then(Then::Restart),
            (
                _,
                State::Stopped
                | State::Backoff { .. }
                | State::CrashLoop { .. }
                | State::Failed { .. },
            ) => {
                if command == Command::Demand && self.is_looping() {
                    self.restarts += 1;
                }
                Some(self.queue())
            }
        }
    }

    fn stop(&mut self, now: Mono, state: State) -> Option<Action> {
        match state {
            State::Starting { .. }
            | State::Ready { .. }
            | State::Stopping {
                step: StopStep::Draining,
                ..
            } => Some(self.begin_stop(now, Then::Rest)),
            State::Stopping { .. } => self.stop_then(Then::Rest),
            State::Stopped
            | State::Queued
            | State::Backoff { .. }
            | State::CrashLoop { .. }
            | State::Failed { .. } => {
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
                Some(self.queue())
            }
            State::Stopping { step, then, .. } => Some(self.next_stop_step(now, step, then)),
            State::Stopped | State::Queued | State::Ready { .. } | State::Failed { .. } => None,
        }
    }

    fn give_up(&mut self, now: Mono) -> Option<Action> {
        let run = match self.run(now)? {
            Run::Crashed(ready) => Run::Hung(ready),
            run => run,
        };
        self.state = State::Stopping {
            step: StopStep::Killed,
            until: now.plus(self.limits.abandon),
            then: Then::Recover(run),
        };
        Some(Action::Kill(self.generation))
    }

    fn left(&mut self, now: Mono) -> Option<Action> {
        if self.keep_alive || !matches!(self.state, State::Ready { .. }) {
            return self.exited(now);
        }
        // The next call starts it again.
        self.wanted = false;
        self.state = State::Stopped;
        None
    }

    fn denied(&mut self, now: Mono) -> Option<Action> {
        if self.run(now).is_none() {
            return self.exited(now);
        }
        self.state = State::Failed { since: now };
        None
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
                Then::Restart => Some(self.queue()),
                Then::Recover(run) => self.recover(now, run),
            },
            State::Stopped
            | State::Queued
            | State::Backoff { .. }
            | State::CrashLoop { .. }
            | State::Failed { .. } => None,
        }
    }

    fn recover(&mut self, now: Mono, run: Run) -> Option<Action> {
        match self.budget.ended(now, run) {
            Verdict::Now => {
                self.restarts += 1;
                return Some(self.queue());
            }
            Verdict::After(delay) => {
                self.state = State::Backoff {
                    until: now.plus(delay),
                }
            }
            Verdict::CrashLoop(delay) => {
                self.state = State::CrashLoop {
                    since: now,
                    until: now.plus(delay),
                }
            }
        }
        None
    }

    fn queue(&mut self) -> Action {
        self.generation = Generation(self.generation.0 + 1);
        self.state = State::Queued;
        Action::Queue(self.generation)
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
        let g = self.generation;
        let (step, limit, action) = match step {
            StopStep::Draining => return self.begin_stop(now, then),
            StopStep::Closed => (
                StopStep::Terminated,
                self.limits.terminate,
                Action::Terminate(g),
            ),
            StopStep::Terminated => (StopStep::Killed, self.limits.abandon, Action::Kill(g)),
            StopStep::Killed => (StopStep::Killed, self.limits.abandon, Action::Abandon(g)),
        };
        self.state = State::Stopping {
            step,
            until: now.plus(limit),
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
            State::Ready { since, startup } => Some(Run::Crashed(super::restart::Ready {
                uptime: now - since,
                startup,
            })),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
