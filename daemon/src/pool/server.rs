//! One server: its processes by who may use them, and the levers on all of them.

use super::{
    group::Group,
    key::{Asks, Caller, Key, Whose},
    member::{Admission, Member},
    no_such_server,
    shelf::Shelf,
    timings::Timings,
};
use crate::{
    config::{ServerConfig, Sharing, Start},
    mcp::{
        connection::Connection,
        lists::{Kind, List},
        subscriptions::Subscription,
    },
    policy::pins::{Change, Judgement, Pins},
    supervisor::{
        limiter::Limiter,
        lists::Lists,
        log::{LogRing, Source, file::LogFolder},
        machine::{Command, Outcome},
        status::Readiness,
    },
};
use nexus_proto::level::LogLevel;
use nexus_proto::reason::{Failure, Reason};
use parking_lot::{Mutex, RwLock};
use std::{
    collections::HashMap,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
};
use tokio::sync::watch;
use tracing::{debug, warn};

/// For how many different agents, projects or credentials one server may have processes.
const MAX_GROUPS: usize = 64;

/// What all servers share.
#[derive(Debug, Clone)]
pub(super) struct Surroundings {
    pub(super) limiter: Arc<Limiter>,
    pub(super) pulse: Arc<watch::Sender<u64>>,
    pub(super) shelf: Option<Shelf>,
    pub(super) logs: Option<LogFolder>,
    pub(super) pins: Pins,
}

/// One server.
#[derive(Debug)]
pub struct Server {
    pub(super) me: Weak<Self>,
    pub(super) surroundings: Surroundings,
    pub(super) log: Arc<LogRing>,
    /// Calls do not start it: an operator has stopped it, or it is no longer configured.
    pub(super) held: Arc<AtomicBool>,
    /// It puts questions to its clients.
    pub(super) asks: Arc<AtomicBool>,
    /// It asks them for their folders.
    pub(super) asks_roots: Arc<AtomicBool>,
    /// How much it is to log for its clients, if anybody has said so.
    pub(super) level: Arc<Mutex<Option<LogLevel>>>,
    /// The agent whose it is, if it is for one at a time; 0 while it is nobody's.
    holder: AtomicU64,
    removed: AtomicBool,
    config: RwLock<Arc<ServerConfig>>,
    groups: RwLock<HashMap<Key, Arc<Group>>>,
    members_ever: AtomicU32,
    calls: AtomicU64,
    timings: Timings,
}

impl Server {
    pub(super) fn new(config: ServerConfig, surroundings: Surroundings) -> Arc<Self> {
        let logs = surroundings.logs.as_ref();
        let log = logs.map(|logs| logs.file(&config.log_name()));
        let server = Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            surroundings,
            log: Arc::new(LogRing::new(log)),
            held: Arc::new(AtomicBool::new(false)),
            asks: Arc::default(),
            asks_roots: Arc::default(),
            level: Arc::default(),
            holder: AtomicU64::new(0),
            removed: AtomicBool::new(false),
            config: RwLock::new(Arc::new(config)),
            groups: RwLock::default(),
            members_ever: AtomicU32::new(0),
            calls: AtomicU64::new(0),
            timings: Timings::new(),
        });
        server.log.hide(server.config().secrets());
        if server.config().sharing == Sharing::Shared {
            let group = Group::new(&server, &Key::SHARED, None);
            server.groups.write().insert(Key::SHARED, group);
        }
        server
    }

    /// How it is configured.
    pub fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config.read())
    }

    /// Whether this caller sees it.
    pub fn is_for(&self, caller: &Caller) -> bool {
        let holder = self.holder.load(Ordering::Relaxed);
        let is_free = holder == 0 || holder == caller.agent.id() || caller.standing.is_operator();
        is_free && self.config.read().scope.has(caller.project.as_deref())
    }

    /// Whose it is now, if it is for one agent at a time.
    pub fn holder(&self) -> Option<u64> {
        Some(self.holder.load(Ordering::Relaxed)).filter(|id| *id != 0)
    }

    /// Whoever starts a server that is for one at a time has it for as long as they are here. For others it is not
    /// there.
    fn claim(&self, caller: &Caller) -> Result<(), Failure> {
        if !self.config.read().exclusive || caller.standing.is_operator() {
            return Ok(());
        }
        let id = caller.agent.id();
        let claimed = self
            .holder
            .compare_exchange(0, id, Ordering::Relaxed, Ordering::Relaxed);
        match claimed {
            Ok(_) => {
                let (server, gone) = (Weak::clone(&self.me), caller.agent.gone());
                tokio::spawn(async move {
                    gone.await;
                    if let Some(server) = server.upgrade() {
                        server.holder.store(0, Ordering::Relaxed);
                        server.beat();
                    }
                });
                self.beat();
                Ok(())
            }
            Err(holder) if holder == id => Ok(()),
            // It was still there when it was looked for.
            Err(_) => {
                let failure = no_such_server(&self.config().name, [].iter());
                Err(failure.with(|details| details.hint = None))
            }
        }
    }

    /// What it wrote to its standard error.
    pub fn log(&self) -> &LogRing {
        &self.log
    }

    /// Something of ours about it, for its log and for that of the daemon.
    pub(super) fn remark(&self, remark: &str) {
        warn!(server = self.config().name, "{remark}");
        // Of no process: it is none of a server's last words.
        let source = Source {
            instance: 0,
            generation: 0,
        };
        self.log.push(source, format!("nexus: {remark}"));
    }

    /// Whether calls do not start it.
    pub fn is_held(&self) -> bool {
        self.held.load(Ordering::Relaxed)
    }

    /// Its processes and the places for them, the oldest first.
    pub fn members(&self) -> Vec<Arc<Member>> {
        let mut members: Vec<_> = {
            let groups = self.groups.read();
            let all = groups.values().flat_map(|group| &group.members);
            all.cloned().collect()
        };
        members.sort_by_key(|member| member.number);
        members
    }

    /// What it has told this caller of itself.
    pub fn lists_for(&self, caller: &Caller) -> Lists {
        let group = self.known_group(caller);
        group.map(|group| group.lists.now()).unwrap_or_default()
    }

    /// One of its lists as this caller sees it, as far as it is known: from memory, or from disk.
    pub fn list_for(&self, caller: &Caller, kind: Kind) -> Option<Arc<List>> {
        let group = self.group_for_lists(caller).ok()?;
        let lists = group.lists.current();
        lists.of(kind).list.clone()
    }

    /// What all its processes list as tools, as far as it is known.
    pub fn tool_lists(&self) -> Vec<Arc<List>> {
        let groups = self.groups.read();
        let lists = groups
            .values()
            .map(|group| group.lists.current().of(Kind::Tools).list.clone());
        lists.flatten().collect()
    }

    /// What of these tools is not what was approved of.
    pub fn judge(&self, tools: &Arc<List>) -> Arc<Judgement> {
        self.surroundings.pins.judge(&self.config(), tools)
    }

    /// All its tools that are not what was approved of, and whether they are held back.
    pub fn changes(&self) -> (Vec<Change>, bool) {
        let mut changes: Vec<Change> = Vec::new();
        let mut holds = false;
        for list in self.tool_lists() {
            let judgement = self.judge(&list);
            holds |= judgement.holds;
            for change in &judgement.changes {
                if !changes.contains(change) {
                    changes.push(change.clone());
                }
            }
        }
        (changes, holds)
    }

    /// Whether a call of this caller's could be sent now.
    pub fn readiness_for(&self, caller: &Caller) -> Readiness {
        if let Some(lacks) = &self.config().lacks {
            return Readiness::Refused(Failure::clone(lacks));
        }
        let group = self.known_group(caller);
        match group.map_or(Readiness::Asleep, |group| group.readiness()) {
            Readiness::Asleep if self.is_held() => Readiness::Refused(self.stopped()),
            readiness => readiness,
        }
    }

    /// Whether anybody could be served now.
    pub fn is_ready(&self) -> bool {
        let groups = self.groups.read();
        let is_ready = |group: &Arc<Group>| matches!(group.readiness(), Readiness::Ready(_));
        groups.values().any(is_ready)
    }

    /// Why one of its processes does not run, though it should.
    pub fn check_running(&self) -> Result<(), Failure> {
        if let Some(lacks) = &self.config().lacks {
            return Err(Failure::clone(lacks));
        }
        for member in self.members() {
            if let Readiness::Refused(failure) = member.instance.current().readiness() {
                return Err(self.about(failure));
            }
        }
        Ok(())
    }

    /// What an operator wants. With `wait`, until that is so or has failed.
    pub async fn command(&self, command: Command, wait: bool) -> Outcome {
        let held = command == Command::Stop;
        let was_held = self.held.swap(held, Ordering::Relaxed);
        let mut outcome = Outcome::AlreadyTrue;
        let mut members = self.members();
        if !held {
            // One that is somebody's own is started by its owner's next call.
            members.retain(|member| member.key == Key::SHARED || !member.is_at_rest());
        }
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
                let mut status = member.instance.status();
                let _ = status.wait_for(|status| status.is_settled(command)).await;
            }
        }
        outcome
    }

    /// Asks for its lists again. What was lost with its process is asked for once more.
    pub async fn refresh(&self, caller: &Caller) -> Result<(), Failure> {
        self.claim(caller)?;
        let group = self.group_for_lists(caller)?;
        let _turn = group.refreshing.lock().await;
        self.refresh_group(&group).await
    }

    async fn refresh_group(&self, group: &Group) -> Result<(), Failure> {
        let member = group.pick();
        let mut again = true;
        loop {
            let connection = member.ready(self).await?;
            match member.instance.refresh().await {
                Ok(()) => return Ok(()),
                Err(_) if std::mem::take(&mut again) && member.has_lost(&connection) => {}
                Err(error) => {
                    let name = self.config().name.clone();
                    let message = format!("{name:?} could not be asked for its lists: {error}");
                    return Err(Failure::new(Reason::ProtocolError, message)
                        .with(|details| details.server = Some(name)));
                }
            }
        }
    }

    /// Waits until this list is known to this caller. The server is started for that.
    pub async fn introduced(&self, caller: &Caller, kind: Kind) -> Result<(), Failure> {
        let group = self.group_for_lists(caller)?;
        let mut lists = group.lists.subscribe();
        if lists.borrow().of(kind).list.is_some() {
            return Ok(());
        }
        self.claim(caller)?;
        let member = group.pick();
        let connection = member.ready(self).await?;
        // A process that is being replaced is still offered for a moment, and will tell nothing.
        tokio::select! {
            _ = lists.wait_for(|lists| lists.of(kind).list.is_some()) => {}
            () = member.lost(&connection) => {}
        }
        Ok(())
    }

    /// The same, where there is hope. A list that its server no longer stands by is asked for again.
    pub async fn settled(&self, caller: &Caller, kind: Kind) {
        let Ok(group) = self.group_for_lists(caller) else {
            return;
        };
        // Whoever has failed before is not waited for.
        let has_failed = group.pick().current().last_failure.is_some();
        if !self.is_held() && !has_failed {
            let _ = self.introduced(caller, kind).await;
        }
        let is_stale = || group.lists.current().of(kind).is_stale();
        // Nobody is woken for that.
        if is_stale() && matches!(group.readiness(), Readiness::Ready(_)) {
            let _turn = group.refreshing.lock().await;
            if is_stale() {
                let _ = self.refresh_group(&group).await;
            }
        }
    }

    /// Tells when a resource changes, from whichever process serves this caller.
    pub fn subscribe(&self, caller: &Caller, uri: &str) -> Result<Listener, Failure> {
        self.claim(caller)?;
        let group = self.group_for(caller)?;
        let subscription = group.subscriptions.subscribe(uri)?;
        let server = Weak::clone(&self.me);
        Ok(Listener {
            subscription,
            keeper: Keeper {
                group,
                server,
                caller: caller.clone(),
            },
        })
    }

    /// One of its lists as this caller sees it, if it is in memory: nothing is made for a look.
    pub fn known_list(&self, caller: &Caller, kind: Kind) -> Option<Arc<List>> {
        let group = self.known_group(caller)?;
        let lists = group.lists.current();
        lists.of(kind).list.clone()
    }

    /// How much it is to log for its clients, from now on.
    pub fn set_level(&self, level: LogLevel) {
        *self.level.lock() = Some(level);
        for member in self.members() {
            let connection = member.current().connection.clone();
            if let Some(connection) = connection {
                connection.set_level(level);
            }
        }
    }

    /// A connection for this caller, whatever it takes.
    pub async fn connect(&self, caller: &Caller) -> Result<Arc<Connection>, Failure> {
        self.claim(caller)?;
        self.group_for(caller)?.pick().ready(self).await
    }

    /// Lets a call through to a process that the caller may use, when it is its turn.
    pub async fn admit(&self, caller: &Caller) -> Result<Admission, Failure> {
        self.claim(caller)?;
        let group = self.group_for(caller)?;
        let member = group.pick();
        // Whoever is asked something may need the server to answer it.
        let is_asked = caller.party.is_asked_by(&self.config().name);
        match member.gate.enter(caller.party.id(), is_asked).await {
            Ok(pass) => Ok(Admission {
                member: Arc::clone(member),
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

    fn key_of(&self, caller: &Caller) -> Key {
        let asks = Asks {
            anything: self.asks.load(Ordering::Relaxed),
            roots: self.asks_roots.load(Ordering::Relaxed),
        };
        Key::of(self.config.read().sharing, caller, asks)
    }

    fn group_for(&self, caller: &Caller) -> Result<Arc<Group>, Failure> {
        let key = self.key_of(caller);
        let known = self.groups.read().get(&key).cloned();
        match known {
            Some(group) => Ok(group),
            None => self.make_room(&key, caller),
        }
    }

    /// The group of this caller, if there is one; else what others of its kind were told.
    fn known_group(&self, caller: &Caller) -> Option<Arc<Group>> {
        let key = self.key_of(caller);
        let groups = self.groups.read();
        let has_lists = |group: &&Arc<Group>| group.lists.current().of(Kind::Tools).list.is_some();
        let own = groups.get(&key).filter(has_lists);
        own.or_else(|| groups.get(&key.unaware()))
            .or_else(|| groups.get(&key))
            .cloned()
    }

    /// Whoever only wants to look at a list need not have a process of its own for that.
    fn group_for_lists(&self, caller: &Caller) -> Result<Arc<Group>, Failure> {
        match self.known_group(caller) {
            Some(group) => Ok(group),
            None => self.make_room(&self.key_of(caller).unaware(), caller),
        }
    }

    fn make_room(&self, key: &Key, caller: &Caller) -> Result<Arc<Group>, Failure> {
        let mut groups = self.groups.write();
        if let Some(group) = groups.get(key) {
            return Ok(Arc::clone(group));
        }
        if self.removed.load(Ordering::Relaxed) {
            return Err(self.stopped());
        }
        if groups.len() >= MAX_GROUPS {
            // The oldest that rests; else the oldest that has nothing to do and is nobody's alone.
            let oldest = |good: &dyn Fn(&Key, &Group) -> bool| {
                let good = groups.iter().filter(|(key, group)| good(key, group));
                let first = good.min_by_key(|(_, group)| group.members[0].number);
                first.map(|(key, _)| key.clone())
            };
            let spare = oldest(&|_, group| group.is_at_rest()).or_else(|| {
                oldest(&|key, group| !matches!(key.whose, Whose::Agent(_)) && group.is_idle())
            });
            let Some(spare) = spare else {
                let name = self.config().name.clone();
                let message = format!("{name} runs for {MAX_GROUPS} others already");
                return Err(Failure::new(Reason::Overloaded, message).with(|details| {
                    details.server = Some(name);
                    details.hint = Some("an \"idle_stop\" makes room sooner".to_owned());
                }));
            };
            if let Some(spare) = groups.remove(&spare) {
                tokio::spawn(async move { spare.end().await });
            }
        }
        let group = Group::new(self, key, Some(caller));
        groups.insert(key.clone(), Arc::clone(&group));
        if let Whose::Agent(_) = key.whose {
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

    /// Ends what is only of use to an agent that has gone.
    fn release(&self, key: &Key) {
        let group = self.groups.write().remove(key);
        let Some(group) = group else { return };
        debug!(server = self.config().name, %key, "its agent has gone");
        self.beat();
        tokio::spawn(async move { group.end().await });
    }

    /// Takes over a new configuration. Returns whether its processes had to be replaced.
    pub(super) async fn reconfigure(&self, config: &ServerConfig) -> bool {
        let before = self.config();
        *self.config.write() = Arc::new(config.clone());
        self.log.hide(config.secrets());
        let is_same =
            |a: &ServerConfig, b: &ServerConfig| (a.target(), &a.lacks) == (b.target(), &b.lacks);
        let replace = !is_same(&before, config);
        if replace {
            // Another program: what the old one asked says nothing about it.
            self.asks.store(false, Ordering::Relaxed);
            self.asks_roots.store(false, Ordering::Relaxed);
        }
        let shelf = self.surroundings.shelf.as_ref();
        let groups: Vec<_> = self.groups.read().values().cloned().collect();
        for group in groups {
            group.reconfigure(config, shelf, replace).await;
        }
        if before.start != config.start || before.lacks.is_none() && config.lacks.is_some() {
            self.start_if_eager().await;
        }
        replace
    }

    /// Whether a server can go from one configuration to the other without being made anew.
    pub(super) fn can_become(&self, config: &ServerConfig) -> bool {
        let now = self.config();
        let of = |config: &ServerConfig| (config.sharing, config.replicas, config.exclusive);
        of(&now) == of(config)
    }

    pub(super) async fn start_if_eager(&self) {
        let config = self.config();
        // What it lacks is told at once, not by the first call.
        let starts = config.start == Start::Eager || config.lacks.is_some();
        if starts && !self.is_held() {
            for member in self.members().iter().filter(|m| m.key == Key::SHARED) {
                member.instance.command(Command::Start).await;
            }
        }
    }

    /// It takes the place of another, which an operator may have stopped.
    pub(super) fn take_after(&self, other: &Self) {
        self.held.store(other.is_held(), Ordering::Relaxed);
        *self.level.lock() = *other.level.lock();
    }

    /// It is no longer configured: it finishes its calls, and ends.
    pub(super) async fn end(&self) {
        self.removed.store(true, Ordering::Relaxed);
        // Calls that wait for their turn are not to start it again.
        self.held.store(true, Ordering::Relaxed);
        let groups: Vec<_> = self.groups.read().values().cloned().collect();
        futures_util::future::join_all(groups.iter().map(|group| group.end())).await;
    }

    pub(super) async fn kill_now(&self) {
        for member in self.members() {
            member.instance.kill_now().await;
        }
    }

    pub(super) fn next_number(&self) -> u32 {
        self.members_ever.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(super) fn beat(&self) {
        self.surroundings.pulse.send_modify(|beat| *beat += 1);
    }

    /// Why calls do not start it.
    pub(super) fn stopped(&self) -> Failure {
        if self.removed.load(Ordering::Relaxed) {
            let name = self.config().name.clone();
            let message = "the server is no longer configured";
            return Failure::new(Reason::ServerStopped, message)
                .with(|details| details.server = Some(name));
        }
        self.about(Failure::new(Reason::ServerStopped, "the server is stopped"))
    }

    /// A failure of this server, with what to do about it.
    pub(super) fn about(&self, failure: Failure) -> Failure {
        let config = self.config();
        failure.with(|details| {
            details.server = Some(config.name.clone());
            if details.hint.is_none() && details.retry_after.is_none() {
                let slug = &config.slug;
                details.hint = Some(format!("`nexusctl start {slug}` starts it"));
            }
        })
    }
}

/// Somebody who wants to know when a resource changes.
#[derive(Debug)]
pub struct Listener {
    /// What it hears.
    pub subscription: Subscription,
    /// What keeps the process up that tells it.
    pub keeper: Keeper,
}

/// Keeps a process up for somebody who listens to it.
#[derive(Debug)]
pub struct Keeper {
    group: Arc<Group>,
    server: Weak<Server>,
    caller: Caller,
}

impl Keeper {
    /// The server that it is a process of.
    pub fn server(&self) -> Option<Arc<Server>> {
        self.server.upgrade()
    }

    /// Starts a process if there is none, and waits until it has gone.
    pub async fn run_once(&self) -> Result<(), Failure> {
        match self.server() {
            Some(server) => {
                let ran = self.group.run_once(&server).await;
                ran.map_err(|failure| self.caller.may_know(failure))
            }
            None => {
                let message = "the server is no longer configured";
                Err(Failure::new(Reason::ServerStopped, message))
            }
        }
    }
}
