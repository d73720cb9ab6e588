//! The servers that are configured, each with its process.

use crate::{
    config::{Config, ServerConfig},
    mcp::connection::Connection,
    nearest::nearest,
    supervisor::{
        Instance, InstanceSpec,
        log::LogRing,
        machine::{Command, Outcome, State},
        status::{Readiness, Status},
    },
};
use nexus_proto::reason::{Failure, Reason};
use parking_lot::RwLock;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::sync::watch;

/// One server.
#[derive(Debug)]
pub struct Server {
    config: RwLock<Arc<ServerConfig>>,
    instance: Instance,
    /// Calls that it was sent.
    calls: AtomicU64,
}

impl Server {
    fn new(config: ServerConfig, pulse: &Arc<watch::Sender<u64>>) -> Arc<Self> {
        let instance = Instance::new(instance_spec(&config));
        let (mut status, pulse) = (instance.status(), Arc::clone(pulse));
        tokio::spawn(async move {
            while status.changed().await.is_ok() {
                pulse.send_modify(|beat| *beat += 1);
            }
        });
        Arc::new(Self {
            config: RwLock::new(Arc::new(config)),
            instance,
            calls: AtomicU64::new(0),
        })
    }

    /// How it is configured.
    pub fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config.read())
    }

    /// What is known of its process now. Not to be held across an await.
    pub fn current(&self) -> watch::Ref<'_, Status> {
        self.instance.current()
    }

    /// A way to wait for changes of that.
    pub fn status(&self) -> watch::Receiver<Status> {
        self.instance.status()
    }

    /// What it wrote to its standard error.
    pub fn log(&self) -> &LogRing {
        &self.instance.log
    }

    /// Tells it what is wanted. With `wait`, until that is so or has failed.
    pub async fn command(&self, command: Command, wait: bool) -> Outcome {
        let outcome = self.instance.command(command).await;
        if wait {
            let _ = self
                .status()
                .wait_for(|status| status.is_settled(command))
                .await;
        }
        outcome
    }

    /// Lists its tools again.
    pub async fn refresh(&self) -> Result<(), Failure> {
        self.instance.refresh().await.map_err(|error| {
            let name = self.config().name.clone();
            Failure::new(
                Reason::ProtocolError,
                format!("the tools of {name:?} could not be listed: {error}"),
            )
            .with(|details| details.server = Some(name))
        })
    }

    /// Waits while it starts for the first time.
    pub async fn settled(&self) {
        let mut status = self.status();
        let known = status.wait_for(|status| {
            let first_start =
                matches!(status.state, State::Starting { .. }) && status.last_failure.is_none();
            status.tools.is_some() || !first_start
        });
        let _ = known.await;
    }

    /// Its connection, waited for if it is on its way. Whoever waits for a start that fails is told
    /// why, and does not wait for the next one.
    pub async fn ready(&self) -> Result<Arc<Connection>, Failure> {
        // The way of every call, and short.
        if let Some(connection) = &self.current().connection {
            return Ok(Arc::clone(connection));
        }
        let mut status = self.status();
        let known_failure = status.borrow().last_failure.clone();
        let named = |failure: Failure| {
            let config = self.config();
            failure.with(|details| {
                details.server = Some(config.name.clone());
                if details.hint.is_none() && details.retry_after.is_none() {
                    let slug = &config.slug;
                    details.hint = Some(format!("`nexusctl start {slug}` starts it"));
                }
            })
        };
        loop {
            {
                let status = status.borrow_and_update();
                match status.readiness() {
                    Readiness::Ready(connection) => return Ok(connection),
                    Readiness::Refused(failure) => return Err(named(failure)),
                    Readiness::Wait => {}
                }
                let failed_meanwhile = match (&status.last_failure, &known_failure) {
                    (Some(now), Some(before)) => !Arc::ptr_eq(now, before),
                    (now, _) => now.is_some(),
                };
                if failed_meanwhile && matches!(status.state, State::Backoff { .. }) {
                    return Err(named(status.refusal()));
                }
            }
            if status.changed().await.is_err() {
                let message = "the server is no longer configured";
                return Err(Failure::new(Reason::ServerStopped, message));
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
}

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
    pulse: Arc<watch::Sender<u64>>,
}

impl Pool {
    /// An empty pool.
    pub fn new() -> Self {
        Self {
            servers: RwLock::default(),
            pulse: Arc::new(watch::channel(0).0),
        }
    }

    /// All servers, by name.
    pub fn servers(&self) -> Arc<Servers> {
        Arc::clone(&self.servers.read())
    }

    /// Beats whenever the state of a server changes, or which servers there are.
    pub fn pulse(&self) -> watch::Receiver<u64> {
        self.pulse.subscribe()
    }

    /// The server of that name or slug.
    pub fn find(&self, name: &str) -> Option<Arc<Server>> {
        let servers = self.servers.read();
        if let Some(server) = servers.get(name) {
            return Some(Arc::clone(server));
        }
        // A slug is nobody else's name; names that differ only in case may be several.
        let by = |is_meant: &dyn Fn(&ServerConfig) -> bool| {
            servers
                .values()
                .find(|server| is_meant(&server.config.read()))
                .cloned()
        };
        by(&|config| config.slug.as_str() == name)
            .or_else(|| by(&|config| config.name.eq_ignore_ascii_case(name)))
            .or_else(|| by(&|config| config.slug.as_str().eq_ignore_ascii_case(name)))
    }

    /// The server of that name or slug, or an error that names the nearest.
    pub fn get(&self, name: &str) -> Result<Arc<Server>, Failure> {
        check_length(name)?;
        self.find(name).ok_or_else(|| {
            let servers = self.servers();
            let near = nearest(name, servers.keys().map(String::as_str));
            Failure::new(
                Reason::ServerNotFound,
                format!("there is no server {name:?}"),
            )
            .with(|details| {
                details.suggestion = near.map(str::to_owned);
                details.hint = Some(if servers.is_empty() {
                    "no servers are configured".to_owned()
                } else {
                    let names: Vec<&str> = servers.keys().map(String::as_str).take(20).collect();
                    format!("the servers are: {}", names.join(", "))
                });
            })
        })
    }

    /// Makes the pool what the config says. Servers that it leaves as they were go on.
    pub async fn apply(&self, config: &Config) -> ReloadReport {
        let old = self.servers();
        let mut report = ReloadReport::default();
        let mut servers = Servers::new();
        let mut commands = Vec::new();
        for config in &config.servers {
            let name = config.name.clone();
            let server = match old.get(&name) {
                None => {
                    let server = Server::new(config.clone(), &self.pulse);
                    if config.auto_start {
                        commands.push((Arc::clone(&server), Command::Start));
                    }
                    report.added.push(name.clone());
                    server
                }
                Some(server) => {
                    let spec = instance_spec(config);
                    let same = spec == instance_spec(&server.config());
                    *server.config.write() = Arc::new(config.clone());
                    if same {
                        report.unchanged.push(name.clone());
                    } else {
                        server.instance.reconfigure(spec).await;
                        if server.current().wanted {
                            commands.push((Arc::clone(server), Command::Restart));
                        }
                        report.changed.push(name.clone());
                    }
                    Arc::clone(server)
                }
            };
            servers.insert(name, server);
        }
        for (name, server) in old.iter().filter(|(name, _)| !servers.contains_key(*name)) {
            report.removed.push(name.clone());
            let server = Arc::clone(server);
            // It ends in its own time; nobody can find it any more.
            tokio::spawn(async move { server.command(Command::Stop, true).await });
        }
        *self.servers.write() = Arc::new(servers);
        for (server, command) in commands {
            server.command(command, false).await;
        }
        self.pulse.send_modify(|beat| *beat += 1);
        report
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
            server.instance.kill_now().await;
        }
    }
}

impl Default for Pool {
    fn default() -> Self {
        Self::new()
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

fn instance_spec(config: &ServerConfig) -> InstanceSpec {
    InstanceSpec {
        name: config.name.clone(),
        spawn: config.spawn_spec(),
        start_timeout: config.start_timeout,
        health: config.health,
    }
}
