//! The gRPC API: translates, hands over, awaits. It decides nothing.

mod agents;
mod caller;
mod completions;
mod convert;
mod daemon;
mod deadline;
mod lists;
mod pins;
mod policy;
mod prompts;
mod resources;
mod servers;
mod tools;

use crate::{
    agent::Registry,
    catalog::Catalog,
    config::Config,
    config::ConfigError,
    policy::Policy,
    pool::{Pool, ReloadReport, Server, key::Caller},
    router::Router,
    shutdown::Shutdown,
};
use nexus_config::Diagnosis;
use nexus_proto::{
    endpoint::Endpoint,
    reason::{Failure, Reason},
    v1,
};
use parking_lot::RwLock;
use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::SystemTime,
};
use tonic::service::Routes;
use tonic_health::pb::FILE_DESCRIPTOR_SET as HEALTH_DESCRIPTORS;

/// The longest request that is read at all. It is more than a server may be sent, so that whoever
/// sends a little too much gets an error that says so.
const MAX_REQUEST: usize = 2 * crate::mcp::MAX_MESSAGE;

/// What the services share.
#[derive(Debug)]
pub struct Context {
    /// The servers.
    pub pool: Arc<Pool>,
    /// Their tools.
    pub catalog: Arc<Catalog>,
    /// Who may do what.
    pub policy: Arc<Policy>,
    /// The way to them.
    pub router: Arc<Router>,
    /// Where we listen.
    pub endpoint: Endpoint,
    /// How to stop.
    pub shutdown: Shutdown,
    /// What is configured.
    pub config: RwLock<Arc<Config>>,
    /// The file that was asked for.
    pub config_file: Option<PathBuf>,
    /// Held while it is read again.
    pub reloading: tokio::sync::Mutex<()>,
    /// When we started.
    pub started_at: SystemTime,
    /// How many clients are connected.
    pub connections: AtomicUsize,
    /// Who they are.
    pub agents: Registry,
    /// Where else we listen.
    pub http: Option<HttpDoor>,
}

/// MCP over HTTP on a loopback address.
#[derive(Debug, Clone)]
pub struct HttpDoor {
    /// Where.
    pub address: SocketAddr,
    /// The file with the token.
    pub token_file: PathBuf,
}

impl Context {
    /// Reads the configuration again. One that cannot be read changes nothing.
    pub async fn reload(&self) -> Result<(ReloadReport, Vec<Diagnosis>), ConfigError> {
        // One at a time: two that overlap would each undo a part of the other.
        let _turn = self.reloading.lock().await;
        let before = Arc::clone(&self.config.read());
        let asked = self.config_file.clone();
        // Programs that are asked for secrets may take their time.
        let load = move || before.load_again(asked.as_deref());
        let loaded = tokio::task::spawn_blocking(load).await;
        let config = loaded.map_err(|_| ConfigError::interrupted())??;
        self.policy.apply(&config);
        let report = self.pool.apply(&config).await;
        let diagnoses = config.diagnoses.clone();
        *self.config.write() = Arc::new(config);
        Ok((report, diagnoses))
    }

    /// A server that lacks something, after another look whether that is there by now.
    async fn look_again(
        self: &Arc<Self>,
        server: &Server,
        caller: &Caller,
    ) -> Result<Arc<Server>, Failure> {
        let name = server.config().name.clone();
        let context = Arc::clone(self);
        let reloaded = tokio::spawn(async move { context.reload().await }).await;
        reloaded
            .map_err(|_| broken())?
            .map_err(|error| error.failure())?;
        self.pool.get(&name, caller)
    }

    /// How many clients are connected.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

/// A task of ours did not come to its end.
fn broken() -> Failure {
    Failure::new(Reason::Internal, "the daemon could not carry this out")
}

/// All services, ready to be served on any connection.
pub async fn routes(context: &Arc<Context>) -> Result<Routes, tonic_reflection::server::Error> {
    let (health, health_service) = tonic_health::server::health_reporter();
    macro_rules! serving {
        ($($server:ty),* $(,)?) => { $(health.set_serving::<$server>().await;)* };
    }
    serving!(
        v1::servers_server::ServersServer<servers::Servers>,
        v1::tools_server::ToolsServer<tools::Tools>,
        v1::resources_server::ResourcesServer<resources::Resources>,
        v1::prompts_server::PromptsServer<prompts::Prompts>,
        v1::completions_server::CompletionsServer<completions::Completions>,
        v1::agents_server::AgentsServer<agents::Agents>,
        v1::policy_server::PolicyServer<policy::Policy>,
        v1::daemon_server::DaemonServer<daemon::Daemon>,
    );

    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(v1::DESCRIPTORS)
            .register_encoded_file_descriptor_set(HEALTH_DESCRIPTORS)
    };
    macro_rules! large {
        ($service:expr) => {
            $service
                .max_decoding_message_size(MAX_REQUEST)
                .max_encoding_message_size(usize::MAX)
        };
    }
    let here = || Arc::clone(context);
    let tools = large!(v1::tools_server::ToolsServer::new(tools::Tools(here())));
    let resources = resources::Resources(here());
    let resources = large!(v1::resources_server::ResourcesServer::new(resources));
    let prompts = large!(v1::prompts_server::PromptsServer::new(prompts::Prompts(
        here()
    )));
    let completions = completions::Completions(here());
    let completions = v1::completions_server::CompletionsServer::new(completions);
    let agents = large!(v1::agents_server::AgentsServer::new(agents::Agents(here())));
    let policy = large!(v1::policy_server::PolicyServer::new(policy::Policy(here())));
    let servers = v1::servers_server::ServersServer::new(servers::Servers(Arc::clone(context)));
    let daemon = v1::daemon_server::DaemonServer::new(daemon::Daemon(Arc::clone(context)));
    Ok(Routes::new(tools)
        .add_service(resources)
        .add_service(prompts)
        .add_service(completions)
        .add_service(agents)
        .add_service(policy)
        .add_service(servers)
        .add_service(daemon)
        .add_service(health_service)
        .add_service(reflection().build_v1()?)
        // Older clients only know this one.
        .add_service(reflection().build_v1alpha()?)
        .prepare())
}
