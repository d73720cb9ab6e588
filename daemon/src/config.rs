//! What is configured: which servers there are, and what starts them.

mod convert;
mod error;
pub mod watch;

use crate::{
    process::{SpawnSpec, environment},
    supervisor::{Target, health::HealthPolicy},
    transport::http::spec::HttpSpec,
};
use nexus_config::{
    Diagnosis, Transport, layers::Places, load::Request, mask, scope::Scope, show, write,
};
use nexus_proto::{
    name::{Slug, unique_slugs},
    reason::Failure,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::{
    collections::BTreeMap,
    env, fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

pub use error::ConfigError;
pub use nexus_config::{
    model::{Sharing, Start, ToolFilter},
    policy::{Consent, Oversize, Rate},
};

/// The variable that names the config file.
pub const CONFIG_VARIABLE: &str = "NEXUS_CONFIG";

/// How long a call may take where nothing else is said.
const CALL_TIMEOUT: Duration = Duration::from_secs(300);

/// How long a server may take to start. `npx` on a cold cache takes tens of seconds.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// How many calls may wait for a process that may have no more under way.
const MAX_QUEUE: usize = 256;

/// Everything that is configured.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The files it came from, the strongest last; none for the demo.
    pub files: Vec<PathBuf>,
    /// All files that count, or would if they were there, and what was in them.
    pub watched: Vec<(PathBuf, Option<Vec<u8>>)>,
    /// The servers, in the order of their names.
    pub servers: Vec<ServerConfig>,
    /// Nothing is configured: the built-in demo is served.
    pub demo: bool,
    /// What was read but looks wrong, and what servers lack.
    pub diagnoses: Vec<Diagnosis>,
    /// What the daemon itself is told.
    pub settings: nexus_config::model::Settings,
    /// What some agents see of the pool.
    pub profiles: Vec<Arc<nexus_config::Profile>>,
    /// What `~` stands for.
    pub home: Option<PathBuf>,
}

/// One server.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// As people call it.
    pub name: String,
    /// As it stands in the names of tools.
    pub slug: Slug,
    /// The file it came from.
    pub source: Option<PathBuf>,
    /// Who sees it.
    pub scope: Scope,
    /// As it was written there, which is what may be shown.
    pub written: Option<Arc<nexus_config::Server>>,
    /// What it cannot be started without, and does not have: a variable that is not set, a secret.
    pub lacks: Option<Arc<Failure>>,
    /// The program; empty for a server that is reached over HTTP.
    pub command: String,
    /// How it is reached, if not by running a program.
    pub http: Option<HttpSpec>,
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
    /// When it is started.
    pub start: Start,
    /// It ends when nobody has called it for so long.
    pub idle_stop: Option<Duration>,
    /// Who shares a process of it.
    pub sharing: Sharing,
    /// How many processes share its calls.
    pub replicas: usize,
    /// How many calls of it may be under way at one process.
    pub max_in_flight: Option<usize>,
    /// How many more may wait.
    pub max_queue: usize,
    /// Whether to believe it which of its tools can be called twice without harm.
    pub trust_hints: bool,
    /// It has failed when it has no tools.
    pub fail_if_no_tools: bool,
    /// Which of its tools there are for anybody.
    pub tools: ToolFilter,
    /// It is for one agent at a time.
    pub exclusive: bool,
    /// What may be done with it.
    pub rules: ServerRules,
}

/// What may be done with a server, as far as it is said of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerRules {
    /// It came with a project.
    pub from_project: bool,
    /// When somebody is asked before it is used.
    pub consent: Option<Consent>,
    /// How often it may be called.
    pub rate_limit: Option<Rate>,
    /// How often some of its tools may be called, by patterns.
    pub tool_rate_limits: Vec<(String, Rate)>,
    /// The largest result.
    pub max_result: Option<usize>,
    /// What becomes of a larger one.
    pub oversize: Option<Oversize>,
}

/// Not all that it is given: that may be secret.
impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerConfig")
            .field("name", &self.name)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

impl Config {
    /// Reads the file that was asked for, else those of all layers; if there are none, serves the demo.
    /// Programs that are asked for secrets are waited for.
    pub fn load(asked: Option<&Path>) -> Result<Self, ConfigError> {
        let places = Places::ours();
        let folder = env::current_dir().ok();
        #[cfg_attr(not(windows), allow(unused_mut))]
        let mut loaded = nexus_config::load(Request {
            asked,
            places: &places,
            folder: folder.as_deref(),
        });
        #[cfg(windows)]
        error::check_owners(&mut loaded);
        if loaded.has_errors() {
            return Err(ConfigError::new(loaded.diagnoses));
        }
        if loaded.files.is_empty() {
            return Ok(Self {
                watched: loaded.watched,
                diagnoses: loaded.diagnoses,
                ..Self::demo()
            });
        }
        Ok(convert::config(loaded, &places))
    }

    /// Reads it again. Files that have gone since do not mean that nothing is configured: they may be
    /// back in a moment.
    pub fn load_again(&self, asked: Option<&Path>) -> Result<Self, ConfigError> {
        let mut config = Self::load(asked)?;
        match self.files.last() {
            Some(file) if config.demo => return Err(ConfigError::gone(file)),
            _ => config.keep_supplied(self),
        }
        Ok(config)
    }

    /// A server that has what it needs keeps it, though it cannot be had once more: a keyring may be locked
    /// by now, and that is no reason to end what runs.
    fn keep_supplied(&mut self, before: &Self) {
        for server in self.servers.iter_mut().filter(|s| s.lacks.is_some()) {
            let is_same = |old: &&ServerConfig| {
                old.name == server.name && old.lacks.is_none() && old.is_written_as(server)
            };
            if let Some(old) = before.servers.iter().find(is_same) {
                server.lacks = None;
                server.command.clone_from(&old.command);
                server.args.clone_from(&old.args);
                server.env.clone_from(&old.env);
                server.cwd.clone_from(&old.cwd);
                server.http.clone_from(&old.http);
                server.sharing = old.sharing;
            }
        }
    }

    /// One server of that name.
    #[cfg(test)]
    pub(crate) fn of_one(name: &str) -> Self {
        Self {
            servers: vec![ServerConfig::new(name, String::new())],
            ..Self::default()
        }
    }

    /// What was read but looks wrong, a line for each.
    pub fn warnings(&self) -> Vec<String> {
        self.diagnoses.iter().map(ToString::to_string).collect()
    }

    /// The built-in demo, for a first look.
    fn demo() -> Self {
        let program = env::current_exe().unwrap_or_else(|_| PathBuf::from("nexusd"));
        let program = program.to_string_lossy();
        // What Linux says after an upgrade: the new program is there.
        let program = program.strip_suffix(" (deleted)").unwrap_or(&program);
        let mut server = ServerConfig::new("demo", program.to_owned());
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
            let written = server.written.as_deref();
            let mut shown = match written.map(|written| show::server(written, true)) {
                Some(Value::Object(shown)) => shown,
                _ => serde_json::Map::from_iter([
                    ("command".to_owned(), json!(server.command)),
                    ("args".to_owned(), json!(server.args)),
                ]),
            };
            let rest = json!({
                "cwd": server.cwd,
                "timeout": server.timeout.as_secs_f64(),
                "start_timeout": server.start_timeout.as_secs_f64(),
                "health": {
                    "interval": server.health.interval.as_secs_f64(),
                    "timeout": server.health.timeout.as_secs_f64(),
                    "threshold": server.health.threshold,
                },
                "start": server.start.as_str(),
                "idle_stop": server.idle_stop.map(|time| time.as_secs_f64()),
                "sharing": server.sharing.as_str(),
                "replicas": server.replicas,
                "max_in_flight": server.max_in_flight,
                "max_queue": server.max_queue,
                "trust_hints": server.trust_hints,
                "fail_if_no_tools": server.fail_if_no_tools,
            });
            if let Value::Object(rest) = rest {
                shown.extend(rest);
            }
            if let Some(folder) = &server.scope.folder {
                shown.insert("project".to_owned(), json!(folder));
            }
            (server.name.clone(), Value::Object(shown))
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
            scope: Scope::default(),
            written: None,
            lacks: None,
            command,
            http: None,
            args: Vec::new(),
            env: BTreeMap::new(),
            env_passthrough: Vec::new(),
            cwd: None,
            timeout: CALL_TIMEOUT,
            start_timeout: START_TIMEOUT,
            health: HealthPolicy::default(),
            start: Start::Eager,
            idle_stop: None,
            sharing: Sharing::Shared,
            replicas: 1,
            max_in_flight: None,
            max_queue: MAX_QUEUE,
            trust_hints: false,
            fail_if_no_tools: false,
            exclusive: false,
            rules: ServerRules::default(),
            tools: ToolFilter::default(),
        }
    }

    /// What its lists are kept under while it does not run: the same as long as the same is run, in
    /// `folder` if the config names none, for those who know the same secret. What every server gets of
    /// our environment does not count: it differs from one login to the next.
    pub fn identity(&self, folder: Option<&Path>, secret: &[u8]) -> String {
        let passed = self
            .env_passthrough
            .iter()
            .map(|name| (name.as_str(), env::var_os(name)));
        let mut hash = Sha256::new();
        let mut add = |part: &[u8]| {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        };
        add(self.command.as_bytes());
        add(&self.args.len().to_le_bytes());
        self.args.iter().for_each(|arg| add(arg.as_bytes()));
        let cwd = self.cwd.as_deref().or(folder).unwrap_or(Path::new(""));
        add(cwd.as_os_str().as_encoded_bytes());
        for (name, value) in &self.env {
            add(name.as_bytes());
            add(value.as_bytes());
        }
        for (name, value) in passed {
            add(name.as_bytes());
            add(value.unwrap_or_default().as_encoded_bytes());
        }
        if let Some(http) = &self.http {
            add(http.url.origin().as_bytes());
            add(http.url.path.as_bytes());
            let shown = [&http.url.user, &http.bearer];
            let shown = shown.into_iter().flatten().map(|shown| ("", shown));
            let headers = http.headers.iter().map(|(name, value)| (&**name, value));
            for (name, value) in headers.chain(shown) {
                add(name.as_bytes());
                add(value.expose().as_bytes());
            }
        }
        add(secret);
        let hex = |byte: &u8| format!("{byte:02x}");
        hash.finalize()[..16].iter().map(hex).collect()
    }

    /// What its tools are approved of for: the same as long as the same program is run, or the same address asked, with
    /// the same to go by. Not what is secret of it: that changes without the server becoming another.
    pub fn run_identity(&self) -> String {
        let mut hash = Sha256::new();
        let mut add = |kind: &str, part: &[u8]| {
            hash.update(kind);
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        };
        match &self.http {
            Some(http) => {
                add("url", http.url.origin().as_bytes());
                add("path", http.url.path.as_bytes());
                let headers = http.headers.iter();
                headers.for_each(|(name, _)| add("header", name.as_bytes()));
            }
            None => {
                add("command", self.command.as_bytes());
                self.args.iter().for_each(|arg| add("arg", arg.as_bytes()));
                let cwd = self.cwd.as_deref().unwrap_or(Path::new(""));
                add("cwd", cwd.as_os_str().as_encoded_bytes());
                let names = self.env.keys().chain(&self.env_passthrough);
                names.for_each(|name| add("variable", name.as_bytes()));
            }
        }
        let hex = |byte: &u8| format!("{byte:02x}");
        hash.finalize()[..16].iter().map(hex).collect()
    }

    /// What it is given that nobody else is to see, also if it says it itself.
    pub fn secrets(&self) -> Vec<String> {
        let written = match self.written.as_ref().map(|written| &written.transport) {
            Some(Some(Transport::Stdio(stdio))) => stdio.env.as_slice(),
            _ => &[],
        };
        let is_reference = |name: &str| {
            let mut settings = written.iter().filter(|(other, _)| other == name);
            settings.any(|(_, setting)| setting.is_reference())
        };
        let env = self.env.iter().filter(|(name, value)| {
            mask::names_secret(name) || mask::looks_secret(value) || is_reference(name)
        });
        let before = std::iter::once("").chain(self.args.iter().map(String::as_str));
        let args = self.args.iter().zip(before);
        let args = args.filter(|(arg, before)| mask::hides_argument(before, arg));
        let all = env.map(|(_, value)| value).chain(args.map(|(arg, _)| arg));
        let shown = self.http.iter().flat_map(HttpSpec::secrets);
        let all = all.map(String::as_str).chain(shown);
        // What is short may be anything.
        let all = all.filter(|value| value.len() >= 8);
        all.map(str::to_owned).collect()
    }

    /// Whether both say the same of what is run, wherever that stands.
    fn is_written_as(&self, other: &Self) -> bool {
        let entry = |server: &Self| server.written.as_deref().map(write::entry);
        entry(self) == entry(other)
    }

    /// What its log is called.
    pub fn log_name(&self) -> String {
        let Some(folder) = &self.scope.folder else {
            return self.slug.to_string();
        };
        let hash = Sha256::digest(folder.as_os_str().as_encoded_bytes());
        let hex: String = hash[..4].iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}-{hex}", self.slug)
    }

    /// Where it is configured, for people.
    pub fn origin(&self) -> Option<String> {
        let origin = &self.written.as_ref()?.origin;
        let source = &origin.source;
        let place = format!("{}:{}", source.path.display(), origin.line());
        Some(format!("{place} ({})", source.layer))
    }

    /// What is run, as it was written and as it may be shown: one line for a shell.
    pub fn shown(&self) -> String {
        let Some(Some(Transport::Stdio(stdio))) = self.written.as_ref().map(|w| &w.transport)
        else {
            return self.command.clone();
        };
        show::command_line(stdio)
    }

    /// How it is reached, in a word.
    pub fn transport(&self) -> &'static str {
        let written = self.written.as_ref().map(|written| &written.transport);
        match (&self.http, written) {
            (Some(http), _) => http.transport(),
            (None, Some(Some(Transport::Http(_)))) => "http",
            (None, _) => "stdio",
        }
    }

    /// What is to be run, or reached.
    pub fn target(&self) -> Target {
        match &self.http {
            Some(http) => Target::Http(Box::new(http.clone())),
            None => Target::Process(self.spawn_spec()),
        }
    }

    fn spawn_spec(&self) -> SpawnSpec {
        SpawnSpec {
            command: self.command.clone(),
            args: self.args.clone(),
            env: environment(env::vars_os(), &self.env_passthrough, &self.env),
            cwd: self.cwd.clone(),
        }
    }
}

/// Sorts the servers and gives each a slug. Those of one name share it, because nobody sees two of them; in
/// the pool a project's own is then told apart by its folder.
fn name_servers(servers: &mut [ServerConfig]) {
    let mut namesakes: BTreeMap<String, usize> = BTreeMap::new();
    for server in &*servers {
        *namesakes.entry(server.name.clone()).or_default() += 1;
    }
    let slugs = unique_slugs(namesakes.keys().map(String::as_str));
    let slugs: BTreeMap<&str, Slug> = namesakes.keys().map(String::as_str).zip(slugs).collect();
    for server in &mut *servers {
        if let Some(slug) = slugs.get(server.name.as_str()) {
            server.slug = slug.clone();
        }
        if let Some(folder) = &server.scope.folder
            && namesakes.get(&server.name).is_some_and(|n| *n > 1)
        {
            server.name = format!("{} ({})", server.name, folder.display());
        }
    }
    servers.sort_by(|a, b| a.name.cmp(&b.name));
}

/// Where the daemon keeps what it wants to know again next time, and the logs of the servers.
pub fn state_folder() -> Option<PathBuf> {
    Places::ours().state
}

/// Where people are told to write their own config.
pub fn user_file() -> Option<PathBuf> {
    Places::ours().user_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_value_of_a_variable_is_no_other_program() {
        let server = |change: fn(&mut ServerConfig)| {
            let mut server = ServerConfig::new("a", "x".into());
            server.env.insert("TOKEN".into(), "1".into());
            change(&mut server);
            server.run_identity()
        };
        let same = server(|_| {});
        assert_eq!(
            same,
            server(|s| drop(s.env.insert("TOKEN".into(), "2".into())))
        );
        assert_eq!(same, server(|s| s.name = "b".into()));
        let changes: [fn(&mut ServerConfig); 4] = [
            |s| s.command = "y".into(),
            |s| s.args = vec!["b".into()],
            |s| s.cwd = Some("/".into()),
            |s| drop(s.env.insert("LD_PRELOAD".into(), "1".into())),
        ];
        for change in changes {
            assert_ne!(same, server(change));
        }
    }

    #[test]
    fn the_identity_is_what_is_run_and_nothing_else() {
        let server = |change: fn(&mut ServerConfig)| {
            let mut server = ServerConfig::new("a", "x".into());
            server.args = vec!["b".into(), "c".into()];
            change(&mut server);
            server.identity(None, b"")
        };
        let same = server(|_| {});
        assert_eq!(same.len(), 32);
        assert_eq!(same, server(|s| s.name = "other".into()));
        assert_eq!(same, server(|s| s.timeout = Duration::from_secs(1)));
        let changes: [fn(&mut ServerConfig); 5] = [
            |s| s.command = "y".into(),
            |s| s.args = vec!["bc".into()],
            |s| s.args = vec!["b".into(), "c".into(), String::new()],
            |s| s.cwd = Some("/".into()),
            |s| drop(s.env.insert("A".into(), "1".into())),
        ];
        for change in changes {
            assert_ne!(same, server(change));
        }
        let mut plain = ServerConfig::new("a", "x".into());
        let here = plain.identity(Some(Path::new("/here")), b"");
        assert_ne!(here, plain.identity(Some(Path::new("/there")), b""));
        assert_ne!(here, plain.identity(Some(Path::new("/here")), b"token"));
        plain.cwd = Some("/elsewhere".into());
        assert_eq!(
            plain.identity(Some(Path::new("/here")), b""),
            plain.identity(None, b"")
        );
    }
}
