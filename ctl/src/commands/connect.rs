//! `nexusctl connect`.

use super::{Context, config};
use crate::{
    agents::{
        self, Agent,
        edit::{self, Change},
        record::{Records, Undone},
    },
    cli::Connect as Args,
    exit::Error,
    output::{safe, style, table::Cell, table::Table},
};
use nexus_config::{Server, belief::read_within, source::MAX_FOREIGN, write::is_same};
use serde_json::json;
use std::{env, io, path::Path};

/// What Nexus is called in the files of agents.
const NAME: &str = "nexus";

pub(crate) fn run(context: &Context, args: &Args) -> Result<(), Error> {
    let Some(name) = &args.agent else {
        return list(context);
    };
    let agent = find(name)?;
    if args.undo {
        return undo(context, agent, args.force);
    }
    let path = match &args.file {
        Some(file) => file.clone(),
        None => agent
            .file()
            .ok_or_else(|| Error::usage("HOME is not set"))?,
    };
    connect(context, args, agent, &path)
}

/// The agent of that name.
pub(super) fn find(name: &str) -> Result<&'static Agent, Error> {
    Agent::find(name).ok_or_else(|| {
        let ids: Vec<&str> = agents::ALL.iter().map(|agent| agent.id).collect();
        let near = nexus_config::nearest::nearest(name, ids.iter().copied());
        Error::Usage {
            message: format!("there is no agent {name:?}"),
            hint: Some(match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known are: {}", ids.join(", ")),
            }),
        }
    })
}

fn connect(context: &Context, args: &Args, agent: &Agent, path: &Path) -> Result<(), Error> {
    let output = &context.output;
    let failed = |attempt: &str| {
        let attempt = format!("cannot {attempt} {}", path.display());
        move |source: io::Error| Error::Io { attempt, source }
    };
    let before = match read_within(path, MAX_FOREIGN) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(failed("read")(error)),
    };
    let text = match &before {
        Some(bytes) => String::from_utf8(bytes.clone())
            .map_err(|_| failed("change")(io::Error::other("it is not UTF-8")))?,
        None => String::new(),
    };
    let found = agent.read(path).map_err(failed("read"))?;
    let servers = found
        .map(|found| found.document.servers)
        .unwrap_or_default();
    // What only a project has does not replace what the agent has everywhere.
    let (_, loaded) = config::load(None);
    let is_ours = |server: &&Server| {
        let mut ours = loaded.seen_from(None).filter(|other| other.enabled);
        ours.any(|other| is_same(server, other)) && !agents::is_nexus(server)
    };
    let take: Vec<String> = if args.keep {
        vec![]
    } else {
        servers
            .iter()
            .filter(is_ours)
            .map(|server| server.name.clone())
            .collect()
    };
    let left: Vec<&Server> = servers
        .iter()
        .filter(|server| {
            !take.contains(&server.name) && !agents::is_nexus(server) && server.name != NAME
        })
        .collect();
    let program = env::current_exe().map_err(failed("tell where nexusctl is, for"))?;
    let program = program.display().to_string();
    let put = [(NAME.to_owned(), agent.shape.entry(NAME, &program, &["mcp"]))];
    let change = Change {
        root: agent.root,
        put: &put,
        take: &take,
    };
    let after = edit::apply(&text, agents::format(path), &change)
        .map_err(|why| failed("change")(io::Error::other(why)))?;
    if after == text {
        return say(
            context,
            &format!("{} uses Nexus already", agent.name),
            json!({ "agent": agent.id, "changed": false }),
        );
    }
    output.note(&format!("{}:", path.display()));
    output.note(&format!("  + {NAME}: {program} mcp"));
    for name in &take {
        output.note(&format!("  - {}: Nexus has it", safe::line(name)));
    }
    for server in &left {
        output.note(&format!(
            "    {}: stays; `nexusctl import {}` first would bring it here",
            safe::line(&server.name),
            agent.id
        ));
    }
    if args.dry_run {
        return say(
            context,
            "nothing is done",
            json!({ "agent": agent.id, "changed": false, "would_remove": take }),
        );
    }
    if !args.yes && !output.confirm("Write this?")? {
        return say(
            context,
            "nothing is done",
            json!({ "agent": agent.id, "changed": false }),
        );
    }
    let backup = Records::read().and_then(|mut records| {
        records.replace(agent.id, path, before.as_deref(), after.as_bytes())
    });
    let backup = backup.map_err(failed("write"))?;
    if let Some(backup) = &backup {
        output.note(&format!("what was there before is in {}", backup.display()));
    }
    output.note(&format!(
        "`nexusctl connect {} --undo` puts it back",
        agent.id
    ));
    say(
        context,
        &format!("{} uses Nexus from its next start on", agent.name),
        json!({ "agent": agent.id, "changed": true, "file": path, "backup": backup, "removed": take }),
    )
}

fn undo(context: &Context, agent: &Agent, force: bool) -> Result<(), Error> {
    let undone = Records::read().and_then(|mut records| records.undo(agent.id, force));
    let undone = undone.map_err(|source| Error::Io {
        attempt: format!("cannot put back what {} had", agent.name),
        source,
    })?;
    match undone {
        Undone::Done(record) => say(
            context,
            &format!("{} is as it was", record.path.display()),
            json!({ "agent": agent.id, "changed": true, "file": record.path }),
        ),
        Undone::Nothing => Err(Error::usage(format!(
            "{} was not connected by nexusctl",
            agent.name
        ))),
        Undone::Changed(record) => {
            let hint = match &record.backup {
                Some(backup) => format!(
                    "remove {NAME:?} from it by hand, or put all of {} back with --force",
                    backup.display()
                ),
                None => "remove it by hand, or with --force".to_owned(),
            };
            Err(Error::Usage {
                message: format!("{} has changed since", record.path.display()),
                hint: Some(hint),
            })
        }
    }
}

fn say(context: &Context, text: &str, json: serde_json::Value) -> Result<(), Error> {
    if context.output.json {
        return context.output.value(&json);
    }
    context.output.line(text)
}

fn list(context: &Context) -> Result<(), Error> {
    let mut table = Table::new(&["AGENT", "STATE", "SERVERS", "FILE"]);
    let mut rows = Vec::new();
    for agent in agents::ALL.iter().filter(|agent| agent.is_here()) {
        let Some(path) = agent.file() else { continue };
        let servers = agent
            .read(&path)
            .ok()
            .flatten()
            .map(|found| found.document.servers)
            .unwrap_or_default();
        let is_connected = servers.iter().any(agents::is_nexus);
        let count = servers
            .iter()
            .filter(|server| !agents::is_nexus(server))
            .count();
        rows.push(
            json!({ "agent": agent.id, "connected": is_connected, "servers": count, "file": path }),
        );
        let state = if is_connected {
            Cell::styled("connected", style::GOOD)
        } else {
            Cell::styled("not connected", style::DIM)
        };
        table.row([
            agent.id.into(),
            state,
            count.to_string().into(),
            path.display().to_string().into(),
        ]);
    }
    if context.output.json {
        return context.output.value(&rows);
    }
    if rows.is_empty() {
        return context.output.line("no agents are found here");
    }
    context.output.table(&table)
}
