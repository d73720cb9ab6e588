//! Carries out what the machine decides: one task for each server process.

use super::{
    health::{HealthPolicy, Probe, Verdict},
    log::LogRing,
    machine::{Action, Command, Event, Generation, Limits, Machine, Mono, Outcome, State},
    running::{News, Refresher, Running, Welcome},
    status::{PastFailure, Status},
};
use crate::{
    mcp::handshake::ToolList,
    process::{SpawnError, SpawnSpec, describe_exit},
};
use nexus_proto::reason::{Failure, Reason};
use std::{
    io,
    process::ExitStatus,
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, sleep_until},
};
use tracing::{debug, info, warn};

/// How many lines of its standard error go with the news of a server's end.
const STDERR_LINES: usize = 20;

/// What an instance needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceSpec {
    /// The server's name, for logs and errors.
    pub name: String,
    /// What is to be run.
    pub spawn: SpawnSpec,
    /// How long the handshake may take.
    pub start_timeout: Duration,
    /// How it is looked after while it runs.
    pub health: HealthPolicy,
}

/// A server's process and the actor that keeps it alive.
#[derive(Debug)]
pub struct Instance {
    /// What it wrote to its standard error.
    pub log: Arc<LogRing>,
    commands: mpsc::Sender<Request>,
    status: watch::Receiver<Status>,
}

#[derive(Debug)]
enum Request {
    Command(Command, oneshot::Sender<Outcome>),
    Reconfigure(InstanceSpec),
    Refresh(Refresher),
    KillNow,
}

impl Instance {
    /// Starts the actor. It starts no process until it is told to.
    pub fn new(spec: InstanceSpec) -> Self {
        let (commands, requests) = mpsc::channel(16);
        let (publish, status) = watch::channel(Status::new());
        let log = Arc::new(LogRing::new());
        let (news_sender, news) = mpsc::channel(64);
        let limits = Limits {
            start: spec.start_timeout,
            ..Limits::default()
        };
        let epoch = Instant::now();
        let seed = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(1, |t| t.as_nanos() as u64);
        let actor = Actor {
            machine: Machine::new(limits, seed),
            spec,
            epoch,
            running: None,
            log: Arc::clone(&log),
            publish,
            news_sender,
            failing: None,
        };
        tokio::spawn(actor.run(requests, news));
        Self {
            log,
            commands,
            status,
        }
    }

    /// What is known of it now. Not to be held across an await.
    pub fn current(&self) -> watch::Ref<'_, Status> {
        self.status.borrow()
    }

    /// A way to wait for changes.
    pub fn status(&self) -> watch::Receiver<Status> {
        self.status.clone()
    }

    /// Tells it what is wanted.
    pub async fn command(&self, command: Command) -> Outcome {
        let (reply, answer) = oneshot::channel();
        // The actor lives as long as this handle.
        let _ = self.commands.send(Request::Command(command, reply)).await;
        answer.await.unwrap_or(Outcome::AlreadyTrue)
    }

    /// What the next process is to be. The present one goes on.
    pub async fn reconfigure(&self, spec: InstanceSpec) {
        let _ = self.commands.send(Request::Reconfigure(spec)).await;
    }

    /// Lists the tools again.
    pub async fn refresh(&self) -> Result<(), String> {
        let (reply, answer) = oneshot::channel();
        let _ = self.commands.send(Request::Refresh(reply)).await;
        answer
            .await
            .unwrap_or_else(|_| Err("the server ended meanwhile".to_owned()))
    }

    /// Ends the process without asking it. There is no time left.
    pub async fn kill_now(&self) {
        let _ = self.commands.send(Request::KillNow).await;
    }
}

struct Actor {
    spec: InstanceSpec,
    machine: Machine,
    epoch: Instant,
    running: Option<Running>,
    log: Arc<LogRing>,
    publish: watch::Sender<Status>,
    news_sender: mpsc::Sender<News>,
    /// Why the process is being ended, where that says more than how it then ended.
    failing: Option<Failure>,
}

impl Actor {
    async fn run(mut self, mut requests: mpsc::Receiver<Request>, mut news: mpsc::Receiver<News>) {
        loop {
            let deadline = self
                .machine
                .deadline()
                .map(|at| self.epoch + at.since_start());
            // In this order: what a process did comes before what somebody wants of it.
            tokio::select! {
                biased;
                status = exited(&mut self.running) => self.exited(status).await,
                Some(news) = news.recv() => self.heard(news),
                request = requests.recv() => match request {
                    Some(request) => self.asked(request),
                    // Nobody holds the handle: the process ends with us.
                    None => return,
                },
                () = until(deadline) => self.tick(),
            }
        }
    }

    fn asked(&mut self, request: Request) {
        match request {
            Request::Command(command, reply) => {
                let outcome = self.machine.answer(command);
                debug!(server = self.spec.name, ?command, "asked to");
                self.step(Event::Command(command));
                let _ = reply.send(outcome);
            }
            Request::Reconfigure(spec) => {
                self.machine.set_start_limit(spec.start_timeout);
                if spec.spawn != self.spec.spawn {
                    // Another program: what the old one could do says nothing about it.
                    self.publish.send_modify(|status| {
                        status.tools = None;
                        status.info = None;
                        status.list_error = None;
                    });
                }
                self.spec = spec;
            }
            Request::Refresh(reply) => {
                let info = self.publish.borrow().info.clone();
                match (&self.running, info, self.machine.state()) {
                    (Some(running), Some(info), State::Ready { .. }) => {
                        running.list_again(info, reply, &self.news_sender);
                    }
                    _ => {
                        let _ = reply.send(Err("the server is not ready".to_owned()));
                    }
                }
            }
            Request::KillNow => {
                self.step(Event::Command(Command::Stop));
                self.kill();
            }
        }
    }

    fn heard(&mut self, news: News) {
        match news {
            News::GaveUp(generation, why) => {
                if self.is_current(generation) {
                    self.failing
                        .get_or_insert_with(|| Failure::new(Reason::ServerHung, why));
                    self.step(Event::GaveUp(generation));
                }
            }
            News::Welcome(generation, welcome) => self.welcomed(generation, *welcome),
            News::Refused(generation, error) => {
                if self.is_current(generation) {
                    // An answer that did not come because the process ended is told by its end.
                    self.failing.get_or_insert_with(|| {
                        Failure::new(Reason::HandshakeFailed, error.to_string())
                    });
                    self.step(Event::HandshakeFailed(generation));
                }
            }
            News::Health(generation, verdict, probe) => {
                if self.is_current(generation) {
                    self.probed(generation, verdict, probe);
                }
            }
            News::Tools(generation, tools, refresher) => {
                if !self.is_current(generation) {
                    return;
                }
                let answer = tools.as_ref().map(|_| ()).map_err(Clone::clone);
                self.publish.send_modify(|status| set_tools(status, tools));
                if let Some(refresher) = refresher {
                    let _ = refresher.send(answer);
                }
            }
        }
    }

    fn probed(&mut self, generation: Generation, verdict: Verdict, probe: Probe) {
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
                let message = "the server hung: it left every question whether it lives unanswered";
                self.failing
                    .get_or_insert_with(|| Failure::new(Reason::ServerHung, message));
                self.step(Event::GaveUp(generation));
            }
        }
    }

    fn welcomed(&mut self, generation: Generation, welcome: Welcome) {
        if !self.is_current(generation) {
            return;
        }
        let Some(running) = &self.running else { return };
        let connection = Arc::clone(&running.connection);
        self.machine.step(self.now(), Event::Ready(generation));
        if !matches!(self.machine.state(), State::Ready { .. }) {
            return;
        }
        let Welcome { info, tools } = welcome;
        match &tools {
            Ok(list) => info!(
                server = self.spec.name,
                tools = list.tools.len(),
                protocol = info.protocol_version,
                "ready"
            ),
            Err(error) => warn!(server = self.spec.name, error, "ready, but without tools"),
        }
        let now = SystemTime::now();
        let mono = self.epoch.elapsed();
        self.publish.send_modify(|status| {
            status.follow(&self.machine, now, mono);
            status.connection = Some(connection);
            status.info = Some(Arc::new(info));
            set_tools(status, tools);
        });
    }

    fn tick(&mut self) {
        if let State::Starting { .. } = self.machine.state() {
            self.failing.get_or_insert_with(|| {
                Failure::new(
                    Reason::HandshakeFailed,
                    format!(
                        "the server did not complete the MCP handshake within {:?}",
                        self.spec.start_timeout
                    ),
                )
            });
        }
        self.step(Event::Tick);
    }

    /// The process has ended: everyone who waits for it gets an outcome.
    async fn exited(&mut self, status: io::Result<ExitStatus>) {
        let Some(mut running) = self.running.take() else {
            return;
        };
        running.last_words().await;
        let generation = running.generation();
        let exit = match status {
            Ok(status) => describe_exit(status),
            Err(error) => format!("unknown ({error})"),
        };
        let asked_to = match self.machine.state() {
            State::Stopping { then, .. } => !matches!(then, super::machine::Then::Recover(_)),
            _ => false,
        };
        let stderr = self.log.tail_of(generation.0, STDERR_LINES);
        let failure = if asked_to {
            Failure::new(Reason::ServerStopped, "the server was stopped")
        } else {
            self.failing.take().unwrap_or_else(|| {
                Failure::new(Reason::ServerExited, format!("the server ended: {exit}"))
            })
        };
        self.failing = None;
        let failure = Arc::new(failure.with(|details| {
            details.server = Some(self.spec.name.clone());
            details.exit = Some(exit.clone());
            details.stderr = stderr;
        }));
        running.connection.end(&failure);
        let sweep = running.process.sweep();
        let name = self.spec.name.clone();
        tokio::task::spawn_blocking(move || {
            let strays = sweep();
            if strays > 0 {
                info!(server = name, strays, "ended what it had left behind");
            }
        });
        drop(running);
        if asked_to {
            info!(server = self.spec.name, exit, "stopped");
        } else {
            warn!(
                server = self.spec.name,
                exit,
                reason = failure.message,
                "ended"
            );
            self.remember(failure);
        }
        self.publish.send_modify(|status| {
            status.connection = None;
            status.pid = None;
            status.silences = 0;
            status.latency = None;
        });
        self.step(Event::Exited(generation));
    }

    fn step(&mut self, event: Event) {
        let mut next = Some(event);
        while let Some(event) = next.take() {
            let action = self.machine.step(self.now(), event);
            next = action.and_then(|action| self.perform(action));
        }
        let now = SystemTime::now();
        let mono = self.epoch.elapsed();
        let leaving = !matches!(self.machine.state(), State::Ready { .. });
        self.publish.send_modify(|status| {
            status.follow(&self.machine, now, mono);
            if leaving {
                // No new calls; those under way may still be answered.
                status.connection = None;
            }
        });
    }

    /// Does what was decided. What comes of it at once is the next event.
    fn perform(&mut self, action: Action) -> Option<Event> {
        debug!(server = self.spec.name, ?action);
        match action {
            Action::Spawn(generation) => return self.spawn(generation),
            Action::CloseInput(_) => {
                if let Some(running) = &mut self.running {
                    running.close_input();
                }
            }
            Action::Terminate(_) => {
                if let Some(running) = &self.running {
                    running.process.terminate();
                }
            }
            Action::Kill(_) => self.kill(),
        }
        None
    }

    fn kill(&mut self) {
        if let Some(running) = &mut self.running {
            running.process.kill();
        }
    }

    fn spawn(&mut self, generation: Generation) -> Option<Event> {
        let started = Running::start(
            &self.spec.spawn,
            self.spec.health,
            generation,
            &self.log,
            &self.news_sender,
        );
        match started {
            Ok(running) => {
                let pid = running.process.pid();
                info!(server = self.spec.name, pid, "started");
                self.running = Some(running);
                self.publish.send_modify(|status| status.pid = Some(pid));
                None
            }
            Err(error) => {
                warn!(server = self.spec.name, %error, "cannot start");
                let event = if error.is_passing() {
                    Event::SpawnFailed(generation)
                } else {
                    Event::CannotSpawn(generation)
                };
                self.remember(Arc::new(spawn_failure(&self.spec, &error)));
                Some(event)
            }
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

    fn is_current(&self, generation: Generation) -> bool {
        self.running.as_ref().map(Running::generation) == Some(generation)
    }

    fn now(&self) -> Mono {
        Mono::new(self.epoch.elapsed())
    }
}

fn spawn_failure(spec: &InstanceSpec, error: &SpawnError) -> Failure {
    let reason = if error.is_not_found() {
        Reason::CommandNotFound
    } else {
        Reason::SpawnFailed
    };
    Failure::new(reason, error.to_string()).with(|details| {
        details.server = Some(spec.name.clone());
        details.hint = match error {
            SpawnError::NotOnPath { command, .. } => Some(format!(
                "install {command:?}, or write its full path in the config; \
                 `which {command}` in your shell tells where it is"
            )),
            SpawnError::NotExecutable(path) => Some(format!("chmod +x {}", path.display())),
            _ => None,
        };
    })
}

fn set_tools(status: &mut Status, tools: Result<ToolList, String>) {
    match tools {
        Ok(tools) => {
            status.tools = Some(Arc::new(tools));
            status.list_error = None;
        }
        Err(error) => {
            // An old list is better than none; a server that never gave one has none.
            status.tools.get_or_insert_default();
            status.list_error = Some(error);
        }
    }
}

async fn exited(running: &mut Option<Running>) -> io::Result<ExitStatus> {
    match running {
        Some(running) => running.process.wait().await,
        None => std::future::pending().await,
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
