//! One server: its processes, who may use which, and what is known of it while none runs.

use super::{
    gate::{Gate, Limits, Pass},
    key::{Caller, Key},
    shelf::Shelf,
    timings::Timings,
};
use crate::{
    config::{ServerConfig, Sharing, Start},
    mcp::connection::Connection,
    supervisor::{
        Common, Instance, InstanceSpec,
        limiter::Limiter,
        lists::{ListBoard, Lists},
        log::{LogRing, file::LogFolder},
        machine::{Command, Outcome, State},
        status::{Readiness, Status},
    },
};
use nexus_proto::reason::{Failure, Reason};
use parking_lot::RwLock;
use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};
use tracing::{debug, warn};

/// How many processes one server may have for different agents, projects or credentials.
const MAX_GROUPS: usize = 64;

/// A process that is a project's or a credential's own ends when it is not used for so long.
const KEYED_IDLE_STOP: Duration = Duration::from_secs(30 * 60);

/// How long a server that is no longer configured may finish its calls.
const FAREWELL: Duration = Duration::from_secs(10);

/// What all servers share.
#[derive(Debug, Clone)]
pub(super) struct Surroundings {
    pub(super) limiter: Arc<Limiter>,
    pub(super) pulse: Arc<watch::Sender<u64>>,
    pub(super) shelf: Option<Shelf>,
    pub(super) logs: Option<LogFolder>,
}

/// One server.
#[derive(Debug)]
pub struct Server {
    me: Weak<Self>,
    config: RwLock<Arc<ServerConfig>>,
    groups: RwLock<HashMap<Key, Group>>,
    common: Common,
    surroundings: Surroundings,
    members_ever: AtomicU32,
    calls: AtomicU64,
    timings: Timings,
}

/// The processes that share the calls of those with one key.
type Group = Arc<[Arc<Member>]>;

/// One process of a server, or the place for one.
#[derive(Debug)]
pub struct Member {
    /// Whose it is.
    pub key: Key,
    /// Tells it from the others that the server has had.
    pub number: u32,
    /// The folder that it runs in, if its config names none.
    folder: Option<PathBuf>,
    instance: Instance,
    gate: Arc<Gate>,
}

/// The right to make one call, and where.
#[derive(Debug)]
pub struct Admission {
    /// The process.
    pub member: Arc<Member>,
    _pass: Pass,
}

impl Server {
    pub(super) fn new(config: ServerConfig, surroundings: Surroundings) -> Arc<Self> {
        let kept = surroundings
            .shelf
            .as_ref()
            .map(|shelf| shelf.read(&config.identity()))
            .unwrap_or_default();
        let logs = surroundings.logs.as_ref();
        let log = logs.map(|logs| logs.file(config.slug.as_str()));
        let server = Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            config: RwLock::new(Arc::new(config)),
            groups: RwLock::default(),
            common: Common {
                limiter: Arc::clone(&surroundings.limiter),
                lists: Arc::new(ListBoard::new(kept)),
                log: Arc::new(LogRing::new(log)),
                held: Arc::new(AtomicBool::new(false)),
            },
            surroundings,
            members_ever: AtomicU32::new(0),
            calls: AtomicU64::new(0),
            timings: Timings::new(),
        });
        tokio::spawn(keep_lists(Arc::downgrade(&server)));
        if server.config().sharing == Sharing::Shared {
            let group = server.new_group(&Key::Shared, None);
            server.groups.write().insert(Key::Shared, group);
        }
        server
    }

    /// How it is configured.
    pub fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config.read())
    }

    /// What it told of itself. Not to be held across an await.
    pub fn lists(&self) -> watch::Ref<'_, Lists> {
        self.common.lists.current()
    }

    /// What it wrote to its standard error.
    pub fn log(&self) -> &LogRing {
        &self.common.log
    }

    /// Whether it puts questions to its client, so that one agent's calls are let through at a time.
    pub fn asks(&self) -> bool {
        self.common.lists.asks().load(Ordering::Relaxed)
    }

    /// Whether an operator has stopped it: calls do not start it.
    pub fn is_held(&self) -> bool {
        self.common.held.load(Ordering::Relaxed)
    }

    /// Its processes and the places for them, the oldest first.
    pub fn members(&self) -> Vec<Arc<Member>> {
        let mut members: Vec<_> = {
            let groups = self.groups.read();
            groups
                .values()
                .flat_map(|group| group.iter())
                .cloned()
                .collect()
        };
        members.sort_by_key(|member| member.number);
        members
    }

    /// Whether a call could be sent now, whoever makes it.
    pub fn readiness(&self) -> Readiness {
        let members = self.members();
        let best = members
            .iter()
            .map(|member| member.instance.current().readiness())
            .max_by_key(|readiness| match readiness {
                Readiness::Ready(_) => 3,
                Readiness::Wait => 2,
                Readiness::Refused(_) => 1,
                Readiness::Asleep => 0,
            });
        match best {
            None | Some(Readiness::Asleep) if self.is_held() => Readiness::Refused(stopped()),
            None => Readiness::Asleep,
            Some(readiness) => readiness,
        }
    }

    /// What an operator wants. With `wait`, until that is so or has failed.
    pub async fn command(&self, command: Command, wait: bool) -> Outcome {
        let held = command == Command::Stop;
        let was_held = self.common.held.swap(held, Ordering::Relaxed);
        let mut outcome = Outcome::AlreadyTrue;
        let members = self.members();
        for member in &members {
            if member.instance.command(command).await == Outcome::Accepted {
                outcome = Outcome::Accepted;
            }
        }
        if was_held != held {
            // Also where there is no process yet to be told.
            outcome = Outcome::Accepted;
            self.beat();
        }
        if wait {
            for member in &members {
                let _ = member
                    .instance
                    .status()
                    .wait_for(|status| status.is_settled(command))
                    .await;
            }
        }
        outcome
    }

    /// Lists its tools again. A list that was lost with its process is asked for once more.
    pub async fn refresh(&self, caller: &Caller) -> Result<(), Failure> {
        let member = self.member_for(caller)?;
        let mut again = true;
        loop {
            let connection = member.ready(self).await?;
            match member.instance.refresh().await {
                Ok(()) => return Ok(()),
                Err(_) if std::mem::take(&mut again) && member.has_lost(&connection) => {}
                Err(error) => {
                    let name = self.config().name.clone();
                    let message = format!("the tools of {name:?} could not be listed: {error}");
                    return Err(Failure::new(Reason::ProtocolError, message)
                        .with(|details| details.server = Some(name)));
                }
            }
        }
    }

    /// Waits until its tools are known, if they are not yet and there is hope. It is started for that.
    pub async fn settled(&self, caller: &Caller) {
        if self.lists().tools.is_some() || self.is_held() {
            return;
        }
        let Ok(member) = self.member_for(caller) else {
            return;
        };
        // Whoever has failed before is not waited for.
        if member.instance.current().last_failure.is_none() {
            let _ = member.ready(self).await;
        }
    }

    /// A connection for this caller, whatever it takes.
    pub async fn connect(&self, caller: &Caller) -> Result<Arc<Connection>, Failure> {
        self.member_for(caller)?.ready(self).await
    }

    /// Lets a call through to a process that the caller may use, when it is its turn.
    pub async fn admit(&self, caller: &Caller) -> Result<Admission, Failure> {
        let member = self.member_for(caller)?;
        match member.gate.enter(caller.agent.id()).await {
            Ok(pass) => Ok(Admission {
                member,
                _pass: pass,
            }),
            Err(full) => {
                let name = self.config().name.clone();
                let message = format!(
                    "{name} has {} calls under way and {} waiting: it takes no more",
                    full.in_flight, full.waiting
                );
                Err(Failure::new(Reason::Overloaded, message).with(|details| {
                    details.server = Some(name);
                    details.hint = Some(
                        "try again in a moment, or raise its \"max_in_flight\" or \"max_queue\""
                            .to_owned(),
                    );
                }))
            }
        }
    }

    /// One more call.
    pub fn count_call(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// How many calls it was sent.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// How long its calls take.
    pub fn timings(&self) -> &Timings {
        &self.timings
    }

    /// The process for this caller. Of several, the one with the least to do.
    fn member_for(&self, caller: &Caller) -> Result<Arc<Member>, Failure> {
        let key = Key::of(self.config.read().sharing, caller);
        let known = self.groups.read().get(&key).cloned();
        let group = match known {
            Some(group) => group,
            None => self.make_room(&key, caller)?,
        };
        if let [only] = &*group {
            return Ok(Arc::clone(only));
        }
        let is_ready = |member: &&Arc<Member>| member.instance.current().connection.is_some();
        let least = group
            .iter()
            .filter(is_ready)
            .min_by_key(|member| member.gate.load());
        match least {
            Some(member) => {
                let asleep = group.iter().find(|member| member.is_asleep());
                if member.gate.load() > 0
                    && let Some(asleep) = asleep
                {
                    // There is more to do than those who are awake can do at once.
                    asleep.instance.demand();
                }
                Ok(Arc::clone(member))
            }
            // None is ready: the one that is nearest to it.
            None => {
                let waits = |member: &&Arc<Member>| {
                    matches!(member.instance.current().readiness(), Readiness::Wait)
                };
                let member = group.iter().find(waits).unwrap_or(&group[0]);
                Ok(Arc::clone(member))
            }
        }
    }

    fn make_room(&self, key: &Key, caller: &Caller) -> Result<Group, Failure> {
        let mut groups = self.groups.write();
        if let Some(group) = groups.get(key) {
            return Ok(Arc::clone(group));
        }
        if groups.len() >= MAX_GROUPS {
            let asleep = |group: &Group| group.iter().all(|m| m.is_asleep() && m.gate.load() == 0);
            let oldest = groups
                .iter()
                .filter(|(_, group)| asleep(group))
                .min_by_key(|(_, group)| group[0].number)
                .map(|(key, _)| key.clone());
            let Some(oldest) = oldest else {
                let name = self.config().name.clone();
                let message = format!("{name} runs {MAX_GROUPS} times already, for others");
                return Err(Failure::new(Reason::Overloaded, message)
                    .with(|details| details.server = Some(name)));
            };
            groups.remove(&oldest);
        }
        let group = self.new_group(key, caller.project.clone());
        groups.insert(key.clone(), Arc::clone(&group));
        if let Key::Agent(_) = key {
            let (server, key, gone) = (Weak::clone(&self.me), key.clone(), caller.agent.gone());
            tokio::spawn(async move {
                gone.await;
                if let Some(server) = server.upgrade() {
                    server.release(&key);
                }
            });
        }
        Ok(group)
    }

    fn new_group(&self, key: &Key, folder: Option<PathBuf>) -> Group {
        let config = self.config();
        let member = |_| {
            let number = self.members_ever.fetch_add(1, Ordering::Relaxed) + 1;
            let spec = instance_spec(&config, key, folder.clone());
            let instance = Instance::new(spec, number, self.common.clone());
            let (mut status, pulse) = (instance.status(), Arc::clone(&self.surroundings.pulse));
            tokio::spawn(async move {
                while status.changed().await.is_ok() {
                    pulse.send_modify(|beat| *beat += 1);
                }
            });
            Arc::new(Member {
                key: key.clone(),
                number,
                folder: folder.clone(),
                instance,
                gate: Gate::new(limits(&config), Arc::clone(self.common.lists.asks())),
            })
        };
        (0..config.replicas).map(member).collect()
    }

    /// Ends what is only of use to an agent that has gone.
    fn release(&self, key: &Key) {
        let group = self.groups.write().remove(key);
        let Some(group) = group else { return };
        debug!(server = self.config().name, %key, "its agent has gone");
        self.beat();
        tokio::spawn(async move {
            futures_util::future::join_all(group.iter().map(|member| member.end())).await;
        });
    }

    /// Takes over a new configuration. Returns whether its processes had to be replaced.
    pub(super) async fn reconfigure(&self, config: &ServerConfig) -> bool {
        let before = self.config();
        *self.config.write() = Arc::new(config.clone());
        let same = before.spawn_spec() == config.spawn_spec();
        if !same {
            // Another program: what the old one could do says nothing about it.
            let shelf = self.surroundings.shelf.as_ref();
            let kept = shelf.map(|shelf| shelf.read(&config.identity()));
            self.common.lists.replace(kept.unwrap_or_default());
        }
        for member in self.members() {
            member.gate.set_limits(limits(config));
            let spec = instance_spec(config, &member.key, member.folder.clone());
            member.instance.reconfigure(spec).await;
            if !same {
                member.instance.command(Command::Replace).await;
            }
        }
        if before.start != config.start {
            self.start_if_eager().await;
        }
        !same
    }

    /// Whether a server can go from one configuration to the other without being made anew.
    pub(super) fn can_become(&self, config: &ServerConfig) -> bool {
        let now = self.config();
        (now.sharing, now.replicas) == (config.sharing, config.replicas)
    }

    pub(super) async fn start_if_eager(&self) {
        if self.config().start == Start::Eager && !self.is_held() {
            for member in self.members() {
                member.instance.command(Command::Start).await;
            }
        }
    }

    /// It is no longer configured: it finishes its calls, and ends.
    pub(super) async fn end(&self) {
        let members = self.members();
        futures_util::future::join_all(members.iter().map(|member| member.end())).await;
    }

    pub(super) async fn kill_now(&self) {
        for member in self.members() {
            member.instance.kill_now().await;
        }
    }

    fn beat(&self) {
        self.surroundings.pulse.send_modify(|beat| *beat += 1);
    }
}

impl Member {
    /// What is known of its process now. Not to be held across an await.
    pub fn current(&self) -> watch::Ref<'_, Status> {
        self.instance.current()
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
            {
                let status = status.borrow_and_update();
                match status.readiness() {
                    Readiness::Ready(connection) => return Ok(connection),
                    Readiness::Refused(failure) => {
                        if status.has_hope() {
                            self.instance.demand();
                        }
                        return Err(named(server, failure));
                    }
                    Readiness::Asleep if server.is_held() => return Err(named(server, stopped())),
                    Readiness::Asleep => self.instance.demand(),
                    Readiness::Wait => {}
                }
                let failed_meanwhile = match (&status.last_failure, &known_failure) {
                    (Some(now), Some(before)) => !Arc::ptr_eq(now, before),
                    (now, _) => now.is_some(),
                };
                if failed_meanwhile && matches!(status.state, State::Backoff { .. } | State::Queued)
                {
                    return Err(named(server, status.refusal()));
                }
            }
            if status.changed().await.is_err() {
                let message = "the server is no longer configured";
                return Err(named(server, Failure::new(Reason::ServerStopped, message)));
            }
        }
    }

    /// Waits until a connection that has ended is no longer offered.
    pub async fn lost(&self, connection: &Arc<Connection>) {
        let is_other = |status: &Status| {
            let offered = status.connection.as_ref();
            !offered.is_some_and(|offered| Arc::ptr_eq(offered, connection))
        };
        let _ = self.instance.status().wait_for(is_other).await;
    }

    fn has_lost(&self, connection: &Arc<Connection>) -> bool {
        let offered = &self.instance.current().connection;
        !offered
            .as_ref()
            .is_some_and(|offered| Arc::ptr_eq(offered, connection))
    }

    fn is_asleep(&self) -> bool {
        matches!(self.instance.current().readiness(), Readiness::Asleep)
    }

    /// Nobody can find it any more: it finishes its calls, and ends.
    async fn end(&self) {
        let started = Instant::now();
        while self.gate.load() > 0 && started.elapsed() < FAREWELL {
            sleep(Duration::from_millis(10)).await;
        }
        self.instance.command(Command::Stop).await;
        let stopped = |status: &Status| status.is_settled(Command::Stop);
        let _ = self.instance.status().wait_for(stopped).await;
    }
}

/// Keeps on disk what the server tells of itself, and lets watchers know.
async fn keep_lists(server: Weak<Server>) {
    let Some(mut news) = server
        .upgrade()
        .map(|server| server.common.lists.subscribe())
    else {
        return;
    };
    let mut warned = false;
    while news.changed().await.is_ok() {
        let Some(server) = server.upgrade() else {
            return;
        };
        server.beat();
        let Some(shelf) = server.surroundings.shelf.clone() else {
            continue;
        };
        let config = server.config();
        let kept = news.borrow_and_update().clone();
        drop(server);
        let write = move || shelf.write(&config.identity(), &config.name, &kept);
        let written = tokio::task::spawn_blocking(write).await;
        // It is a convenience: the daemon does its work without.
        if let Ok(Err(error)) = written
            && !std::mem::replace(&mut warned, true)
        {
            warn!(%error, "lists cannot be kept on disk");
        }
    }
}

fn stopped() -> Failure {
    Failure::new(Reason::ServerStopped, "the server is stopped")
}

fn named(server: &Server, failure: Failure) -> Failure {
    let config = server.config();
    failure.with(|details| {
        details.server = Some(config.name.clone());
        if details.hint.is_none() && details.retry_after.is_none() {
            let slug = &config.slug;
            details.hint = Some(format!("`nexusctl start {slug}` starts it"));
        }
    })
}

fn limits(config: &ServerConfig) -> Limits {
    Limits {
        in_flight: config.max_in_flight,
        waiting: config.max_queue,
    }
}

fn instance_spec(config: &ServerConfig, key: &Key, folder: Option<PathBuf>) -> InstanceSpec {
    let mut spawn = config.spawn_spec();
    if spawn.cwd.is_none() {
        // As if the agent had started it itself.
        spawn.cwd = folder.filter(|folder| folder.is_dir());
    }
    let idle_stop = config.idle_stop.or(match key {
        Key::Shared | Key::Agent(_) => None,
        Key::Project(_) | Key::Credential(_) => Some(KEYED_IDLE_STOP),
    });
    InstanceSpec {
        name: config.name.clone(),
        spawn,
        start_timeout: config.start_timeout,
        health: config.health,
        keep_alive: config.start == Start::Eager && idle_stop.is_none(),
        idle_stop,
    }
}
