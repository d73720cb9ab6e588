//! `nexusctl approvals`: what agents want to do, and what somebody says to it.

mod dialog;

use super::Context;
use crate::{
    cli::approvals::{Approvals, Verb},
    exit::Error,
    output::{
        safe, style,
        table::{Cell, Table},
        time,
    },
};
use nexus_client::{Answer, Approval, ApprovalEvent};
use serde::Serialize;
use std::time::SystemTime;

pub(crate) async fn run(context: &Context, args: Approvals) -> Result<(), Error> {
    match args.verb {
        None => list(context).await,
        Some(Verb::Watch { .. }) if context.output.can_ask() && !context.output.json => {
            dialog::run(context).await
        }
        Some(Verb::Watch { .. }) => watch(context).await,
        Some(Verb::Allow { ids, server }) => {
            let answer = if server { Answer::Server } else { Answer::Once };
            decide(context, &ids, answer).await
        }
        Some(Verb::Deny { ids }) => decide(context, &ids, Answer::Deny).await,
        Some(Verb::Forget { agent, server }) => forget(context, agent, server.as_deref()).await,
    }
}

async fn list(context: &Context) -> Result<(), Error> {
    let nexus = context.connect().await?;
    let waiting = nexus.approvals().list().await?;
    if context.output.json {
        let waiting: Vec<_> = waiting.iter().map(ApprovalJson::new).collect();
        return context.output.value(&waiting);
    }
    if waiting.is_empty() {
        context.output.note("nothing waits for an answer");
        return Ok(());
    }
    context.output.table(&table(&waiting, SystemTime::now()))?;
    let hint =
        "answer with `nexusctl approvals allow ID`, `deny ID`, or `nexusctl approvals watch`";
    context.output.note(hint);
    Ok(())
}

fn table(waiting: &[Approval], now: SystemTime) -> Table {
    let mut table = Table::new(&[">ID", "AGENT", "WANTS TO", "WITH", ">LEFT"]);
    for approval in waiting {
        let with = match &approval.action {
            Some(action) => action.arguments.clone(),
            None => approval.tools.join(", "),
        };
        let left = approval
            .until
            .and_then(|until| until.duration_since(now).ok());
        table.row([
            Cell::styled(approval.id.to_string(), style::BOLD),
            safe::line(&approval.agent_name).into(),
            Cell::styled(wants(approval), style::CARE),
            safe::line(&with).into(),
            left.map_or("-".to_owned(), time::long).into(),
        ]);
    }
    table
}

/// What an agent wants to do, in a few words.
fn wants(approval: &Approval) -> String {
    let server = safe::line(&approval.server);
    let Some(action) = &approval.action else {
        return format!("connect to {server}");
    };
    let target = safe::line(&action.target);
    match action.method.as_str() {
        "resources/read" => format!("read {target} of {server}"),
        "prompts/get" => format!("use the prompt {server}.{target}"),
        _ => format!("call {server}.{target}"),
    }
}

async fn decide(context: &Context, ids: &[u64], answer: Answer) -> Result<(), Error> {
    let nexus = context.connect().await?;
    for id in ids {
        nexus.approvals().decide(*id, answer).await?;
        context.output.note(&match answer {
            Answer::Once => format!("{id}: allowed"),
            Answer::Server => format!("{id}: allowed, and everything else of this server"),
            Answer::Deny => format!("{id}: denied"),
        });
    }
    Ok(())
}

async fn forget(context: &Context, agent: Option<u64>, server: Option<&str>) -> Result<(), Error> {
    let nexus = context.connect().await?;
    let forgotten = nexus.approvals().forget(agent, server).await?;
    if context.output.json {
        return context
            .output
            .value(&serde_json::json!({ "forgotten": forgotten }));
    }
    context.output.note(&match forgotten {
        0 => "there was nothing to forget".to_owned(),
        1 => "one answer is forgotten".to_owned(),
        more => format!("{more} answers are forgotten"),
    });
    Ok(())
}

/// Each change in a line of its own.
async fn watch(context: &Context) -> Result<(), Error> {
    let nexus = context.connect().await?;
    let mut events = nexus.approvals().watch().await?;
    while let Some(event) = events.next().await {
        let output = &context.output;
        match event? {
            ApprovalEvent::Asked(approval) if output.json => {
                output.value_line(&EventJson {
                    event: "asked",
                    approval: Some(ApprovalJson::new(&approval)),
                    ..EventJson::default()
                })?;
            }
            ApprovalEvent::Asked(approval) => {
                let agent = safe::line(&approval.agent_name);
                output.line(&format!(
                    "{}: {agent} wants to {}",
                    approval.id,
                    wants(&approval)
                ))?;
            }
            ApprovalEvent::Closed { id, outcome } if output.json => {
                output.value_line(&EventJson {
                    event: "closed",
                    id: Some(id),
                    outcome: Some(outcome),
                    ..EventJson::default()
                })?;
            }
            ApprovalEvent::Closed { id, outcome } => {
                output.line(&format!("{id}: {}", safe::line(&outcome)))?;
            }
            _ => {}
        }
    }
    Ok(())
}

#[derive(Default, Serialize)]
struct EventJson<'a> {
    event: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<String>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    approval: Option<ApprovalJson<'a>>,
}

#[derive(Serialize)]
struct ApprovalJson<'a> {
    id: u64,
    agent: u64,
    agent_name: &'a str,
    pid: Option<u32>,
    project: Option<&'a str>,
    server: &'a str,
    method: Option<&'a str>,
    target: Option<&'a str>,
    arguments: Option<&'a str>,
    tools: &'a [String],
    since: Option<String>,
    until: Option<String>,
}

impl<'a> ApprovalJson<'a> {
    fn new(approval: &'a Approval) -> Self {
        let action = approval.action.as_ref();
        Self {
            id: approval.id,
            agent: approval.agent,
            agent_name: &approval.agent_name,
            pid: approval.pid,
            project: approval.project.as_deref(),
            server: &approval.server,
            method: action.map(|action| action.method.as_str()),
            target: action.map(|action| action.target.as_str()),
            arguments: action.map(|action| action.arguments.as_str()),
            tools: &approval.tools,
            since: approval.since.map(time::rfc3339),
            until: approval.until.map(time::rfc3339),
        }
    }
}
