//! `nexusctl approvals watch` on a terminal: one question after the other.

use super::{Context, wants};
use crate::{
    exit::Error,
    output::{safe, style},
};
use nexus_client::{Answer, Approval, ApprovalEvent, ApprovalEvents, Reason};
use std::{collections::VecDeque, io::Write as _};
use tokio::io::{AsyncBufReadExt as _, BufReader};

pub(super) async fn run(context: &Context) -> Result<(), Error> {
    let nexus = context.connect().await?;
    let mut events = nexus.approvals().watch().await?;
    let mut typed = BufReader::new(tokio::io::stdin()).lines();
    let mut waiting: VecDeque<Approval> = VecDeque::new();
    context.output.note("waiting for questions; Ctrl-C ends it");
    loop {
        let Some(approval) = waiting.front() else {
            let more = tokio::select! {
                more = take(&mut events, &mut waiting, context) => more?,
                // What is typed before there is a question is no answer.
                line = typed.next_line() => line?.is_some(),
            };
            if !more {
                return Ok(());
            }
            continue;
        };
        show(context, approval)?;
        let id = approval.id;
        // Until it is answered here, or somebody else has.
        while waiting.front().is_some_and(|front| front.id == id) {
            tokio::select! {
                line = typed.next_line() => {
                    let Some(line) = line? else { return Ok(()) };
                    let Some(answer) = read(line.trim(), &waiting[0]) else {
                        prompt(context, "1, 2 or 3? ")?;
                        continue;
                    };
                    match nexus.approvals().decide(id, answer).await {
                        Ok(()) => {}
                        Err(error) if error.reason() == Some(Reason::ApprovalNotFound) => {
                            context.output.note("too late: somebody else has answered, or nobody wants to know");
                        }
                        Err(error) => return Err(error.into()),
                    }
                    waiting.pop_front();
                }
                more = take(&mut events, &mut waiting, context) => {
                    if !more? {
                        return Ok(());
                    }
                }
            }
        }
    }
}

/// Takes the next change. False when there are no more.
async fn take(
    events: &mut ApprovalEvents,
    waiting: &mut VecDeque<Approval>,
    context: &Context,
) -> Result<bool, Error> {
    match events.next().await {
        None => return Ok(false),
        Some(event) => match event? {
            ApprovalEvent::Asked(approval) => {
                // A slow reader is told all anew.
                waiting.retain(|known| known.id != approval.id);
                waiting.push_back(*approval);
            }
            ApprovalEvent::Closed { id, outcome } => {
                if waiting.front().is_some_and(|front| front.id == id) {
                    context.output.note(&format!("\n{}", safe::line(&outcome)));
                }
                waiting.retain(|known| known.id != id);
            }
            _ => {}
        },
    }
    Ok(true)
}

fn show(context: &Context, approval: &Approval) -> Result<(), Error> {
    let output = &context.output;
    let agent = output.paint(&safe::line(&approval.agent_name), style::BOLD);
    let project = approval
        .project
        .as_deref()
        .map_or(String::new(), |project| {
            format!(" (in {})", safe::line(project))
        });
    let mut text = format!("\n{agent}{project} wants to {}\n", wants(approval));
    let choices = match &approval.action {
        None => {
            if !approval.tools.is_empty() {
                text += &format!("  Tools: {}\n", safe::line(&approval.tools.join(", ")));
            }
            [
                "Allow all tools (this session)",
                "Require confirmation for each tool",
                "Deny connection",
            ]
        }
        Some(action) => {
            if !action.arguments.is_empty() {
                text += &format!("  Arguments: {}\n", safe::line(&action.arguments));
            }
            [
                "Allow once",
                "Allow always (this server, this session)",
                "Deny",
            ]
        }
    };
    for (number, choice) in choices.iter().enumerate() {
        text += &format!("  [{}] {choice}\n", number + 1);
    }
    output.data(&text)?;
    prompt(context, "> ")
}

fn prompt(context: &Context, text: &str) -> Result<(), Error> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(context.output.paint(text, style::HINT).as_bytes())?;
    Ok(stdout.flush()?)
}

/// What was typed.
fn read(typed: &str, approval: &Approval) -> Option<Answer> {
    let server = approval.action.is_none();
    match (typed, server) {
        ("1" | "allow", true) | ("2" | "always", false) => Some(Answer::Server),
        ("2" | "confirm", true) | ("1" | "once" | "y" | "yes", false) => Some(Answer::Once),
        ("3" | "deny" | "n" | "no", _) => Some(Answer::Deny),
        _ => None,
    }
}
