//! Servers for `--json`.

use crate::output::time;
use nexus_client::{Instance, RateLimit, RawJson, Server, ServerEvent, ServerFailure, ServerInfo};
use serde::Serialize;
use serde_json::value::RawValue;
use std::time::{Duration, SystemTime};

#[derive(Debug, Serialize)]
pub(in crate::commands) struct ServerJson<'a> {
    name: &'a str,
    slug: &'a str,
    state: &'static str,
    state_since: Option<String>,
    uptime_seconds: Option<u64>,
    wanted: bool,
    transport: &'a str,
    command: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    source: Option<&'a str>,
    pid: Option<u32>,
    generation: u64,
    restarts: u32,
    calls: u64,
    in_flight: u32,
    tools: u32,
    resources: u32,
    resource_templates: u32,
    prompts: u32,
    info: Option<InfoJson<'a>>,
    last_failure: Option<FailureJson<'a>>,
    next_try: Option<String>,
    warnings: &'a [String],
    latency_seconds: Option<f64>,
    cause: &'a str,
    waiting: u32,
    call_p50_seconds: Option<f64>,
    call_p99_seconds: Option<f64>,
    memory_bytes: Option<u64>,
    sharing: &'a str,
    start: &'a str,
    asks: bool,
    instances: Vec<InstanceJson<'a>>,
    rate_limits: Vec<RateLimitJson<'a>>,
}

/// How often something may be called.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct RateLimitJson<'a> {
    what: &'a str,
    count: u32,
    per_seconds: f64,
    burst: u32,
    refused: u64,
}

#[derive(Debug, Serialize)]
struct InstanceJson<'a> {
    number: u32,
    key: &'a str,
    state: &'static str,
    state_since: Option<String>,
    cause: &'a str,
    pid: Option<u32>,
    generation: u64,
    restarts: u32,
    in_flight: u32,
    waiting: u32,
}

#[derive(Debug, Serialize)]
struct InfoJson<'a> {
    name: &'a str,
    version: &'a str,
    title: Option<&'a str>,
    protocol_version: &'a str,
    instructions: Option<&'a str>,
    capabilities: Option<&'a RawValue>,
}

#[derive(Debug, Serialize)]
struct FailureJson<'a> {
    reason: Option<&'static str>,
    message: &'a str,
    stderr: &'a [String],
    causes: &'a [String],
    fixes: &'a [String],
    at: Option<String>,
}

/// One line of `--watch`.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub(super) enum EventJson<'a> {
    Is { server: Box<ServerJson<'a>> },
    Removed { name: &'a str, slug: &'a str },
    Unknown,
}

impl<'a> EventJson<'a> {
    pub(super) fn new(event: &'a ServerEvent, now: SystemTime) -> Self {
        match event {
            ServerEvent::Is(server) => Self::Is {
                server: Box::new(ServerJson::new(server, now)),
            },
            ServerEvent::Removed { name, slug } => Self::Removed { name, slug },
            _ => Self::Unknown,
        }
    }
}

impl<'a> ServerJson<'a> {
    pub(in crate::commands) fn new(server: &'a Server, now: SystemTime) -> Self {
        let up = server
            .state_since
            .filter(|_| server.pid.is_some() || server.url.is_some());
        Self {
            name: &server.name,
            slug: &server.slug,
            state: server.state.as_str(),
            state_since: server.state_since.map(time::rfc3339),
            uptime_seconds: time::since(up, now).map(|up| up.as_secs()),
            wanted: server.wanted,
            transport: &server.transport,
            command: &server.command,
            url: server.url.as_deref(),
            source: server.source.as_deref(),
            pid: server.pid,
            generation: server.generation,
            restarts: server.restarts,
            calls: server.calls,
            in_flight: server.in_flight,
            tools: server.tools,
            resources: server.resources,
            resource_templates: server.resource_templates,
            prompts: server.prompts,
            info: server.info.as_ref().map(InfoJson::new),
            last_failure: server.last_failure.as_ref().map(FailureJson::new),
            next_try: server.next_try.map(time::rfc3339),
            warnings: &server.warnings,
            latency_seconds: seconds(server.latency),
            cause: &server.cause,
            waiting: server.waiting,
            call_p50_seconds: seconds(server.call_p50),
            call_p99_seconds: seconds(server.call_p99),
            memory_bytes: server.memory,
            sharing: &server.sharing,
            start: &server.start,
            asks: server.asks,
            instances: server.instances.iter().map(InstanceJson::new).collect(),
            rate_limits: server.rate_limits.iter().map(RateLimitJson::new).collect(),
        }
    }
}

impl<'a> RateLimitJson<'a> {
    pub(in crate::commands) fn new(limit: &'a RateLimit) -> Self {
        Self {
            what: &limit.what,
            count: limit.count,
            per_seconds: limit.per.as_secs_f64(),
            burst: limit.burst,
            refused: limit.refused,
        }
    }
}

fn seconds(time: Option<Duration>) -> Option<f64> {
    time.map(|time| time.as_secs_f64())
}

impl<'a> InstanceJson<'a> {
    fn new(instance: &'a Instance) -> Self {
        Self {
            number: instance.number,
            key: &instance.key,
            state: instance.state.as_str(),
            state_since: instance.state_since.map(time::rfc3339),
            cause: &instance.cause,
            pid: instance.pid,
            generation: instance.generation,
            restarts: instance.restarts,
            in_flight: instance.in_flight,
            waiting: instance.waiting,
        }
    }
}

impl<'a> InfoJson<'a> {
    fn new(info: &'a ServerInfo) -> Self {
        Self {
            name: &info.name,
            version: &info.version,
            title: info.title.as_deref(),
            protocol_version: &info.protocol_version,
            instructions: info.instructions.as_deref(),
            capabilities: verbatim(&info.capabilities),
        }
    }
}

impl<'a> FailureJson<'a> {
    fn new(failure: &'a ServerFailure) -> Self {
        Self {
            reason: failure.reason.map(|reason| reason.as_str()),
            message: &failure.message,
            stderr: &failure.stderr,
            causes: &failure.causes,
            fixes: &failure.fixes,
            at: failure.at.map(time::rfc3339),
        }
    }
}

/// A server's own JSON, as it wrote it.
pub(in crate::commands) fn verbatim(json: &RawJson) -> Option<&RawValue> {
    serde_json::from_str(json.as_str()).ok()
}
