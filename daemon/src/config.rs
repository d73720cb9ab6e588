//! What is configured: which servers there are, and what starts them.

mod file;

use crate::{
    process::{SpawnSpec, environment},
    supervisor::health::HealthPolicy,
};
use nexus_proto::name::{Slug, unique_slugs};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
    time::Duration,
};

pub use file::ConfigError;

/// The variable that names the config file.
pub const CONFIG_VARIABLE: &str = "NEXUS_CONFIG";

/// How long a call may take where nothing else is said.
const CALL_TIMEOUT: Duration = Duration::from_secs(300);

/// How long a server may take to start. `npx` on a cold cache takes tens of seconds.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Everything that is configured.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The files it came from; none for the demo.
    pub files: Vec<PathBuf>,
    /// The servers, in the order of their names.
    pub servers: Vec<ServerConfig>,
    /// Nothing is configured: the built-in demo is served.
    pub demo: bool,
    /// What was read but looks wrong.
    pub warnings: Vec<String>,
}

/// One server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// As people call it.
    pub name: String,
    /// As it stands in the names of tools.
    pub slug: Slug,
    /// The file it came from.
    pub source: Option<PathBuf>,
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables that it gets.
    pub env: BTreeMap<String, String>,
    /// Variables of ours that it gets as well.
    pub env_passthrough: Vec<String>,
    /// Where it runs.
    pub cwd: Option<PathBuf>,
    /// How long a call may take.
    pub timeout: Duration,
    /// How long it may take to start.
    pub start_timeout: Duration,
    /// How it is looked after while it runs.
    pub health: HealthPolicy,
    /// Whether it is started with the daemon.
    pub auto_start: bool,
}

impl Config {
    /// Reads the file that was asked for, else the user's own if there is one, else serves the demo.
    pub fn load(asked: Option<&Path>) -> Result<Self, ConfigError> {
        let file = asked.map(Path::to_owned).or_else(user_file);
        match file {
            Some(file) if asked.is_some() || file.exists() => file::read(&file),
            _ => Ok(Self::demo()),
        }
    }

    /// Reads it again. A file that has gone since does not mean that nothing is configured: it may
    /// be back in a moment.
    pub fn load_again(&self, asked: Option<&Path>) -> Result<Self, ConfigError> {
        match self.files.first() {
            Some(file) => file::read(file),
            None => Self::load(asked),
        }
    }

    /// The built-in demo, for a first look.
    fn demo() -> Self {
        let program = env::current_exe().unwrap_or_else(|_| PathBuf::from("nexusd"));
        let mut server = ServerConfig::new("demo", program.to_string_lossy().into_owned());
        server.args = vec![crate::DEMO_SERVER.to_owned()];
        Self {
            servers: vec![server],
            demo: true,
            ..Self::default()
        }
    }

    /// In the shape of `mcp.json`, with values that may be secret left out.
    pub fn redacted(&self) -> Value {
        let servers = self.servers.iter().map(|server| {
            let hidden = |env: &BTreeMap<String, String>| {
                env.keys()
                    .map(|name| (name.clone(), json!("***")))
                    .collect::<serde_json::Map<_, _>>()
            };
            let value = json!({
                "command": server.command,
                "args": server.args,
                "env": hidden(&server.env),
                "env_passthrough": server.env_passthrough,
                "cwd": server.cwd,
                "timeout": server.timeout.as_secs_f64(),
                "start_timeout": server.start_timeout.as_secs_f64(),
                "health": {
                    "interval": server.health.interval.as_secs_f64(),
                    "timeout": server.health.timeout.as_secs_f64(),
                    "threshold": server.health.threshold,
                },
                "auto_start": server.auto_start,
                "source": server.source,
            });
            (server.name.clone(), value)
        });
        json!({ "mcpServers": servers.collect::<serde_json::Map<_, _>>() })
    }
}

impl ServerConfig {
    fn new(name: &str, command: String) -> Self {
        Self {
            name: name.to_owned(),
            slug: Slug::of(name),
            source: None,
            command,
            args: Vec::new(),
            env: BTreeMap::new(),
            env_passthrough: Vec::new(),
            cwd: None,
            timeout: CALL_TIMEOUT,
            start_timeout: START_TIMEOUT,
            health: HealthPolicy::default(),
            auto_start: true,
        }
    }

    /// What is to be run.
    pub fn spawn_spec(&self) -> SpawnSpec {
        SpawnSpec {
            command: self.command.clone(),
            args: self.args.clone(),
            env: environment(env::vars_os(), &self.env_passthrough, &self.env),
            cwd: self.cwd.clone(),
        }
    }
}

/// Sorts the servers and gives each a slug of its own.
fn name_servers(servers: &mut [ServerConfig]) {
    servers.sort_by(|a, b| a.name.cmp(&b.name));
    let slugs = unique_slugs(servers.iter().map(|server| server.name.as_str()));
    for (server, slug) in servers.iter_mut().zip(slugs) {
        server.slug = slug;
    }
}

/// Where the user's own config is looked for.
pub fn user_file() -> Option<PathBuf> {
    let folder = |name: &str| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let base = if cfg!(windows) {
        folder("APPDATA")
    } else {
        folder("XDG_CONFIG_HOME").or_else(|| folder("HOME").map(|home| home.join(".config")))
    };
    base.map(|base| base.join("nexus").join("mcp.json"))
}
