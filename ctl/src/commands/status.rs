//! `nexusctl status`.

use super::Context;
use crate::{
    exit::Error,
    output::{style, time},
};
use nexus_client::DaemonStatus;
use serde::Serialize;
use std::time::SystemTime;

pub(crate) async fn run(context: &Context) -> Result<(), Error> {
    let nexus = context.connect().await?;
    let status = nexus.daemon().status().await?;
    let now = SystemTime::now();
    if context.output.json {
        return context.output.value(&StatusJson::new(&status, now));
    }
    let rows = rows(&status, now);
    let mut text = String::new();
    for (name, value) in rows {
        let name = context.output.paint(&format!("{name:12}"), style::BOLD);
        text += &format!("{name} {value}\n");
    }
    context.output.data(&text)
}

fn rows(status: &DaemonStatus, now: SystemTime) -> Vec<(&'static str, String)> {
    let up = time::since(status.started_at, now).map(time::long);
    let config = match status.config_files[..] {
        _ if status.demo => "built-in demo".to_owned(),
        _ => status.config_files.join(", "),
    };
    let mut rows = vec![
        ("nexusd", status.version.clone()),
        ("pid", status.pid.to_string()),
        ("uptime", up.unwrap_or_else(|| "unknown".to_owned())),
        ("endpoint", status.endpoint.clone()),
        ("config", config),
        (
            "servers",
            format!("{} of {} ready", status.servers_ready, status.servers),
        ),
        ("connections", status.connections.to_string()),
        (
            "calls",
            format!("{} ({} under way)", status.calls, status.calls_in_flight),
        ),
    ];
    rows.extend(
        status
            .memory_bytes
            .map(|count| ("memory", time::bytes(count))),
    );
    if status.stopping {
        rows.push(("state", "stopping: new calls are refused".to_owned()));
    }
    rows
}

#[derive(Serialize)]
struct StatusJson<'a> {
    version: &'a str,
    pid: u32,
    started_at: Option<String>,
    uptime_seconds: Option<u64>,
    endpoint: &'a str,
    demo: bool,
    config_files: &'a [String],
    servers: u32,
    servers_ready: u32,
    connections: u32,
    calls: u64,
    calls_in_flight: u32,
    memory_bytes: Option<u64>,
    stopping: bool,
}

impl<'a> StatusJson<'a> {
    fn new(status: &'a DaemonStatus, now: SystemTime) -> Self {
        Self {
            version: &status.version,
            pid: status.pid,
            started_at: status.started_at.map(time::rfc3339),
            uptime_seconds: time::since(status.started_at, now).map(|up| up.as_secs()),
            endpoint: &status.endpoint,
            demo: status.demo,
            config_files: &status.config_files,
            servers: status.servers,
            servers_ready: status.servers_ready,
            connections: status.connections,
            calls: status.calls,
            calls_in_flight: status.calls_in_flight,
            memory_bytes: status.memory_bytes,
            stopping: status.stopping,
        }
    }
}
