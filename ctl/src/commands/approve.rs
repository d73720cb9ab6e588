//! `nexusctl approve`.

use super::{Context, servers::verbatim};
use crate::{
    cli::approve::Approve as Args,
    exit::Error,
    output::{
        Output,
        diff::{self, Line},
        safe, style,
        table::{Cell, Table},
    },
};
use nexus_client::{Nexus, RawJson, ToolChange, text};
use nexus_proto::name::TOLD_OF_TOOLS;
use serde::Serialize;
use serde_json::{Map, Value, json, value::RawValue};
use std::collections::HashMap;

pub(crate) async fn run(context: &Context, args: Args) -> Result<(), Error> {
    let nexus = context.connect().await?;
    let changes = nexus.policy().changes().await?;
    let Some(what) = &args.what else {
        return match args.all {
            true => approve(context, &nexus, &args, &changes.iter().collect::<Vec<_>>()).await,
            false => list(context, &changes),
        };
    };
    let slugs = slugs(&nexus).await?;
    let meant: Vec<&ToolChange> = changes
        .iter()
        .filter(|c| is_meant(what, c, &slugs))
        .collect();
    if meant.is_empty() {
        check_name(&nexus, what, &slugs).await?;
    }
    approve(context, &nexus, &args, &meant).await
}

/// How servers are called in names of tools.
async fn slugs(nexus: &Nexus) -> Result<HashMap<String, String>, Error> {
    let servers = nexus.servers().list().await?;
    Ok(servers
        .into_iter()
        .map(|server| (server.name, server.slug))
        .collect())
}

fn is_meant(what: &str, change: &ToolChange, slugs: &HashMap<String, String>) -> bool {
    let servers = [Some(&change.server), slugs.get(&change.server)];
    servers.into_iter().flatten().any(|server| {
        let rest = what
            .strip_prefix("mcp:")
            .unwrap_or(what)
            .strip_prefix(server.as_str());
        rest.is_some_and(|rest| {
            let tool = rest.strip_prefix("__").or_else(|| rest.strip_prefix('.'));
            rest.is_empty() || tool == Some(change.tool.as_str())
        })
    })
}

/// An error for a name that nothing has; what does not wait is no error.
async fn check_name(
    nexus: &Nexus,
    what: &str,
    slugs: &HashMap<String, String>,
) -> Result<(), Error> {
    let is_server = slugs
        .iter()
        .any(|(name, slug)| name == what || slug == what);
    if !is_server {
        nexus.tools().get(what).await?;
    }
    Ok(())
}

fn list(context: &Context, changes: &[ToolChange]) -> Result<(), Error> {
    if context.output.json {
        let changes: Vec<_> = changes.iter().map(ChangeJson::new).collect();
        return context.output.value(&changes);
    }
    if changes.is_empty() {
        context.output.note("nothing waits for approval");
        return Ok(());
    }
    let mut table = Table::new(&["TOOL", "STATE", "WHY"]);
    for change in changes {
        let state = match change.held {
            true => Cell::styled("held back", style::BAD),
            false => Cell::styled("in use", style::CARE),
        };
        table.row([
            safe::line(&change.dotted()).into(),
            state,
            why(change).into(),
        ]);
    }
    context.output.table(&table)?;
    context
        .output
        .note("`nexusctl approve SERVER.TOOL` shows what has changed, and asks");
    Ok(())
}

fn why(change: &ToolChange) -> String {
    if change.other_command {
        return "its server is run by another command".to_owned();
    }
    let Some(approved) = &change.approved else {
        return "what was approved of is lost".to_owned();
    };
    let (before, now) = (members(approved), members(&change.now));
    let other: Vec<_> = TOLD_OF_TOOLS
        .into_iter()
        .filter(|field| before.get(*field) != now.get(*field))
        .collect();
    format!("other than before: {}", other.join(", "))
}

async fn approve(
    context: &Context,
    nexus: &Nexus,
    args: &Args,
    changes: &[&ToolChange],
) -> Result<(), Error> {
    let output = &context.output;
    if changes.is_empty() {
        if output.json {
            return output.value(&json!({ "approved": [] }));
        }
        output.note("nothing waits for approval");
        return Ok(());
    }
    for change in changes {
        show(output, change);
    }
    if !args.yes {
        if !output.can_ask() {
            return Err(Error::Usage {
                message: "there is nobody to ask".to_owned(),
                hint: Some("look at what is shown above, and then add --yes".to_owned()),
            });
        }
        let question = match changes {
            [_] => "Approve of it?".to_owned(),
            all => format!("Approve of all {}?", all.len()),
        };
        if !output.confirm(&question)? {
            output.note("nothing is approved of");
            return Ok(());
        }
    }
    let mut approved = Vec::new();
    for change in changes {
        // Exactly what was shown: one that is another by now is an error.
        nexus.policy().approve(change).await?;
        approved.push(change.dotted());
    }
    if output.json {
        return output.value(&json!({ "approved": approved }));
    }
    for name in approved {
        output.line(&format!("approved: {}", safe::line(&name)))?;
    }
    Ok(())
}

/// Shows what has changed, on stderr: it is what somebody is asked about.
fn show(output: &Output, change: &ToolChange) {
    let name = text::reveal(&safe::line(&change.dotted())).into_owned();
    output.stderr_line(&output.paint_stderr(&name, style::BOLD));
    if change.other_command {
        output.stderr_line("  its server is run by another command");
    }
    let before = change.approved.as_ref().map(readable).unwrap_or_default();
    let now = readable(&change.now);
    if before == now {
        output.stderr_line("  it says of itself what it said before");
    }
    for line in diff::lines(&before, &now) {
        let (mark, text, look) = match line {
            Line::Same(text) => (" ", text, style::DIM),
            Line::Gone(text) => ("-", text, style::BAD),
            Line::Come(text) => ("+", text, style::GOOD),
            Line::Skipped => (" ", "…", style::DIM),
        };
        let line = format!("{mark} {}", text::reveal(text));
        output.stderr_line(&output.paint_stderr(&line, look));
    }
    output.stderr_line("");
}

fn members(definition: &RawJson) -> Map<String, Value> {
    definition.parse().unwrap_or_default()
}

/// A definition as people read it: prose in lines of its own, the rest as JSON that is set out.
fn readable(definition: &RawJson) -> String {
    let members = members(definition);
    let mut lines = Vec::new();
    for field in TOLD_OF_TOOLS {
        match members.get(field) {
            None => {}
            Some(Value::String(text)) => {
                lines.push(format!("{field}:"));
                lines.extend(text.lines().map(|line| format!("  {line}")));
            }
            Some(value) => {
                lines.push(format!("{field}:"));
                let value = serde_json::to_string_pretty(value).unwrap_or_default();
                lines.extend(value.lines().map(|line| format!("  {line}")));
            }
        }
    }
    lines.join("\n")
}

#[derive(Serialize)]
struct ChangeJson<'a> {
    server: &'a str,
    tool: &'a str,
    other_command: bool,
    held: bool,
    approved: Option<&'a RawValue>,
    now: Option<&'a RawValue>,
}

impl<'a> ChangeJson<'a> {
    fn new(change: &'a ToolChange) -> Self {
        Self {
            server: &change.server,
            tool: &change.tool,
            other_command: change.other_command,
            held: change.held,
            approved: change.approved.as_ref().and_then(verbatim),
            now: verbatim(&change.now),
        }
    }
}
