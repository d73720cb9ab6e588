//! One file for each verb.

pub(crate) mod agents;
pub(crate) mod approvals;
pub(crate) mod approve;
pub(crate) mod audit;
pub(crate) mod call;
pub(crate) mod complete;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod connect;
pub(crate) mod control;
pub(crate) mod doctor;
pub(crate) mod http;
pub(crate) mod import;
pub(crate) mod log_level;
pub(crate) mod logs;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod ping;
pub(crate) mod prompt;
pub(crate) mod prompts;
pub(crate) mod read;
pub(crate) mod reload;
pub(crate) mod resources;
pub(crate) mod search;
pub(crate) mod servers;
pub(crate) mod service;
pub(crate) mod shutdown;
pub(crate) mod status;
pub(crate) mod subscribe;
pub(crate) mod tools;
pub(crate) mod trust;

use crate::{
    ask::{self, Screen},
    cli::{Asking, Command},
    exit::Error,
    output::Output,
};
use control::Verb;
use nexus_client::{Builder, Nexus};
use std::{path::PathBuf, sync::Arc, time::Duration};

/// What every command has.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) output: Output,
    pub(crate) socket: Option<PathBuf>,
    pub(crate) timeout: Option<Duration>,
}

impl Context {
    pub(crate) fn builder(&self) -> Builder {
        // Somebody sits and waits: better to be told than to be kept.
        let builder = Nexus::builder().reconnect_for(Duration::ZERO);
        match &self.socket {
            Some(socket) => builder.socket(socket),
            None => builder,
        }
    }

    async fn connect(&self) -> Result<Nexus, Error> {
        Ok(self.builder().connect().await?)
    }

    /// The same as an agent that can be asked, where somebody sits there and wants to be.
    async fn connect_asking(&self, asking: Asking, screen: &Arc<Screen>) -> Result<Nexus, Error> {
        if asking.no_input || !self.output.can_ask() {
            return self.connect().await;
        }
        let builder = self.builder().agent(ask::agent(screen));
        Ok(builder.connect().await?)
    }
}

/// Carries a command out.
pub(crate) async fn run(context: &Context, command: Command) -> Result<(), Error> {
    match command {
        Command::Status(_) => status::run(context).await,
        Command::Servers(args) => servers::run(context, args).await,
        Command::Tools(args) => tools::run(context, args).await,
        Command::Search(args) => search::run(context, args).await,
        Command::Call(args) => call::run(context, args).await,
        Command::Resources(args) => resources::run(context, args).await,
        Command::Templates(args) => resources::templates(context, args).await,
        Command::Read(args) => read::run(context, args).await,
        Command::Subscribe(args) => subscribe::run(context, args).await,
        Command::Prompts(args) => prompts::run(context, args).await,
        Command::Prompt(args) => prompt::run(context, args).await,
        Command::Complete(args) => complete::run(context, args).await,
        Command::Approvals(args) => approvals::run(context, args).await,
        Command::Approve(args) => approve::run(context, args).await,
        Command::Agents(_) => agents::run(context).await,
        Command::Http(_) => http::run(context).await,
        Command::LogLevel(args) => log_level::run(context, args).await,
        Command::Mcp(args) => mcp::run(context, args).await,
        Command::Ping(args) => ping::run(context, args).await,
        Command::Start(args) => control::run(context, Verb::Start, args).await,
        Command::Stop(args) => control::run(context, Verb::Stop, args).await,
        Command::Restart(args) => control::run(context, Verb::Restart, args).await,
        Command::Refresh(args) => control::refresh(context, args).await,
        Command::Logs(args) => logs::run(context, args).await,
        Command::Audit(args) => audit::run(context, args).await,
        Command::Reload(_) => reload::run(context).await,
        Command::Shutdown(args) => shutdown::run(context, args).await,
        Command::Config(args) => config::run(context, args).await,
        Command::Trust(args) => trust::run(context, &args).await,
        Command::Import(args) => import::run(context, &args).await,
        Command::Connect(args) => connect::run(context, &args),
        Command::Doctor(_) => doctor::run(context).await,
        Command::Service(args) => service::run(context, args).await,
        Command::Completions { shell } => completions::run(context, shell),
        Command::Man { dir } => man::run(context, dir),
    }
}
