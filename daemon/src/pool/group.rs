//! The processes that share the calls of those with one key, and what they tell of themselves.

use super::{
    gate::{Gate, Limits},
    key::{Caller, Key, Whose},
    member::Member,
    server::Server,
    shelf::Shelf,
};
use crate::{
    agent::Answers,
    config::{ServerConfig, Start},
    mcp::{lists::Kind, subscriptions::Subscriptions},
    policy::hygiene,
    supervisor::{
        Common, Instance, InstanceSpec, Target,
        lists::{ListBoard, Lists, Wash},
        machine::Command,
        status::Readiness,
    },
    transport::http::{Memory, spec::Secret},
};
use nexus_proto::reason::Failure;
use parking_lot::Mutex;
use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
    time::Duration,
};
use tracing::warn;

/// So many oddities of one group are told at the most: a server may make up as many as it likes.
const MAX_TOLD: usize = 1000;

/// A process that is a project's or a credential's own ends when it is not used for so long.
const KEYED_IDLE_STOP: Duration = Duration::from_secs(30 * 60);

/// Nobody sees what a server tells as it came.
const WASH: Wash = Wash {
    list: hygiene::list,
    info: hygiene::info,
};

/// The processes of one key.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) members: Vec<Arc<Member>>,
    pub(super) lists: Arc<ListBoard>,
    pub(super) subscriptions: Arc<Subscriptions>,
    /// Held by whoever has the lists asked for again.
    pub(super) refreshing: tokio::sync::Mutex<()>,
    key: Key,
    /// The folder that they run in, if their config names none.
    folder: Option<PathBuf>,
    /// What their lists are kept under.
    identity: Mutex<String>,
}

impl Group {
    pub(super) fn new(server: &Server, key: &Key, caller: Option<&Caller>) -> Arc<Self> {
        let config = server.config();
        let project = caller.and_then(|caller| caller.project.as_deref());
        let owner = caller.filter(|_| matches!(key.whose, Whose::Agent(_)));
        // As if the agent had started it itself.
        let folder = project.filter(|folder| {
            matches!(key.whose, Whose::Agent(_) | Whose::Project(_))
                && config.cwd.is_none()
                && folder.is_dir()
        });
        let folder = folder.map(Path::to_owned);
        let identity = config.identity(folder.as_deref(), &key.secret());
        let shelf = server.surroundings.shelf.as_ref();
        let kept = shelf.map(|shelf| shelf.read(&identity)).unwrap_or_default();
        let lists = Arc::new(ListBoard::new(kept, Arc::clone(&server.asks), WASH));
        let subscriptions = Arc::new(Subscriptions::default());
        let memory = Arc::new(Memory::default());
        // Whoever cannot be asked need not wait for others who can.
        let one_agent = match key.answers {
            Answers::NONE => Arc::default(),
            _ => Arc::clone(&server.asks),
        };
        let common = Common {
            limiter: Arc::clone(&server.surroundings.limiter),
            lists: Arc::clone(&lists),
            log: Arc::clone(&server.log),
            held: Arc::clone(&server.held),
            answers: key.answers,
            owner: owner.map(|caller| Arc::downgrade(&caller.agent)),
            asks_roots: Arc::clone(&server.asks_roots),
            subscriptions: Arc::clone(&subscriptions),
            level: Arc::clone(&server.level),
            memory: Arc::clone(&memory),
        };
        let member = |_| {
            let number = server.next_number();
            let spec = instance_spec(&config, key, folder.as_deref());
            let instance = Instance::new(spec, number, common.clone());
            let (mut status, pulse) = (instance.status(), Arc::clone(&server.surroundings.pulse));
            tokio::spawn(async move {
                while status.changed().await.is_ok() {
                    pulse.send_modify(|beat| *beat += 1);
                }
            });
            Arc::new(Member {
                key: key.clone(),
                number,
                instance,
                gate: Gate::new(limits(&config), Arc::clone(&one_agent)),
            })
        };
        let group = Arc::new(Self {
            members: (0..config.replicas).map(member).collect(),
            lists,
            subscriptions,
            refreshing: tokio::sync::Mutex::default(),
            key: key.clone(),
            folder,
            identity: Mutex::new(identity),
        });
        tokio::spawn(keep_lists(Arc::downgrade(&group), Weak::clone(&server.me)));
        group
    }

    /// The one for the next call: of several, the one with the least to do.
    pub(super) fn pick(&self) -> &Arc<Member> {
        if let [only] = &*self.members {
            return only;
        }
        let readiness = |member: &Arc<Member>| member.instance.current().readiness();
        let is_ready = |member: &&Arc<Member>| member.instance.current().connection.is_some();
        let asleep = || {
            let asleep = |member: &&Arc<Member>| matches!(readiness(member), Readiness::Asleep);
            self.members.iter().find(asleep)
        };
        let least = self
            .members
            .iter()
            .filter(is_ready)
            .min_by_key(|member| member.gate.load());
        if let Some(member) = least {
            if member.gate.load() > 0
                && let Some(asleep) = asleep()
            {
                // There is more to do than those who are awake can do at once.
                asleep.instance.hint_demand();
            }
            return member;
        }
        // None is ready: the one that is nearest to it.
        let waits = |member: &&Arc<Member>| matches!(readiness(member), Readiness::Wait);
        let coming = self.members.iter().find(waits);
        coming.or_else(asleep).unwrap_or(&self.members[0])
    }

    /// How ready the best of them is.
    pub(super) fn readiness(&self) -> Readiness {
        let all = self
            .members
            .iter()
            .map(|member| member.instance.current().readiness());
        all.max_by_key(|readiness| match readiness {
            Readiness::Ready(_) => 3,
            Readiness::Wait => 2,
            Readiness::Refused(_) => 1,
            Readiness::Asleep => 0,
        })
        .unwrap_or(Readiness::Asleep)
    }

    /// Takes over a new configuration; with `replace`, in new processes.
    pub(super) async fn reconfigure(
        &self,
        config: &ServerConfig,
        shelf: Option<&Shelf>,
        replace: bool,
    ) {
        if replace {
            // Another program: what the old one could do says nothing about it.
            let identity = config.identity(self.folder.as_deref(), &self.key.secret());
            let kept = shelf.map(|shelf| shelf.read(&identity));
            *self.identity.lock() = identity;
            self.lists.replace(kept.unwrap_or_default());
        }
        for member in &self.members {
            member.gate.set_limits(limits(config));
            let spec = instance_spec(config, &self.key, self.folder.as_deref());
            member.instance.reconfigure(spec).await;
            if replace {
                member.instance.command(Command::Replace).await;
            }
        }
    }

    /// Whether none of them has a process, and nobody waits for one.
    pub(super) fn is_at_rest(&self) -> bool {
        let rests = |member: &Arc<Member>| member.is_at_rest() && member.gate.load() == 0;
        self.subscriptions.is_empty() && self.members.iter().all(rests)
    }

    /// Whether nobody has a call at any of them, or listens to them.
    pub(super) fn is_idle(&self) -> bool {
        let idle = |member: &Arc<Member>| member.gate.load() == 0;
        self.subscriptions.is_empty() && self.members.iter().all(idle)
    }

    /// Starts a process if there is none, and waits until it has gone.
    pub(super) async fn run_once(&self, server: &Server) -> Result<(), Failure> {
        let member = Arc::clone(self.pick());
        let connection = member.ready(server).await?;
        member.lost(&connection).await;
        Ok(())
    }

    pub(super) async fn end(&self) {
        futures_util::future::join_all(self.members.iter().map(|member| member.end())).await;
    }
}

/// Keeps on disk what the processes tell of themselves, and lets watchers know.
async fn keep_lists(group: Weak<Group>, server: Weak<Server>) {
    let Some(mut news) = group.upgrade().map(|group| group.lists.subscribe()) else {
        return;
    };
    let mut warned = false;
    let mut told = HashSet::new();
    // What was on disk is no news, but has to be looked at.
    if let (Some(group), Some(server)) = (group.upgrade(), server.upgrade()) {
        let known = group.lists.current().clone();
        tell_changes(&server, &known, &mut told);
    }
    while news.changed().await.is_ok() {
        let (Some(group), Some(server)) = (group.upgrade(), server.upgrade()) else {
            return;
        };
        server.beat();
        let known = group.lists.current().clone();
        tell_oddities(&server, &known, &mut told);
        tell_changes(&server, &known, &mut told);
        let Some(shelf) = server.surroundings.shelf.clone() else {
            continue;
        };
        let name = server.config().name.clone();
        let identity = group.identity.lock().clone();
        let kept = news.borrow_and_update().clone();
        drop((group, server));
        let write = move || shelf.write(&identity, &name, &kept);
        let written = tokio::task::spawn_blocking(write).await;
        // It is a convenience: the daemon does its work without.
        if let Ok(Err(error)) = written
            && !std::mem::replace(&mut warned, true)
        {
            warn!(%error, "lists cannot be kept on disk");
        }
    }
}

/// Tells what is odd about the lists of a server, each thing once.
fn tell_oddities(server: &Server, lists: &Lists, told: &mut HashSet<String>) {
    let lists = Kind::ALL.map(|kind| lists.of(kind).list.clone());
    let lists = lists.iter().flatten();
    for warning in lists.flat_map(|list| &list.warnings) {
        if told.len() < MAX_TOLD && told.insert(warning.clone()) {
            server.remark(warning);
        }
    }
}

/// Tells which tools are not what was approved of, each once.
fn tell_changes(server: &Server, lists: &Lists, told: &mut HashSet<String>) {
    let Some(tools) = &lists.of(Kind::Tools).list else {
        return;
    };
    for warning in server.judge(tools).warnings(server.config().slug.as_str()) {
        if told.len() < MAX_TOLD && told.insert(warning.clone()) {
            server.remark(&warning);
        }
    }
}

fn limits(config: &ServerConfig) -> Limits {
    Limits {
        in_flight: config.max_in_flight,
        waiting: config.max_queue,
    }
}

fn instance_spec(config: &ServerConfig, key: &Key, folder: Option<&Path>) -> InstanceSpec {
    let mut target = config.target();
    match (&mut target, &key.whose) {
        (Target::Http(http), Whose::Credential(shown)) if http.forward_auth => {
            http.forwarded = Some(Secret::new(shown.expose()));
        }
        _ => {}
    }
    if let (Some(folder), Target::Process(spawn)) = (folder, &mut target) {
        // Which program is run is said by the config, wherever the agent may be.
        let command = Path::new(&spawn.command);
        if command.components().count() > 1
            && let Ok(command) = std::path::absolute(command)
        {
            spawn.command = command.to_string_lossy().into_owned();
        }
        spawn.cwd = Some(folder.to_owned());
    }
    let idle_stop = config.idle_stop.or(match key {
        _ if *key == Key::SHARED => None,
        Key {
            whose: Whose::Agent(_),
            ..
        } => None,
        _ => Some(KEYED_IDLE_STOP),
    });
    InstanceSpec {
        name: config.name.clone(),
        origin: config.origin(),
        target,
        shown: config.shown(),
        lacks: config.lacks.clone(),
        start_timeout: config.start_timeout,
        health: config.health,
        keep_alive: config.start == Start::Eager && idle_stop.is_none(),
        idle_stop,
        needs_tools: config.fail_if_no_tools,
    }
}
