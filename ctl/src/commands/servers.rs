//! `nexusctl servers`.

mod detail;
mod json;

use super::Context;
use crate::{
    cli::Servers,
    exit::Error,
    output::{
        style,
        table::{Cell, Table},
        time,
    },
};
use json::EventJson;
pub(super) use json::{RateLimitJson, ServerJson, verbatim};
use nexus_client::{Nexus, Server, ServerEvent, ServerState};
use std::{collections::HashMap, time::SystemTime};

pub(crate) async fn run(context: &Context, args: Servers) -> Result<(), Error> {
    let nexus = context.connect().await?;
    if args.watch {
        return watch(context, &nexus, args.name.as_deref()).await;
    }
    let now = SystemTime::now();
    if let Some(name) = &args.name {
        let server = nexus.servers().get(name).await?;
        if context.output.json {
            return context.output.value(&ServerJson::new(&server, now));
        }
        return context
            .output
            .data(&detail::text(&context.output, &server, now));
    }
    let servers = nexus.servers().list().await?;
    if context.output.json {
        let servers: Vec<_> = servers.iter().map(|s| ServerJson::new(s, now)).collect();
        return context.output.value(&servers);
    }
    if servers.is_empty() {
        context.output.note("no servers are configured");
        return Ok(());
    }
    context.output.table(&table(&servers, now))?;
    let troubled: Vec<_> = servers.iter().filter_map(|s| trouble(s, now)).collect();
    if troubled.is_empty() {
        return Ok(());
    }
    let lines = troubled.join("\n");
    context.output.foreign(&format!("\n{lines}"))
}

fn table(servers: &[Server], now: SystemTime) -> Table {
    let mut table = Table::new(&[
        "NAME",
        "STATE",
        ">TOOLS",
        ">PID",
        ">UPTIME",
        ">RESTARTS",
        ">IN-FLIGHT",
        ">P50",
        ">P99",
        ">MEMORY",
    ]);
    for server in servers {
        let cell = |known: Option<String>| Cell::from(known.unwrap_or_else(|| "-".to_owned()));
        table.row([
            Cell::from(crate::output::safe::line(&server.name)),
            Cell::styled(server.state.as_str(), style::of_state(server.state)),
            server.tools.to_string().into(),
            cell(pids(server)),
            cell(uptime(server, now)),
            server.restarts.to_string().into(),
            in_flight(server).into(),
            cell(server.call_p50.map(time::short)),
            cell(server.call_p99.map(time::short)),
            cell(server.memory.map(time::bytes)),
        ]);
    }
    table
}

/// The process, or where it is reached if it is none of ours; of several the first, and how many more there are.
fn pids(server: &Server) -> Option<String> {
    if let Some(url) = &server.url {
        return Some(one_line(url));
    }
    let pid = server.pid?;
    let running = server.instances.iter().filter(|other| other.pid.is_some());
    let others = running.count().saturating_sub(1);
    Some(match others {
        0 => pid.to_string(),
        others => format!("{pid} +{others}"),
    })
}

/// Calls under way, and those that wait for their turn.
fn in_flight(server: &Server) -> String {
    match server.waiting {
        0 => server.in_flight.to_string(),
        waiting => format!("{} +{waiting}", server.in_flight),
    }
}

/// How long it has been answering.
fn uptime(server: &Server, now: SystemTime) -> Option<String> {
    let is_up = matches!(server.state, ServerState::Ready | ServerState::Degraded);
    let since = server.state_since.filter(|_| is_up);
    time::since(since, now).map(time::long)
}

/// What is wrong with a server, in one line.
fn trouble(server: &Server, now: SystemTime) -> Option<String> {
    use ServerState::{Backoff, CrashLoop, Degraded, Failed, NeedsAuth};
    if !matches!(
        server.state,
        Backoff | CrashLoop | Degraded | Failed | NeedsAuth
    ) {
        return server
            .warnings
            .first()
            .map(|warning| format!("{}: {}", server.name, one_line(warning)));
    }
    let failure = server.last_failure.as_ref()?;
    let mut line = format!("{}: {}", server.name, one_line(&failure.message));
    if let Some(wait) = next_try(server, now) {
        line += &format!("; {wait}");
    }
    Some(line)
}

fn one_line(text: &str) -> String {
    crate::output::safe::line(text)
}

/// When a server that has ended is tried again.
fn next_try(server: &Server, now: SystemTime) -> Option<String> {
    let wait = server.next_try?.duration_since(now).ok()?;
    Some(format!("tried again in {}", time::long(wait)))
}

async fn watch(context: &Context, nexus: &Nexus, name: Option<&str>) -> Result<(), Error> {
    let mut events = match name {
        Some(name) => nexus.servers().watch_one(name).await?,
        None => nexus.servers().watch().await?,
    };
    // What looks the same to a person is told once.
    let mut last: HashMap<String, String> = HashMap::new();
    while let Some(event) = events.next().await {
        let (event, now) = (event?, SystemTime::now());
        if context.output.json {
            context.output.value_line(&EventJson::new(&event, now))?;
            continue;
        }
        let line = match &event {
            ServerEvent::Is(server) => {
                let state = style::of_state(server.state);
                let state = context.output.paint(server.state.as_str(), state);
                let mut line = format!("{}: {state}", one_line(&server.name));
                match server.state {
                    ServerState::Ready => {
                        line += &format!(", {} tools", server.tools);
                    }
                    ServerState::Starting
                    | ServerState::Stopped
                    | ServerState::Idle
                    | ServerState::Stopping => {
                        if !server.cause.is_empty() {
                            line += &format!(", {}", one_line(&server.cause));
                        }
                    }
                    _ => {
                        let failure = server.last_failure.as_ref();
                        let why = failure.map(|failure| one_line(&failure.message));
                        let parts = why.into_iter().chain(next_try(server, now));
                        line.extend(parts.map(|part| format!(", {part}")));
                    }
                }
                if last.insert(server.name.clone(), line.clone()).as_ref() == Some(&line) {
                    continue;
                }
                line
            }
            ServerEvent::Removed { name, .. } => {
                last.remove(name);
                format!("{}: removed", one_line(name))
            }
            _ => continue,
        };
        context.output.data(&line)?;
    }
    Ok(())
}
