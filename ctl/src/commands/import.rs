//! `nexusctl import`.

use super::{Context, config, connect};
use crate::{
    agents::{
        self, Agent,
        edit::{self, Change},
        record,
    },
    cli::Import as Args,
    exit::Error,
    output::{safe, table::Table, time},
};
use nexus_config::{
    Diagnosis, Layer, Server, Source,
    belief::read_within,
    read::{Dialect, read},
    show,
    source::MAX_FOREIGN,
    write,
};
use serde_json::{Value, json};
use std::{
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

/// What is to become of a server.
enum Fate {
    Added,
    Replaced,
    Known,
    Clash,
}

pub(crate) async fn run(context: &Context, args: &Args) -> Result<(), Error> {
    if args.from.is_empty() {
        return list(context);
    }
    let mut servers: Vec<Server> = Vec::new();
    for from in &args.from {
        for server in gather(context, from)? {
            if !agents::is_nexus(&server) && !servers.iter().any(|other| other.name == server.name)
            {
                servers.push(server);
            }
        }
    }
    import(context, args, &servers)?;
    if !args.dry_run {
        // A daemon that runs sees it by itself; one that does not watch is told.
        if let Ok(nexus) = context.connect().await {
            let _ = nexus.daemon().reload().await;
        }
    }
    Ok(())
}

/// The servers of an agent or a file.
fn gather(context: &Context, from: &str) -> Result<Vec<Server>, Error> {
    let path = Path::new(from);
    let is_path = path.is_file() || from.contains(['/', '\\', '.']);
    let unreadable = |path: &Path| {
        let attempt = format!("cannot read {}", path.display());
        move |source| Error::Io { attempt, source }
    };
    let document = if is_path && Agent::find(from).is_none() {
        let bytes = read_within(path, MAX_FOREIGN).map_err(unreadable(path))?;
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        match Source::of_foreign(&path, Layer::Asked, &bytes) {
            Ok(source) => read(
                &source,
                Dialect {
                    lenient: true,
                    ..Dialect::default()
                },
            ),
            Err(diagnosis) => {
                context.output.diagnosis(&diagnosis);
                return Err(Error::Told);
            }
        }
    } else {
        let agent = connect::find(from)?;
        let file = agent
            .file()
            .ok_or_else(|| Error::usage("HOME is not set"))?;
        let found = agent.read(&file).map_err(unreadable(&file))?;
        let Some(found) = found else {
            return Err(Error::usage(format!(
                "{} has no file {}",
                agent.name,
                file.display()
            )));
        };
        context
            .output
            .note(&format!("{}: {}", agent.name, found.source.path.display()));
        found.document
    };
    document
        .diagnoses
        .iter()
        .for_each(|diagnosis| context.output.diagnosis(diagnosis));
    if document.servers.is_empty() && document.diagnoses.iter().any(Diagnosis::is_error) {
        return Err(Error::Told);
    }
    Ok(document.servers)
}

fn import(context: &Context, args: &Args, servers: &[Server]) -> Result<(), Error> {
    let output = &context.output;
    let (places, loaded) = config::load(None);
    let target = places
        .user_file()
        .ok_or_else(|| Error::usage("HOME is not set"))?;
    let mut put: Vec<(String, Value)> = Vec::new();
    let mut told = Vec::new();
    for server in servers {
        let known = loaded
            .seen_from(None)
            .find(|other| other.name == server.name);
        let fate = match known {
            None => Fate::Added,
            Some(known) if write::is_same(known, server) => Fate::Known,
            Some(_) if args.overwrite => Fate::Replaced,
            Some(_) => Fate::Clash,
        };
        let (word, mark) = match fate {
            Fate::Added => ("added", "+"),
            Fate::Replaced => ("replaced", "~"),
            Fate::Known => ("there already", " "),
            Fate::Clash => ("another has that name: --overwrite replaces it", "!"),
        };
        output.note(&format!(
            "  {mark} {}: {} ({word})",
            safe::line(&server.name),
            safe::line(&show::summary(server))
        ));
        if matches!(fate, Fate::Added | Fate::Replaced) {
            put.push((server.name.clone(), write::entry(server)));
        }
        told.push(json!({ "server": server.name, "outcome": word }));
    }
    if put.is_empty() || args.dry_run {
        return say(context, "nothing is done", &target, None, &told);
    }
    if !args.yes && !output.confirm(&format!("Write {}?", target.display()))? {
        return say(context, "nothing is done", &target, None, &told);
    }
    let backup = store(&target, &put).map_err(|source| Error::Io {
        attempt: format!("cannot write {}", target.display()),
        source,
    })?;
    let plural = if put.len() == 1 { "" } else { "s" };
    say(
        context,
        &format!(
            "{} server{plural} written to {}",
            put.len(),
            target.display()
        ),
        &target,
        backup.as_deref(),
        &told,
    )
}

/// Puts the servers into our file, after what was in it has been put aside.
fn store(target: &Path, put: &[(String, Value)]) -> io::Result<Option<PathBuf>> {
    let before = match fs::read_to_string(target) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let change = Change {
        root: &["mcpServers"],
        put,
        take: &[],
    };
    let text = before.as_deref().unwrap_or_default();
    let after = edit::apply(text, agents::format(target), &change).map_err(io::Error::other)?;
    if let Some(folder) = target.parent() {
        record::create_private(folder)?;
    }
    let backup = match &before {
        Some(before) => {
            let stamp = time::rfc3339(SystemTime::now()).replace(':', "-");
            let backup = target.with_file_name(format!("mcp.json.{stamp}.bak"));
            nexus_config::trust::replace(&backup, before.as_bytes(), 0o600)?;
            Some(backup)
        }
        None => None,
    };
    record::write_as_it_was(target, after.as_bytes())?;
    Ok(backup)
}

fn say(
    context: &Context,
    text: &str,
    target: &Path,
    backup: Option<&Path>,
    told: &[Value],
) -> Result<(), Error> {
    if context.output.json {
        return context
            .output
            .value(&json!({ "file": target, "backup": backup, "servers": told }));
    }
    if let Some(backup) = backup {
        context
            .output
            .note(&format!("what was there before is in {}", backup.display()));
    }
    context.output.line(text)
}

fn list(context: &Context) -> Result<(), Error> {
    let mut table = Table::new(&["AGENT", "SERVERS", "FILE"]);
    let mut rows = Vec::new();
    for agent in agents::ALL {
        let Some(path) = agent.file().filter(|path| path.is_file()) else {
            continue;
        };
        let found = agent.read(&path).ok().flatten();
        let document = found.map(|found| found.document).unwrap_or_default();
        let is_broken = document.diagnoses.iter().any(Diagnosis::is_error);
        let servers = document.servers;
        let names: Vec<String> = servers
            .iter()
            .filter(|server| !agents::is_nexus(server))
            .map(|server| safe::line(&server.name))
            .collect();
        rows.push(json!({ "agent": agent.id, "servers": names, "file": path }));
        let count = match names.is_empty() {
            true if is_broken => format!("`nexusctl import {}` says what is wrong", agent.id),
            true => "none".to_owned(),
            false => names.join(", "),
        };
        table.row([
            agent.id.into(),
            count.into(),
            path.display().to_string().into(),
        ]);
    }
    if context.output.json {
        return context.output.value(&rows);
    }
    if rows.is_empty() {
        return context.output.line("no agents have servers here");
    }
    context.output.table(&table)
}
