//! From what the daemon knows to what goes over the wire.

use crate::{
    catalog,
    pool::Server,
    supervisor::{
        machine::{Outcome, State},
        status::Status,
    },
};
use nexus_proto::v1;
use prost_types::Timestamp;
use std::time::SystemTime;

pub(super) fn server(server: &Server) -> v1::Server {
    let config = server.config();
    let status = server.current();
    v1::Server {
        name: config.name.clone(),
        slug: config.slug.to_string(),
        state: state(&status).into(),
        state_since: Some(timestamp(status.state_since)),
        wanted: status.wanted,
        transport: "stdio".to_owned(),
        command: config.command.clone(),
        source: config
            .source
            .as_ref()
            .map(|path| path.display().to_string())
            .unwrap_or_default(),
        pid: status.pid,
        generation: status.generation,
        restarts: status.restarts,
        in_flight: number(status.connection.as_ref().map_or(0, |c| c.in_flight())),
        calls: server.calls(),
        info: status.info.as_ref().map(|info| v1::ServerInfo {
            name: info.name.clone(),
            version: info.version.clone(),
            title: info.title.clone(),
            protocol_version: info.protocol_version.clone(),
            instructions: info.instructions.clone(),
            capabilities: info.capabilities.clone(),
        }),
        tools: number(status.tools.as_ref().map_or(0, |list| list.tools.len())),
        last_failure: status.last_failure.as_ref().map(|past| v1::ServerFailure {
            reason: past.failure.reason.as_str().to_owned(),
            message: past.failure.message.clone(),
            stderr: past.failure.details.stderr.clone(),
            at: Some(timestamp(past.at)),
        }),
        next_try: status.next_try.map(timestamp),
        warnings: warnings(&status),
        latency: status.latency.and_then(|after| after.try_into().ok()),
    }
}

fn warnings(status: &Status) -> Vec<String> {
    let mut warnings = match &status.tools {
        Some(list) => list.warnings.clone(),
        None => Vec::new(),
    };
    if let Some(error) = &status.list_error {
        warnings.push(format!("its tools could not be listed: {error}"));
    }
    if let Some(connection) = &status.connection
        && connection.oddities() > 0
    {
        warnings.push(format!(
            "{} messages made no sense and were dropped",
            connection.oddities()
        ));
    }
    warnings
}

fn state(status: &Status) -> v1::ServerState {
    match status.state {
        State::Stopped => v1::ServerState::Stopped,
        State::Starting { .. } => v1::ServerState::Starting,
        State::Ready { .. } if status.silences > 0 => v1::ServerState::Degraded,
        State::Ready { .. } => v1::ServerState::Ready,
        State::Backoff { .. } => v1::ServerState::Backoff,
        State::CrashLoop { .. } => v1::ServerState::CrashLoop,
        State::Failed => v1::ServerState::Failed,
        State::Stopping { .. } => v1::ServerState::Stopping,
    }
}

pub(super) fn tool(tool: &catalog::Tool) -> v1::Tool {
    v1::Tool {
        name: tool.name.clone(),
        server: tool.server.clone(),
        tool: tool.tool.clone(),
        definition: tool.definition.clone(),
    }
}

pub(super) fn outcome(outcome: Outcome) -> i32 {
    match outcome {
        Outcome::Accepted => v1::CommandOutcome::Accepted,
        Outcome::AlreadyTrue => v1::CommandOutcome::AlreadyTrue,
    }
    .into()
}

pub(super) fn timestamp(time: SystemTime) -> Timestamp {
    time.into()
}

pub(super) fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
