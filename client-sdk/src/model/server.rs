//! Servers, and what happens to them.

use crate::{RawJson, Reason, Result};
use nexus_proto::v1;
use std::{
    fmt,
    time::{Duration, SystemTime},
};

/// One server of the pool.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Server {
    /// The name that the config gave it.
    pub name: String,
    /// Its prefix in the names of tools.
    pub slug: String,
    /// Where it is in its life.
    pub state: ServerState,
    /// Since when it has been in that state.
    pub state_since: Option<SystemTime>,
    /// Whether it is meant to run.
    pub wanted: bool,
    /// How it is reached: `stdio`, `http` or `sse`.
    pub transport: String,
    /// The program that is run, without its arguments; empty for one that is reached over HTTP.
    pub command: String,
    /// Where it is reached, without what may be secret, if it is reached over HTTP.
    pub url: Option<String>,
    /// The file that it was configured in; `None` for the built-in demo.
    pub source: Option<String>,
    /// The process, while there is one.
    pub pid: Option<u32>,
    /// How many processes there have been.
    pub generation: u64,
    /// How many times it was started again without anyone asking.
    pub restarts: u32,
    /// Calls that are under way.
    pub in_flight: u32,
    /// Calls that wait for their turn.
    pub waiting: u32,
    /// Calls that it was sent since the daemon started.
    pub calls: u64,
    /// What it said of itself, once it has.
    pub info: Option<ServerInfo>,
    /// How many tools it lists.
    pub tools: u32,
    /// How many resources it lists.
    pub resources: u32,
    /// How many resource templates it lists.
    pub resource_templates: u32,
    /// How many prompts it lists.
    pub prompts: u32,
    /// Why it last ended or could not start.
    pub last_failure: Option<ServerFailure>,
    /// When it is tried again.
    pub next_try: Option<SystemTime>,
    /// What works, but not as it should.
    pub warnings: Vec<String>,
    /// How long it took to answer the last health check; `None` until there was one.
    pub latency: Option<Duration>,
    /// Why it is in that state.
    pub cause: String,
    /// Its processes and the places for them. What is told above of a process is told of the one that
    /// fares best; counts are those of all.
    pub instances: Vec<Instance>,
    /// Half of its calls were answered faster than this; `None` before the first one.
    pub call_p50: Option<Duration>,
    /// 99 of 100 of its calls were answered faster than this.
    pub call_p99: Option<Duration>,
    /// The memory of its processes and of what they started, in bytes. A watch does not tell it.
    pub memory: Option<u64>,
    /// Who shares a process: `shared`, `per-agent`, `per-project` or `per-credential`.
    pub sharing: String,
    /// When it is started: `eager` or `lazy`.
    pub start: String,
    /// It puts questions to its client, so one agent's calls are let through at a time.
    pub asks: bool,
    /// How often it and its tools may be called.
    pub rate_limits: Vec<RateLimit>,
}

/// How often something may be called, and how often it was too often.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateLimit {
    /// What it is for: `server`, `tool NAME` or `agent`.
    pub what: String,
    /// So many times…
    pub count: u32,
    /// …in this time.
    pub per: Duration,
    /// So many of them at once.
    pub burst: u32,
    /// How many calls it has refused.
    pub refused: u64,
}

impl From<v1::RateLimit> for RateLimit {
    fn from(wire: v1::RateLimit) -> Self {
        let per = wire.per.and_then(|per| per.try_into().ok());
        Self {
            what: wire.what,
            count: wire.count,
            per: per.unwrap_or_default(),
            burst: wire.burst,
            refused: wire.refused,
        }
    }
}

/// One process of a server, or the place for one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Instance {
    /// Tells it from the others that the server has had.
    pub number: u32,
    /// Whose it is: `shared`, `agent 7`, `project /home/me/x`, `credential ***`.
    pub key: String,
    /// Where it is in its life.
    pub state: ServerState,
    /// Since when it has been in that state.
    pub state_since: Option<SystemTime>,
    /// Why it is in that state.
    pub cause: String,
    /// The process, while there is one.
    pub pid: Option<u32>,
    /// How many processes there have been.
    pub generation: u64,
    /// How many times it was started again without anyone asking.
    pub restarts: u32,
    /// Calls that are under way.
    pub in_flight: u32,
    /// Calls that wait for their turn.
    pub waiting: u32,
}

impl From<v1::Instance> for Instance {
    fn from(wire: v1::Instance) -> Self {
        Self {
            state: wire.state().into(),
            number: wire.number,
            key: wire.key,
            state_since: wire.state_since.and_then(|at| at.try_into().ok()),
            cause: wire.cause,
            pid: wire.pid,
            generation: wire.generation,
            restarts: wire.restarts,
            in_flight: wire.in_flight,
            waiting: wire.waiting,
        }
    }
}

impl Server {
    pub(crate) fn from_wire(wire: v1::Server) -> Result<Self> {
        Ok(Self {
            state: wire.state().into(),
            name: wire.name,
            slug: wire.slug,
            state_since: wire.state_since.and_then(|at| at.try_into().ok()),
            wanted: wire.wanted,
            transport: wire.transport,
            command: wire.command,
            url: wire.url,
            source: Some(wire.source).filter(|source| !source.is_empty()),
            pid: wire.pid,
            generation: wire.generation,
            restarts: wire.restarts,
            in_flight: wire.in_flight,
            waiting: wire.waiting,
            calls: wire.calls,
            info: wire.info.map(ServerInfo::from_wire).transpose()?,
            tools: wire.tools,
            resources: wire.resources,
            resource_templates: wire.resource_templates,
            prompts: wire.prompts,
            last_failure: wire.last_failure.map(Into::into),
            next_try: wire.next_try.and_then(|at| at.try_into().ok()),
            warnings: wire.warnings,
            latency: wire.latency.and_then(|time| time.try_into().ok()),
            cause: wire.cause,
            instances: wire.instances.into_iter().map(Into::into).collect(),
            call_p50: wire.call_p50.and_then(|time| time.try_into().ok()),
            call_p99: wire.call_p99.and_then(|time| time.try_into().ok()),
            memory: wire.memory_bytes,
            sharing: wire.sharing,
            start: wire.start,
            asks: wire.asks,
            rate_limits: wire.rate_limits.into_iter().map(Into::into).collect(),
        })
    }
}

/// Where a server is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ServerState {
    /// Stopped by an operator: not running until it is started again.
    Stopped,
    /// Not running; the next call starts it.
    Idle,
    /// The MCP handshake is under way.
    Starting,
    /// Answers calls.
    Ready,
    /// Runs, but its health checks fail.
    Degraded,
    /// Ended; it is started again at [`Server::next_try`].
    Backoff,
    /// Ended too often in a short time. It is still tried, at the longest delay.
    CrashLoop,
    /// Cannot start, and trying again would not help.
    Failed,
    /// Is being ended.
    Stopping,
    /// Wants to be shown a credential, or another one.
    NeedsAuth,
    /// A state that this version of the client does not know.
    Unknown,
}

impl ServerState {
    /// In words: `ready`, `crash loop`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Idle => "idle",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Degraded => "degraded",
            Self::Backoff => "backoff",
            Self::CrashLoop => "crash loop",
            Self::Failed => "failed",
            Self::Stopping => "stopping",
            Self::NeedsAuth => "needs auth",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for ServerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl From<v1::ServerState> for ServerState {
    fn from(wire: v1::ServerState) -> Self {
        match wire {
            v1::ServerState::Unspecified => Self::Unknown,
            v1::ServerState::Stopped => Self::Stopped,
            v1::ServerState::Starting => Self::Starting,
            v1::ServerState::Ready => Self::Ready,
            v1::ServerState::Degraded => Self::Degraded,
            v1::ServerState::Backoff => Self::Backoff,
            v1::ServerState::CrashLoop => Self::CrashLoop,
            v1::ServerState::Failed => Self::Failed,
            v1::ServerState::Stopping => Self::Stopping,
            v1::ServerState::Idle => Self::Idle,
            v1::ServerState::NeedsAuth => Self::NeedsAuth,
        }
    }
}

/// What a server says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerInfo {
    /// Its own name.
    pub name: String,
    /// Its own version.
    pub version: String,
    /// A name for people.
    pub title: Option<String>,
    /// The revision of MCP that was agreed on.
    pub protocol_version: String,
    /// How it wants to be used, in its own words.
    pub instructions: Option<String>,
    /// What it can do, verbatim.
    pub capabilities: RawJson,
}

impl ServerInfo {
    fn from_wire(wire: v1::ServerInfo) -> Result<Self> {
        Ok(Self {
            name: wire.name,
            version: wire.version,
            title: Some(wire.title).filter(|title| !title.is_empty()),
            protocol_version: wire.protocol_version,
            instructions: Some(wire.instructions).filter(|text| !text.is_empty()),
            capabilities: RawJson::from_wire(wire.capabilities, "a server's capabilities")?,
        })
    }
}

/// Why a server ended or could not start.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerFailure {
    /// What a program decides by; `None` for one that this version of the client does not know.
    pub reason: Option<Reason>,
    /// A sentence for people.
    pub message: String,
    /// The last lines that it wrote to its standard error.
    pub stderr: Vec<String>,
    /// When it happened.
    pub at: Option<SystemTime>,
    /// What is likely the cause.
    pub causes: Vec<String>,
    /// What to do about it, the best first.
    pub fixes: Vec<String>,
}

impl From<v1::ServerFailure> for ServerFailure {
    fn from(wire: v1::ServerFailure) -> Self {
        Self {
            reason: Reason::parse(&wire.reason),
            message: wire.message,
            stderr: wire.stderr,
            at: wire.at.and_then(|at| at.try_into().ok()),
            causes: wire.causes,
            fixes: wire.fixes,
        }
    }
}

/// Whether a command answers when it is done, or when it is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wait {
    /// When the server is ready, gone, or has failed.
    #[default]
    Done,
    /// At once.
    No,
}

/// What became of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CommandOutcome {
    /// It is being carried out.
    Accepted,
    /// There was nothing to do.
    AlreadyTrue,
    /// It cannot be done now.
    Refused,
    /// An outcome that this version of the client does not know.
    Unknown,
}

impl From<v1::CommandOutcome> for CommandOutcome {
    fn from(wire: v1::CommandOutcome) -> Self {
        match wire {
            v1::CommandOutcome::Unspecified => Self::Unknown,
            v1::CommandOutcome::Accepted => Self::Accepted,
            v1::CommandOutcome::AlreadyTrue => Self::AlreadyTrue,
            v1::CommandOutcome::Refused => Self::Refused,
        }
    }
}

/// The answer to a command.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Commanded {
    /// What became of it.
    pub outcome: CommandOutcome,
    /// The server after it.
    pub server: Server,
}

/// A change of the pool.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ServerEvent {
    /// A server as it is now.
    Is(Box<Server>),
    /// A server that is no longer configured.
    Removed {
        /// Its name.
        name: String,
        /// Its slug.
        slug: String,
    },
}

impl ServerEvent {
    pub(crate) fn from_wire(wire: v1::ServersWatchResponse) -> Result<Self> {
        let server = wire.server.unwrap_or_default();
        Ok(if wire.removed {
            Self::Removed {
                name: server.name,
                slug: server.slug,
            }
        } else {
            Self::Is(Box::new(Server::from_wire(server)?))
        })
    }
}
