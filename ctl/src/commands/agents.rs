//! `nexusctl agents`.

use super::{Context, servers::RateLimitJson};
use crate::{
    exit::Error,
    output::{
        safe, style,
        table::{Cell, Table},
        time,
    },
};
use nexus_client::{Agent, AgentCapabilities, Root};
use nexus_proto::name::passes_on;
use serde::Serialize;
use std::time::SystemTime;

pub(crate) async fn run(context: &Context) -> Result<(), Error> {
    let nexus = context.connect().await?;
    let agents = nexus.agents().list().await?;
    if context.output.json {
        let agents: Vec<_> = agents.iter().map(AgentJson::new).collect();
        return context.output.value(&agents);
    }
    context.output.table(&table(&agents, SystemTime::now()))
}

fn table(agents: &[Agent], now: SystemTime) -> Table {
    let mut table = Table::new(&[
        ">ID",
        "NAME",
        "LEVEL",
        ">PID",
        "PROJECT",
        ">SINCE",
        ">IN-FLIGHT",
        ">CALLS",
        "CAN",
        "HOLDS",
    ]);
    for agent in agents {
        let cell = |known: Option<String>| Cell::from(known.unwrap_or_else(|| "-".to_owned()));
        let own = if agent.you { style::BOLD } else { style::PLAIN };
        table.row([
            agent.id.to_string().into(),
            Cell::styled(name(agent), own),
            level(agent),
            cell(agent.pid.map(|pid| pid.to_string())),
            cell(agent.project.as_deref().map(safe::line)),
            cell(time::since(agent.since, now).map(time::long)),
            agent.in_flight.to_string().into(),
            agent.calls.to_string().into(),
            cell(agent.capabilities.map(can)),
            cell((!agent.holds.is_empty()).then(|| safe::line(&agent.holds.join(", ")))),
        ]);
    }
    table
}

fn level(agent: &Agent) -> Cell {
    let level = agent.level.as_deref().unwrap_or("-");
    let style = match level {
        "sandboxed" => style::BAD,
        "yolo" => style::CARE,
        _ => style::PLAIN,
    };
    Cell::styled(safe::line(level), style)
}

/// By its own word, or else by its program.
fn name(agent: &Agent) -> String {
    let program = agent.programs.iter().find(|name| !passes_on(name));
    let program = program.or(agent.programs.first());
    let own = agent.name.as_deref().or(match agent.you {
        true => agent.programs.first().map(String::as_str),
        false => program.map(String::as_str),
    });
    let parts = [own, agent.version.as_deref()];
    let parts: Vec<_> = parts.into_iter().flatten().map(safe::line).collect();
    let name = match parts[..] {
        [] => "-".to_owned(),
        _ => parts.join(" "),
    };
    match agent.you {
        true => name + " (you)",
        false => name,
    }
}

/// What an agent can be asked, in words.
fn can(can: AgentCapabilities) -> String {
    let sampling = match (can.sampling, can.sampling_tools) {
        (false, _) => None,
        (true, false) => Some("sampling"),
        (true, true) => Some("sampling with tools"),
    };
    let elicitation = match (can.elicitation_form, can.elicitation_url) {
        (false, false) => None,
        (true, false) => Some("elicitation"),
        (true, true) => Some("elicitation and pages"),
        (false, true) => Some("pages"),
    };
    let parts = [sampling, elicitation, can.roots.then_some("roots")];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    match parts[..] {
        [] => "nothing".to_owned(),
        _ => parts.join(", "),
    }
}

#[derive(Serialize)]
struct AgentJson<'a> {
    id: u64,
    you: bool,
    name: Option<&'a str>,
    version: Option<&'a str>,
    pid: Option<u32>,
    project: Option<&'a str>,
    since: Option<String>,
    in_flight: u32,
    calls: u64,
    questions: u32,
    level: Option<&'a str>,
    rule: Option<&'a str>,
    programs: &'a [String],
    holds: &'a [String],
    capabilities: Option<CapabilitiesJson>,
    roots: Vec<RootJson<'a>>,
    rate_limit: Option<RateLimitJson<'a>>,
}

#[derive(Serialize)]
struct CapabilitiesJson {
    sampling: bool,
    sampling_tools: bool,
    sampling_context: bool,
    elicitation_form: bool,
    elicitation_url: bool,
    roots: bool,
}

#[derive(Serialize)]
struct RootJson<'a> {
    uri: &'a str,
    name: Option<&'a str>,
}

impl<'a> AgentJson<'a> {
    fn new(agent: &'a Agent) -> Self {
        let root = |root: &'a Root| RootJson {
            uri: &root.uri,
            name: root.name.as_deref(),
        };
        Self {
            id: agent.id,
            you: agent.you,
            name: agent.name.as_deref(),
            version: agent.version.as_deref(),
            pid: agent.pid,
            project: agent.project.as_deref(),
            since: agent.since.map(time::rfc3339),
            in_flight: agent.in_flight,
            calls: agent.calls,
            questions: agent.questions,
            level: agent.level.as_deref(),
            rule: agent.rule.as_deref(),
            programs: &agent.programs,
            holds: &agent.holds,
            capabilities: agent.capabilities.map(|can| CapabilitiesJson {
                sampling: can.sampling,
                sampling_tools: can.sampling_tools,
                sampling_context: can.sampling_context,
                elicitation_form: can.elicitation_form,
                elicitation_url: can.elicitation_url,
                roots: can.roots,
            }),
            roots: agent.roots.iter().map(root).collect(),
            rate_limit: agent.rate_limit.as_ref().map(RateLimitJson::new),
        }
    }
}
