//! The daemon.

use nexus_proto::v1;
use std::{path::PathBuf, time::SystemTime};

/// What the daemon is and how it is doing.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DaemonStatus {
    /// The version of nexusd.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// When it started.
    pub started_at: Option<SystemTime>,
    /// Where it listens.
    pub endpoint: String,
    /// The files that its configuration came from; none when it runs the built-in demo.
    pub config_files: Vec<String>,
    /// Whether it runs the built-in demo because nothing is configured.
    pub demo: bool,
    /// How many servers are configured.
    pub servers: u32,
    /// How many of them are ready.
    pub servers_ready: u32,
    /// How many clients are connected.
    pub connections: u32,
    /// Calls under way.
    pub calls_in_flight: u32,
    /// Calls since it started.
    pub calls: u64,
    /// Its resident memory in bytes, where the platform tells.
    pub memory_bytes: Option<u64>,
    /// It is stopping: new calls are refused.
    pub stopping: bool,
    /// MCP over HTTP on a loopback address, where that is wanted.
    pub http: Option<HttpDoor>,
}

/// MCP over HTTP on a loopback address.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpDoor {
    /// Where: an address and a port.
    pub address: String,
    /// The file with the token that every request must show as `Authorization: Bearer TOKEN`.
    pub token_file: PathBuf,
}

impl From<v1::DaemonStatusResponse> for DaemonStatus {
    fn from(wire: v1::DaemonStatusResponse) -> Self {
        Self {
            version: wire.version,
            pid: wire.pid,
            started_at: wire.started_at.and_then(|at| at.try_into().ok()),
            endpoint: wire.endpoint,
            config_files: wire.config_files,
            demo: wire.demo,
            servers: wire.servers,
            servers_ready: wire.servers_ready,
            connections: wire.connections,
            calls_in_flight: wire.calls_in_flight,
            calls: wire.calls,
            memory_bytes: Some(wire.memory_bytes).filter(|bytes| *bytes > 0),
            stopping: wire.stopping,
            http: wire.http.map(|http| HttpDoor {
                address: http.address,
                token_file: http.token_file.into(),
            }),
        }
    }
}

/// What a new reading of the configuration has changed. All entries are names of servers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReloadReport {
    /// New.
    pub added: Vec<String>,
    /// Gone.
    pub removed: Vec<String>,
    /// Started again, because what they run has changed.
    pub changed: Vec<String>,
    /// Undisturbed.
    pub unchanged: Vec<String>,
    /// What was read but looks wrong, as sentences.
    pub warnings: Vec<String>,
}

impl From<v1::DaemonReloadResponse> for ReloadReport {
    fn from(wire: v1::DaemonReloadResponse) -> Self {
        Self {
            added: wire.added,
            removed: wire.removed,
            changed: wire.changed,
            unchanged: wire.unchanged,
            warnings: wire.warnings,
        }
    }
}
