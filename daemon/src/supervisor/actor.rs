//! Carries out what the machine decides: one task for each instance.

use super::{
    diagnose,
    health::{Probe, Verdict},
    instance::{Common, InstanceSpec, Request},
    limiter::Turn,
    log::Source,
    machine::{Action, Command, Event, Generation, Limits, Machine, Mono, State, Then},
    running::{Demands, Exit, News, Running, Welcome},
    status::{PastFailure, Status},
};
use nexus_proto::reason::{Failure, Reason};
use parking_lot::Mutex;
use std::{
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    time::{Duration, SystemTime},
};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep, sleep_until},
};
use tracing::{debug, error, info, warn};

/// How many lines of its standard error go with the news of a server's end.
const STDERR_LINES: usize = 20;

/// A program that is being written cannot be run: an upgrade, as a rule, and soon over.
const BUSY_TRIES: u32 = 3;
const BUSY_PAUSE: Duration = Duration::from_millis(50);

/// When a server that seemed idle turned out to be busy, it is looked at again after this long.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

type TurnToCome = Pin<Box<dyn Future<Output = Turn> + Send>>;

pub(super) struct Actor {
    spec: InstanceSpec,
    /// What the next actor is to begin with, should this one fail.
    kept: Arc<Mutex<InstanceSpec>>,
    number: u32,
    common: Common,
    machine: Machine,
    epoch: Instant,
    running: Option<Running>,
    publish: watch::Sender<Status>,
    news_sender: mpsc::Sender<News>,
    /// Our place in the queue of those that wait to be started.
    queued: Option<TurnToCome>,
    /// Our turn, from when it comes to when it is used.
    turn: Option<Turn>,
    /// Why the process is being ended, where that says more than how it then ended.
    failing: Option<Failure>,
    /// What the next change of state comes from.
    cause: String,
    not_idle_before: Option<Instant>,
}

impl Actor {
    pub(super) fn new(
        kept: Arc<Mutex<InstanceSpec>>,
        number: u32,
        common: Common,
        publish: watch::Sender<Status>,
        news_sender: mpsc::Sender<News>,
    ) -> Self {
        let spec = kept.lock().clone();
        let limits = Limits {
            start: spec.start_timeout,
            ..Limits::default()
        };
        let last = Generation(publish.borrow().generation);
        let seed = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(1, |t| t.as_nanos() as u64);
        Self {
            machine: Machine::new(limits, spec.keep_alive, last, seed),
            spec,
            kept,
            number,
            common,
            epoch: Instant::now(),
            running: None,
            publish,
            news_sender,
            queued: None,
            turn: None,
            failing: None,
            cause: String::new(),
            not_idle_before: None,
        }
    }

    pub(super) async fn run(
        mut self,
        requests: &mut mpsc::Receiver<Request>,
        news: &mut mpsc::Receiver<News>,
    ) {
        loop {
            let deadline = self
                .machine
                .deadline()
                .map(|at| self.epoch + at.since_beginning());
            let idle = self.idle_at();
            // In this order: what a process did comes before what somebody wants of it.
            tokio::select! {
                biased;
                exit = exited(&mut self.running) => self.exited(exit).await,
                Some(news) = news.recv() => self.heard(news).await,
                request = requests.recv() => match request {
                    Some(request) => self.asked(request).await,
                    // Nobody holds the handle: the process ends with us.
                    None => return,
                },
                turn = come(&mut self.queued) => {
                    self.queued = None;
                    self.turn = Some(turn);
                    self.step(Event::Turn(self.machine.generation())).await;
                },
                () = until(deadline) => self.tick().await,
                () = until(idle) => self.rest().await,
            }
        }
    }

    async fn asked(&mut self, request: Request) {
        match request {
            // The call looked before the operator spoke.
            Request::Command(Command::Demand, _) if self.common.held.load(Ordering::Relaxed) => {
                // It waits for news: this is it.
                self.publish.send_modify(|_| {});
            }
            Request::Command(command, reply) => {
                let outcome = self.machine.answer(self.now(), command);
                debug!(server = self.spec.name, ?command, ?outcome, "asked to");
                self.because(match command {
                    Command::Start => "asked to start",
                    Command::Stop => "asked to stop",
                    Command::Restart => "asked to restart",
                    Command::Demand => "a call needs it",
                    Command::Rest => "nobody has called it for a while",
                    Command::Replace => "its configuration has changed",
                });
                self.step(Event::Command(command)).await;
                if let Some(reply) = reply {
                    let _ = reply.send(outcome);
                }
            }
            Request::Reconfigure(spec) => {
                self.machine
                    .reconfigure(spec.start_timeout, spec.keep_alive);
                self.spec = *spec;
                *self.kept.lock() = self.spec.clone();
            }
            Request::Refresh(reply) => {
                let running = self.running.as_ref();
                let terms = running.and_then(|running| running.connection.terms());
                match (running, terms, self.machine.state()) {
                    (Some(running), Some(terms), State::Ready { .. }) => {
                        running.list_again(terms, reply, &self.news_sender);
                    }
                    _ => {
                        let _ = reply.send(Err("the server is not ready".to_owned()));
                    }
                }
            }
            #[cfg(test)]
            Request::Panic => panic!("a fault of ours"),
            Request::KillNow => {
                self.because("asked to stop at once");
                self.step(Event::Command(Command::Stop)).await;
                self.kill();
            }
        }
    }

    async fn heard(&mut self, news: News) {
        match news {
            News::GaveUp(generation, why) => {
                if self.is_current(generation) {
                    self.fails(Reason::ServerHung, why);
                    self.step(Event::GaveUp(generation)).await;
                }
            }
            News::Welcome(generation, welcome) => self.welcomed(generation, *welcome).await,
            News::Refused(generation, error) => {
                if self.is_current(generation) {
                    // An answer that did not come because the process ended is told by its end.
                    self.fails(Reason::HandshakeFailed, &error.to_string());
                    self.step(Event::HandshakeFailed(generation)).await;
                }
            }
            News::Drained(generation) => self.step(Event::Drained(generation)).await,
            News::Health(generation, verdict, probe) => {
                if self.is_current(generation) {
                    self.probed(generation, verdict, probe).await;
                }
            }
            News::Lists(generation, lists, refresher) => {
                // One that is being replaced knows nothing of what comes after it.
                let counts = self.is_current(generation)
                    && matches!(self.machine.state(), State::Ready { .. });
                let answer = if counts {
                    let failed = lists.iter().find_map(|listed| {
                        let error = listed.list.as_ref().err()?;
                        Some(format!("its {}: {error}", listed.kind.plural()))
                    });
                    for listed in lists {
                        self.common.lists.list(listed);
                    }
                    failed.map_or(Ok(()), Err)
                } else {
                    Err("the server ended meanwhile".to_owned())
                };
                if let Some(refresher) = refresher {
                    let _ = refresher.send(answer);
                }
            }
        }
    }

    async fn probed(&mut self, generation: Generation, verdict: Verdict, probe: Probe) {
        self.common.lists.note_asks();
        self.publish.send_if_modified(|status| {
            if let Probe::Answered(after) = probe {
                status.latency = Some(after);
            }
            let was_doubtful = status.silences > 0;
            status.silences = match verdict {
                Verdict::Doubtful(silences) => silences,
                Verdict::Alive | Verdict::Hung => 0,
            };
            // How fast it answered is no news.
            was_doubtful || status.silences > 0
        });
        match verdict {
            Verdict::Alive => {}
            Verdict::Doubtful(silences) => {
                warn!(server = self.spec.name, silences, "does not answer");
            }
            Verdict::Hung => {
                self.fails(
                    Reason::ServerHung,
                    "the server hung: it left every question whether it lives unanswered",
                );
                self.step(Event::GaveUp(generation)).await;
            }
        }
    }

    async fn welcomed(&mut self, generation: Generation, welcome: Welcome) {
        if !self.is_current(generation) || !matches!(self.machine.state(), State::Starting { .. }) {
            return;
        }
        let Welcome { info, tools } = welcome;
        match &tools.list {
            Ok((list, _)) => info!(
                server = self.spec.name,
                tools = list.entries.len(),
                protocol = info.revision.as_str(),
                "ready"
            ),
            Err(error) => warn!(server = self.spec.name, error, "ready, but without tools"),
        }
        // Before it is ready: whoever waits for that wants to know them.
        self.common.lists.introduce(info);
        self.common.lists.list(tools);
        self.because("the handshake is done");
        self.step(Event::Ready(generation)).await;
    }

    async fn tick(&mut self) {
        match self.machine.state() {
            State::Starting { .. } => {
                let limit = self.spec.start_timeout;
                self.fails(
                    Reason::HandshakeFailed,
                    &format!("the server did not complete the MCP handshake within {limit:?}"),
                );
            }
            State::Backoff { .. } | State::CrashLoop { .. } => self.because("its next try is due"),
            _ => {}
        }
        self.step(Event::Tick).await;
    }

    /// When it will have been idle for too long, if nobody calls it.
    fn idle_at(&self) -> Option<Instant> {
        let (State::Ready { .. }, Some(running)) = (self.machine.state(), &self.running) else {
            return None;
        };
        let at = running.connection.last_used() + self.spec.idle_stop?;
        Some(
            self.not_idle_before
                .map_or(at, |not_before| at.max(not_before)),
        )
    }

    async fn rest(&mut self) {
        let Some(running) = &self.running else { return };
        if !self.common.subscriptions.is_empty() {
            // Somebody listens to it.
            self.not_idle_before = self.spec.idle_stop.map(|pause| Instant::now() + pause);
            return;
        }
        let cause = Failure::new(Reason::ServerStopped, "the server rests");
        if !running.connection.retire_if_idle(&Arc::new(cause)) {
            self.not_idle_before = Some(Instant::now() + LOOK_AGAIN);
            return;
        }
        info!(server = self.spec.name, "rests: nobody has called it");
        self.because("nobody has called it for a while");
        self.step(Event::Command(Command::Rest)).await;
    }

    /// The server has ended: everyone who waits for it gets an outcome.
    async fn exited(&mut self, exit: Exit) {
        let Some(mut running) = self.running.take() else {
            return;
        };
        running.last_words().await;
        let generation = running.generation();
        let was_probed = running.is_probed();
        let misgreeted = was_probed && self.machine.forgives_greeting();
        let idle = running.connection.in_flight() == 0;
        let Exit {
            how: exit,
            well,
            failure: why,
        } = exit;
        if let Some(why) = why {
            self.failing.get_or_insert(why);
        }
        let failure = self.failure_of(generation, &exit);
        running.connection.end(&failure);
        sweep(&self.spec.name, &running);
        drop(running);
        self.common.lists.note_asks();
        // Whatever became of it: the next one is greeted in the other way. If that was not it, the one after
        // that is asked again.
        self.common.lists.greet_as_legacy(was_probed);
        let left = idle && well && matches!(self.machine.state(), State::Ready { .. });
        if misgreeted {
            debug!(
                server = self.spec.name,
                exit, "ended at the first question: greeted as an old one"
            );
            self.because("it did not survive the questions of a newer protocol");
        } else if self.is_asked_to_end() {
            info!(server = self.spec.name, exit, "stopped");
        } else if left && !self.spec.keep_alive {
            info!(
                server = self.spec.name,
                exit, "left: the next call starts it again"
            );
            self.because("it ended by itself");
        } else {
            let reason = &failure.message;
            warn!(server = self.spec.name, exit, reason, "ended");
            self.because(reason);
            self.remember(Arc::clone(&failure));
        }
        self.publish.send_modify(|status| {
            status.connection = None;
            status.pid = None;
            status.silences = 0;
            status.latency = None;
        });
        self.step(if misgreeted {
            Event::Misgreeted(generation)
        } else if is_permanent(failure.reason) {
            Event::Denied(generation)
        } else if left {
            Event::Left(generation)
        } else {
            Event::Exited(generation)
        })
        .await;
    }

    fn is_asked_to_end(&self) -> bool {
        matches!(
            self.machine.state(),
            State::Stopping {
                then: Then::Rest | Then::Restart,
                ..
            }
        )
    }

    /// What those are told who wait for a process that has ended.
    fn failure_of(&mut self, generation: Generation, exit: &str) -> Arc<Failure> {
        let failing = self.failing.take();
        let failure = if self.is_asked_to_end() {
            Failure::new(Reason::ServerStopped, "the server was stopped")
        } else {
            failing.unwrap_or_else(|| {
                Failure::new(Reason::ServerExited, format!("the server ended: {exit}"))
            })
        };
        let stderr = self
            .common
            .log
            .tail_of(self.source(generation), STDERR_LINES);
        let failure = diagnose::ended(&self.spec, failure, exit, &stderr);
        Arc::new(failure.with(|details| {
            details.exit = Some(exit.to_owned());
            details.stderr = stderr;
        }))
    }

    async fn step(&mut self, event: Event) {
        let mut next = Some(event);
        while let Some(event) = next.take() {
            let action = self.machine.step(self.now(), event);
            if self.machine.state() != State::Queued {
                self.queued = None;
            }
            self.tell();
            if let Some(action) = action {
                next = self.perform(action).await;
            }
        }
        self.tell();
    }

    /// Publishes where the machine is.
    fn tell(&mut self) {
        let mono = self.epoch.elapsed();
        let is_ready = matches!(self.machine.state(), State::Ready { .. });
        let connection = match &self.running {
            Some(running) if is_ready => Some(Arc::clone(&running.connection)),
            // No new calls; those under way may still be answered.
            _ => None,
        };
        self.publish.send_if_modified(|status| {
            let changed = status.follow(&self.machine, mono, &self.cause);
            let connected = connection.is_some() != status.connection.is_some();
            status.connection = connection;
            changed || connected
        });
    }

    /// Does what was decided. What comes of it at once is the next event.
    async fn perform(&mut self, action: Action) -> Option<Event> {
        debug!(server = self.spec.name, ?action);
        match action {
            Action::Queue(_) => {
                self.queued = Some(Box::pin(Arc::clone(&self.common.limiter).turn()));
            }
            Action::Spawn(generation) => return self.spawn(generation).await,
            Action::Retire(_) => {
                let cause = Failure::new(Reason::ServerStopped, "the server is being replaced");
                if let Some(running) = &self.running {
                    running.retire(&Arc::new(cause), &self.news_sender);
                }
            }
            Action::CloseInput(_) => {
                if let Some(running) = &mut self.running {
                    running.close_input();
                }
            }
            Action::Terminate(_) => {
                if let Some(running) = &self.running {
                    running.terminate();
                }
            }
            Action::Kill(_) => self.kill(),
            Action::Abandon(generation) => return Some(self.abandon(generation)),
        }
        None
    }

    fn kill(&mut self) {
        if let Some(running) = &mut self.running {
            running.kill();
        }
    }

    /// Not even the system can end it: it is left to itself, and somebody waits for its end.
    fn abandon(&mut self, generation: Generation) -> Event {
        if let Some(mut running) = self.running.take() {
            let pid = running.pid().unwrap_or_default();
            error!(
                server = self.spec.name,
                pid, "cannot be ended: left to itself"
            );
            let exit = format!("process {pid} cannot be ended, not even by the system");
            let failure = self.failure_of(generation, &exit);
            running.connection.end(&failure);
            self.because(&exit);
            self.remember(failure);
            self.publish.send_modify(|status| {
                status.leaked += 1;
                status.pid = None;
                status.silences = 0;
                status.latency = None;
            });
            let name = self.spec.name.clone();
            let publish = self.publish.clone();
            tokio::spawn(async move {
                let _ = running.wait().await;
                info!(server = name, pid, "ended at last");
                sweep(&name, &running);
                publish.send_modify(|status| status.leaked -= 1);
            });
        }
        Event::Exited(generation)
    }

    async fn spawn(&mut self, generation: Generation) -> Option<Event> {
        if let Some(lacks) = self.spec.lacks.clone() {
            self.turn = None;
            debug!(server = self.spec.name, %lacks, "cannot start");
            self.because(&lacks.message);
            self.remember(lacks);
            return Some(Event::CannotSpawn(generation));
        }
        let mut tries = 0;
        loop {
            let turn = self.turn.take().unwrap_or_default();
            let demands = Demands {
                health: self.spec.health,
                start: self.spec.start_timeout,
                tools: self.spec.needs_tools,
            };
            let started = Running::start(
                &self.spec.name,
                &self.spec.target,
                demands,
                self.source(generation),
                &self.common,
                &self.news_sender,
                turn,
            );
            let error = match started {
                Ok(running) => {
                    let pid = running.pid();
                    info!(server = self.spec.name, pid, "started");
                    self.common.limiter.room();
                    self.running = Some(running);
                    self.failing = None;
                    self.not_idle_before = None;
                    self.publish.send_modify(|status| status.pid = pid);
                    return None;
                }
                Err(error) => error,
            };
            tries += 1;
            if error.is_busy() && tries <= BUSY_TRIES {
                sleep(BUSY_PAUSE).await;
                continue;
            }
            warn!(server = self.spec.name, %error, "cannot start");
            let mut failure = diagnose::not_started(&self.spec, &error);
            self.because(&failure.message);
            let event = if error.is_no_room() {
                let pause = self.common.limiter.no_room();
                failure.details.retry_after = Some(pause);
                Event::NoRoom(generation)
            } else if error.is_busy() {
                Event::SpawnFailed(generation)
            } else {
                Event::CannotSpawn(generation)
            };
            self.remember(Arc::new(failure));
            return Some(event);
        }
    }

    fn remember(&self, failure: Arc<Failure>) {
        let past = PastFailure {
            failure,
            at: SystemTime::now(),
        };
        self.publish
            .send_modify(|status| status.last_failure = Some(Arc::new(past)));
    }

    /// The first reason to end a process is the one that counts.
    fn fails(&mut self, reason: Reason, message: &str) {
        self.because(message);
        self.failing
            .get_or_insert_with(|| Failure::new(reason, message));
    }

    fn because(&mut self, cause: &str) {
        cause.clone_into(&mut self.cause);
    }

    fn is_current(&self, generation: Generation) -> bool {
        self.running.as_ref().map(Running::generation) == Some(generation)
    }

    fn source(&self, generation: Generation) -> Source {
        Source {
            instance: self.number,
            generation: generation.0,
        }
    }

    fn now(&self) -> Mono {
        Mono::new(self.epoch.elapsed())
    }
}

/// Whether trying again would come to the same.
fn is_permanent(reason: Reason) -> bool {
    matches!(reason, Reason::NeedsAuth | Reason::ConfigInvalid)
}

/// Ends what a process left behind.
fn sweep(server: &str, running: &Running) {
    let Some(sweep) = running.sweep() else {
        return;
    };
    let server = server.to_owned();
    tokio::task::spawn_blocking(move || {
        let strays = sweep();
        if strays > 0 {
            info!(server, strays, "ended what it had left behind");
        }
    });
}

async fn exited(running: &mut Option<Running>) -> Exit {
    match running {
        Some(running) => running.wait().await,
        None => std::future::pending().await,
    }
}

async fn come(queued: &mut Option<TurnToCome>) -> Turn {
    match queued {
        Some(turn) => turn.await,
        None => std::future::pending().await,
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
