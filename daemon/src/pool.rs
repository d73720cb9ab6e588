//! The servers that are configured, each with its processes.

pub mod gate;
mod group;
pub mod key;
mod member;
mod server;
pub mod shelf;
mod sight;
pub mod timings;

pub use member::{Admission, Member};
pub use server::{Keeper, Listener, Server};
pub use sight::{Chosen, Sight};

use crate::{
    config::{Config, ServerConfig},
    nearest::nearest,
    policy::pins::{Change, Pins},
    supervisor::{limiter::Limiter, log::file::LogFolder, machine::Command},
};
use key::Caller;
use nexus_proto::reason::{Failure, Reason};
use parking_lot::RwLock;
use server::Surroundings;
use shelf::Shelf;
use std::{collections::BTreeMap, io, path::Path, sync::Arc};
use tokio::sync::watch;

/// What a reload came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ReloadReport {
    /// Servers that are new.
    pub added: Vec<String>,
    /// Servers that are gone.
    pub removed: Vec<String>,
    /// Servers that were started again.
    pub changed: Vec<String>,
    /// Servers that go on undisturbed.
    pub unchanged: Vec<String>,
}

type Servers = BTreeMap<String, Arc<Server>>;

/// All servers.
#[derive(Debug)]
pub struct Pool {
    servers: RwLock<Arc<Servers>>,
    surroundings: Surroundings,
}

impl Pool {
    /// An empty pool. What it wants to know again next time is kept in `state`.
    pub fn new(state: Option<&Path>) -> Self {
        let shelf = state.map(|state| Shelf::new(state.join("lists")));
        if let Some(shelf) = shelf.clone() {
            tokio::task::spawn_blocking(move || shelf.tidy());
        }
        Self {
            servers: RwLock::default(),
            surroundings: Surroundings {
                limiter: Arc::new(Limiter::for_this_machine()),
                pulse: Arc::new(watch::channel(0).0),
                shelf,
                logs: state.map(|state| LogFolder::new(&state.join("logs"))),
                pins: Pins::new(state.map(|state| state.join("pins"))),
            },
        }
    }

    /// All servers, by name.
    pub fn servers(&self) -> Arc<Servers> {
        Arc::clone(&self.servers.read())
    }

    /// What their tools are held to.
    pub fn pins(&self) -> &Pins {
        &self.surroundings.pins
    }

    /// Beats whenever the state of a server changes, or which servers there are.
    pub fn pulse(&self) -> watch::Receiver<u64> {
        self.surroundings.pulse.subscribe()
    }

    /// The server of that name or slug, if the caller sees it.
    pub fn find(&self, name: &str, caller: &Caller) -> Option<Arc<Server>> {
        self.find_where(name, |server| caller.sees(server))
    }

    fn find_where(&self, name: &str, good: impl Fn(&Server) -> bool) -> Option<Arc<Server>> {
        let servers = self.servers.read();
        if let Some(server) = servers.get(name).filter(|server| good(server)) {
            return Some(Arc::clone(server));
        }
        // A slug is nobody else's name, but of those whom nobody sees both; names that differ only in case may be
        // several.
        let by = |is_meant: &dyn Fn(&ServerConfig) -> bool| {
            let mut good = servers.values().filter(|server| good(server));
            good.find(|server| is_meant(&server.config())).cloned()
        };
        by(&|config| config.slug.as_str() == name)
            .or_else(|| by(&|config| config.name.eq_ignore_ascii_case(name)))
            .or_else(|| by(&|config| config.slug.as_str().eq_ignore_ascii_case(name)))
    }

    /// What to tell an operator who wants a server that only others see.
    pub fn is_elsewhere(&self, name: &str, caller: &Caller) -> Option<Failure> {
        if !caller.standing.is_operator() {
            return None;
        }
        let server = self.find_where(name, |_| true)?;
        let folder = server.config().scope.folder.clone()?;
        let folder = folder.display();
        let message = format!("the server {name:?} is for those who work in {folder}");
        let hint = "work in that folder, or have the server in a file of your own";
        let failure = Failure::new(Reason::ServerNotFound, message);
        Some(failure.with(|details| details.hint = Some(hint.to_owned())))
    }

    /// The server of that name or slug; the operator looks after all of them, and what is seen from where the caller
    /// works comes first. Or an error that names the nearest.
    pub fn get(&self, name: &str, caller: &Caller) -> Result<Arc<Server>, Failure> {
        check_length(name)?;
        let found = self.find(name, caller);
        let found = found.or_else(|| self.find_where(name, |server| caller.oversees(server)));
        found.ok_or_else(|| {
            let servers = self.servers();
            let known = servers.iter().filter(|(_, server)| caller.oversees(server));
            no_such_server(name, known.map(|(name, _)| name))
        })
    }

    /// Makes the pool what the config says. Servers that it leaves as they were go on.
    pub async fn apply(&self, config: &Config) -> ReloadReport {
        // Before anybody new is looked at.
        let pins = config.settings.policy.pins.unwrap_or_default();
        self.surroundings.pins.set_mode(pins);
        let old = self.servers();
        let mut report = ReloadReport::default();
        let mut servers = Servers::new();
        let mut fresh = Vec::new();
        for config in &config.servers {
            let name = config.name.clone();
            let known = old.get(&name);
            let server = match known.filter(|server| server.can_become(config)) {
                Some(server) => {
                    if server.reconfigure(config).await {
                        report.changed.push(name.clone());
                    } else {
                        report.unchanged.push(name.clone());
                    }
                    Arc::clone(server)
                }
                None => {
                    let server = Server::new(config.clone(), self.surroundings.clone());
                    match known {
                        Some(old) => {
                            server.take_after(old);
                            report.changed.push(name.clone());
                        }
                        None => report.added.push(name.clone()),
                    }
                    fresh.push((Arc::clone(&server), known.cloned()));
                    server
                }
            };
            servers.insert(name, server);
        }
        let removed: Vec<_> = old
            .iter()
            .filter(|(name, _)| !servers.contains_key(*name))
            .map(|(name, server)| (name.clone(), Arc::clone(server)))
            .collect();
        *self.servers.write() = Arc::new(servers);
        for (name, server) in removed {
            report.removed.push(name);
            // It ends in its own time; nobody can find it any more.
            tokio::spawn(async move { server.end().await });
        }
        for (server, before) in fresh {
            match before {
                None => server.start_if_eager().await,
                // Not both at once: the old one may hold a port, or a file.
                Some(before) => {
                    tokio::spawn(async move {
                        before.end().await;
                        server.start_if_eager().await;
                    });
                }
            }
        }
        self.surroundings.pulse.send_modify(|beat| *beat += 1);
        report
    }

    /// Approves of tools of a server as they are now, as far as it is wanted. How many tools that are.
    pub async fn approve(
        &self,
        server: &Server,
        is_wanted: impl Fn(&Change) -> bool + Send,
    ) -> io::Result<usize> {
        let lists = server.tool_lists();
        let approved = self
            .pins()
            .approve(&server.config(), &lists, is_wanted)
            .await;
        // Also where it could not be kept: what is seen has changed.
        self.surroundings.pulse.send_modify(|beat| *beat += 1);
        approved
    }

    /// The servers that are this agent's own now.
    pub fn held_by(&self, agent: u64) -> Vec<String> {
        let servers = self.servers();
        let is_its = |member: &Arc<Member>| {
            member.key.whose == key::Whose::Agent(agent) && !member.is_at_rest()
        };
        let held = servers.iter().filter(|(_, server)| {
            server.holder() == Some(agent) || server.members().iter().any(is_its)
        });
        held.map(|(name, _)| name.clone()).collect()
    }

    /// An agent works in other folders now. Servers that are its own are told so; of others nobody could
    /// tell whose folders have changed.
    pub fn roots_changed(&self, agent: u64) {
        for server in self.servers().values() {
            for member in server.members() {
                let connection = match member.key.whose {
                    key::Whose::Agent(id) if id == agent => member.current().connection.clone(),
                    _ => None,
                };
                if let Some(connection) = connection {
                    connection.roots_changed();
                }
            }
        }
    }

    /// Stops all servers at once and waits until the last one is gone.
    pub async fn stop_all(&self) {
        let servers = self.servers();
        let stops = servers
            .values()
            .map(|server| server.command(Command::Stop, true));
        futures_util::future::join_all(stops).await;
    }

    /// Ends all processes without asking them.
    pub async fn kill_all(&self) {
        for server in self.servers().values() {
            server.kill_now().await;
        }
    }
}

/// No name is longer. Looking for what is nearest to a novel would keep everybody waiting.
const MAX_NAME: usize = 512;

/// Refuses what cannot be a name.
pub fn check_length(name: &str) -> Result<(), Failure> {
    if name.len() <= MAX_NAME {
        return Ok(());
    }
    let message = format!("no name is longer than {MAX_NAME} bytes");
    Err(Failure::new(Reason::InvalidRequest, message))
}

/// There is none of that name; these there are.
pub fn no_such_server<'a>(name: &str, known: impl Iterator<Item = &'a String>) -> Failure {
    let known: Vec<&str> = known.map(String::as_str).collect();
    let near = nearest(name, known.iter().copied());
    let message = format!("there is no server {name:?}");
    Failure::new(Reason::ServerNotFound, message).with(|details| {
        details.suggestion = near.map(str::to_owned);
        details.hint = Some(match &*known {
            [] => "no servers are configured".to_owned(),
            known => {
                let first = &known[..known.len().min(20)];
                format!("the servers are: {}", first.join(", "))
            }
        });
    })
}
