//! From what the daemon knows to what goes over the wire.

use crate::{
    catalog,
    mcp::lists::Kind,
    policy::{Limit, Policy, hygiene, pins::Judgement},
    pool::{Member, Server, key::Caller},
    supervisor::{
        lists::Lists,
        machine::{Outcome, State},
        status::Status,
    },
};
use nexus_proto::{reason::Failure, text, v1};
use prost_types::Timestamp;
use std::{sync::Arc, time::SystemTime};

/// A server, as this caller may see it: what its processes tell may differ from one caller to the next.
pub(super) fn server(server: &Server, caller: &Caller, policy: &Policy) -> v1::Server {
    let config = server.config();
    let limits = policy.limits().of_server(&config.name);
    let is_operator = caller.standing.is_operator();
    let mut members = server.members();
    members.retain(|member| member.is_for(caller));
    let instances: Vec<_> = members
        .iter()
        .map(|member| instance(server, member, is_operator))
        .collect();
    // Nobody may have needed it yet.
    let nothing = Status::new();
    let best = members.iter().max_by_key(|member| rank(&member.current()));
    // A copy: whoever holds on to it keeps its actor from going on.
    let status = best.map(|member| member.current().clone());
    let status = status.as_ref().unwrap_or(&nothing);
    // Also where there is no process yet that could fail for it.
    let lacks = config.lacks.as_ref().filter(|_| !server.is_held());
    let last_failure = status.last_failure.as_ref();
    let last_failure = last_failure.map(|past| (&past.failure, Some(timestamp(past.at))));
    let last_failure = last_failure.or(lacks.map(|lacks| (lacks, None)));
    let last_failure = last_failure.map(|(failure, at)| {
        // What a server says when it fails is as strange as all else that it says.
        let failure = hygiene::failure(Failure::clone(failure));
        (caller.may_know(failure), at)
    });
    // What is run, from where and why not is for the operator.
    let inside = |text: String| if is_operator { text } else { String::new() };
    let cause = lacks.map_or(&status.cause, |lacks| &lacks.message);
    let cause = text::clean(cause).into_owned();
    let cause = match &last_failure {
        Some((failure, _)) if !is_operator => failure.message.clone(),
        _ => cause,
    };
    let lists = server.lists_for(caller);
    let judgement = lists
        .of(Kind::Tools)
        .list
        .as_ref()
        .map(|tools| server.judge(tools));
    let judgement = judgement.unwrap_or_default();
    let count = |kind| {
        let list = lists.of(kind).list.as_ref();
        // As many as there are for anybody.
        let passes = |key: &str| {
            kind != Kind::Tools || config.tools.passes(key) && judgement.held(key).is_none()
        };
        let entries = list.iter().flat_map(|list| &list.entries);
        number(entries.filter(|entry| passes(&entry.key)).count())
    };
    let sum = |count: fn(&v1::Instance) -> u32| instances.iter().map(count).sum();
    let timing = |percent| {
        let time = server.timings().percentile(percent).filter(|_| is_operator);
        time.and_then(|time| time.try_into().ok())
    };
    v1::Server {
        name: config.name.clone(),
        slug: config.slug.to_string(),
        state: match lacks {
            Some(_) => v1::ServerState::Failed,
            None => state(server, status),
        }
        .into(),
        state_since: best.map(|_| timestamp(status.state_since)),
        cause,
        wanted: status.wanted,
        transport: config.transport().to_owned(),
        command: inside(config.command.clone()),
        url: config
            .http
            .as_ref()
            .filter(|_| is_operator)
            .map(|http| http.url.to_string()),
        source: config
            .source
            .as_ref()
            .map(|path| inside(path.display().to_string()))
            .unwrap_or_default(),
        pid: status.pid,
        generation: status.generation,
        restarts: sum(|instance| instance.restarts),
        in_flight: sum(|instance| instance.in_flight),
        waiting: sum(|instance| instance.waiting),
        calls: if is_operator { server.calls() } else { 0 },
        call_p50: timing(50),
        call_p99: timing(99),
        info: lists.info.as_ref().map(|info| v1::ServerInfo {
            name: info.name.clone(),
            version: info.version.clone(),
            title: info.title.clone(),
            protocol_version: info.revision.as_str().to_owned(),
            instructions: info.instructions.clone(),
            capabilities: info.capabilities.clone(),
        }),
        tools: count(Kind::Tools),
        resources: count(Kind::Resources),
        resource_templates: count(Kind::Templates),
        prompts: count(Kind::Prompts),
        last_failure: last_failure.map(|(failure, at)| v1::ServerFailure {
            reason: failure.reason.as_str().to_owned(),
            fixes: fixes(&failure),
            message: failure.message,
            stderr: failure.details.stderr,
            at,
            causes: failure.details.causes,
        }),
        next_try: status.next_try.map(timestamp),
        warnings: warnings(server, &lists, &judgement, &members, is_operator),
        latency: status.latency.and_then(|after| after.try_into().ok()),
        instances,
        memory_bytes: None,
        sharing: config.sharing.as_str().to_owned(),
        start: config.start.as_str().to_owned(),
        asks: lists.asks,
        rate_limits: limits.into_iter().map(rate_limit).collect(),
    }
}

pub(super) fn rate_limit(limit: Limit) -> v1::RateLimit {
    v1::RateLimit {
        what: limit.what,
        count: limit.rate.count,
        per: limit.rate.per.try_into().ok(),
        burst: limit.rate.burst,
        refused: limit.refused,
    }
}

fn instance(server: &Server, member: &Member, is_operator: bool) -> v1::Instance {
    let (in_flight, waiting) = member.counts();
    let status = member.current();
    v1::Instance {
        number: member.number,
        key: member.key.to_string(),
        state: state(server, &status).into(),
        state_since: Some(timestamp(status.state_since)),
        cause: match is_operator {
            true => text::clean(&status.cause).into_owned(),
            false => String::new(),
        },
        pid: status.pid,
        generation: status.generation,
        restarts: status.restarts,
        in_flight: number(in_flight),
        waiting: number(waiting),
    }
}

/// What to do about a failure, the best first.
fn fixes(failure: &Failure) -> Vec<String> {
    let details = &failure.details;
    details.hint.iter().chain(&details.fixes).cloned().collect()
}

/// Of several processes, the one that fares best stands for the server.
fn rank(status: &Status) -> u8 {
    match status.state {
        State::Ready { .. } if status.silences == 0 => 8,
        State::Ready { .. } => 7,
        State::Starting { .. } => 6,
        State::Queued => 5,
        State::Stopping { .. } => 4,
        State::Backoff { .. } => 3,
        State::CrashLoop { .. } => 2,
        State::Failed { .. } => 1,
        State::Stopped => 0,
    }
}

fn warnings(
    server: &Server,
    lists: &Lists,
    judgement: &Judgement,
    members: &[Arc<Member>],
    is_operator: bool,
) -> Vec<String> {
    let mut warnings = match is_operator {
        true => judgement.warnings(server.config().slug.as_str()),
        false => Vec::new(),
    };
    for kind in Kind::ALL {
        let known = lists.of(kind);
        let odd = known.list.iter().flat_map(|list| &list.warnings);
        warnings.extend(odd.cloned());
        if let Some(error) = &known.error {
            let what = kind.plural();
            warnings.push(format!("its {what} could not be listed: {error}"));
        }
    }
    if server.log().lost() > 0 {
        let lost = server.log().lost();
        warnings.push(format!(
            "{lost} lines that it logged did not reach the disk"
        ));
    }
    for member in members {
        let status = member.current();
        if status.leaked > 0 {
            let leaked = status.leaked;
            warnings.push(format!("{leaked} of its processes cannot be ended"));
        }
        let Some(connection) = &status.connection else {
            continue;
        };
        if connection.oddities() > 0 {
            warnings.push(format!(
                "{} messages made no sense and were dropped",
                connection.oddities()
            ));
        }
        if connection.noise() > 0 {
            warnings.push(format!(
                "it prints to its standard output what is not MCP: {} lines were passed over",
                connection.noise()
            ));
        }
    }
    warnings
}

fn state(server: &Server, status: &Status) -> v1::ServerState {
    match status.state {
        State::Stopped if server.is_held() => v1::ServerState::Stopped,
        State::Stopped => v1::ServerState::Idle,
        State::Queued | State::Starting { .. } => v1::ServerState::Starting,
        State::Ready { .. } if status.silences > 0 => v1::ServerState::Degraded,
        State::Ready { .. } => v1::ServerState::Ready,
        State::Backoff { .. } => v1::ServerState::Backoff,
        State::CrashLoop { .. } => v1::ServerState::CrashLoop,
        State::Failed { .. } if status.needs_auth() => v1::ServerState::NeedsAuth,
        State::Failed { .. } => v1::ServerState::Failed,
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
        Outcome::Refused => v1::CommandOutcome::Refused,
    }
    .into()
}

pub(super) fn timestamp(time: SystemTime) -> Timestamp {
    time.into()
}

pub(super) fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
