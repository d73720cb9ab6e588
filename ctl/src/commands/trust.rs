//! `nexusctl trust`.

use super::Context;
use crate::{
    cli::Trust as Args,
    exit::Error,
    output::{safe, style, table::Cell, table::Table},
};
use nexus_config::{
    Layer, Source, belief,
    layers::Places,
    read::{Dialect, read},
    show,
    trust::{Trust, Verdict, hash},
};
use serde_json::json;
use std::{
    io,
    path::{Path, PathBuf},
};

pub(crate) async fn run(context: &Context, args: &Args) -> Result<(), Error> {
    let places = Places::ours();
    let store = places
        .trust_file()
        .ok_or_else(|| Error::usage("there is no place to keep it: HOME is not set"))?;
    let trust = Trust::read(&store).map_err(|why| Error::Io {
        attempt: "cannot tell what is trusted".to_owned(),
        source: io::Error::other(why),
    })?;
    if args.list {
        return list(context, &trust);
    }
    let files = files(&places, args.path.as_deref(), args.remove.then_some(&trust))?;
    let changed = if args.remove {
        remove(context, trust, &files, &store)?
    } else {
        add(context, args, trust, &files, &store)?
    };
    if changed {
        tell_daemon(context).await;
    }
    Ok(())
}

/// The files that are meant, by their full names.
fn files(
    places: &Places,
    path: Option<&Path>,
    known: Option<&Trust>,
) -> Result<Vec<PathBuf>, Error> {
    let path = path.unwrap_or(Path::new("."));
    let unusable = |source| Error::Io {
        attempt: format!("cannot look at {}", path.display()),
        source,
    };
    // What has gone can still be trusted no longer.
    if let Some(trust) = known {
        let absolute = std::path::absolute(path).map_err(unusable)?;
        let real = absolute.canonicalize().unwrap_or(absolute);
        let found: Vec<PathBuf> = trust
            .files
            .keys()
            .filter(|file| **file == real || file.starts_with(&real))
            .cloned()
            .collect();
        return if found.is_empty() {
            Err(Error::usage(format!(
                "nothing at {} is trusted",
                real.display()
            )))
        } else {
            Ok(found)
        };
    }
    let real = path.canonicalize().map_err(unusable)?;
    if real.is_file() {
        return Ok(vec![real]);
    }
    // The nearest folder that has any.
    for folder in real.ancestors() {
        let own = places.project_files(folder);
        let here: Vec<PathBuf> = own
            .into_iter()
            .filter(|file| {
                nexus_config::layers::workspace_of(file) == Some(folder) && file.is_file()
            })
            .collect();
        if !here.is_empty() {
            return Ok(here);
        }
    }
    Err(Error::Usage {
        message: format!("there is no project file in {}", real.display()),
        hint: Some("a project has its servers in .mcp.json or .nexus/mcp.json".to_owned()),
    })
}

fn add(
    context: &Context,
    args: &Args,
    mut trust: Trust,
    files: &[PathBuf],
    store: &Path,
) -> Result<bool, Error> {
    let output = &context.output;
    let mut fresh = Vec::new();
    for file in files {
        let bytes = match belief::read(file, Layer::Project) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => continue,
            Err(diagnosis) => {
                output.diagnosis(&diagnosis);
                return Err(Error::Told);
            }
        };
        if trust.verdict(file, &bytes) == Verdict::Trusted {
            output.note(&format!("{} is trusted already", file.display()));
            continue;
        }
        output.note(&format!("{}:", file.display()));
        preview(context, file, &bytes)?;
        fresh.push((file.clone(), hash(&bytes)));
    }
    if fresh.is_empty() {
        return Ok(false);
    }
    if !args.yes && !output.confirm("Let these run?")? {
        output.note("nothing is done");
        return Ok(false);
    }
    for (file, hash) in &fresh {
        trust.files.insert(file.clone(), hash.clone());
    }
    write(&trust, store)?;
    say(
        context,
        "trusted",
        fresh.into_iter().map(|(file, _)| file).collect(),
    )?;
    Ok(true)
}

/// What would be run.
fn preview(context: &Context, file: &Path, bytes: &[u8]) -> Result<(), Error> {
    let document = match Source::of_bytes(file, Layer::Project, bytes) {
        Ok(source) => read(&source, Dialect::default()),
        Err(diagnosis) => {
            context.output.diagnosis(&diagnosis);
            return Err(Error::Told);
        }
    };
    document
        .diagnoses
        .iter()
        .for_each(|diagnosis| context.output.diagnosis(diagnosis));
    if document
        .diagnoses
        .iter()
        .any(|diagnosis| diagnosis.is_error())
    {
        return Err(Error::Told);
    }
    for server in &document.servers {
        context.output.note(&format!(
            "  {}: {}",
            safe::line(&server.name),
            safe::line(&show::summary(server))
        ));
        // What else decides what is run: variables can load code, and what tells a secret is a program.
        let shown = show::server(server, false);
        for key in ["cwd", "env", "env_passthrough", "env_file", "headers"] {
            if let Some(value) = shown.get(key) {
                let line = safe::line(&value.to_string());
                context.output.note(&format!("      {key}: {line}"));
            }
        }
    }
    Ok(())
}

fn remove(
    context: &Context,
    mut trust: Trust,
    files: &[PathBuf],
    store: &Path,
) -> Result<bool, Error> {
    for file in files {
        trust.files.remove(file);
    }
    write(&trust, store)?;
    say(context, "no longer trusted", files.to_vec())?;
    Ok(true)
}

fn say(context: &Context, what: &str, files: Vec<PathBuf>) -> Result<(), Error> {
    if context.output.json {
        return context.output.value(&json!({ what: files }));
    }
    for file in files {
        context
            .output
            .line(&format!("{what}: {}", file.display()))?;
    }
    Ok(())
}

fn write(trust: &Trust, store: &Path) -> Result<(), Error> {
    trust.write(store).map_err(|source| Error::Io {
        attempt: format!("cannot write {}", store.display()),
        source,
    })
}

fn list(context: &Context, trust: &Trust) -> Result<(), Error> {
    let state = |file: &Path| match belief::read(file, Layer::Project) {
        Ok(Some(bytes)) => match trust.verdict(file, &bytes) {
            Verdict::Trusted => "trusted",
            _ => "changed",
        },
        Ok(None) => "gone",
        Err(_) => "unsafe",
    };
    let rows: Vec<(&PathBuf, &str)> = trust.files.keys().map(|file| (file, state(file))).collect();
    if context.output.json {
        let row = |(file, state): &(&PathBuf, &str)| json!({ "path": file, "state": state });
        return context
            .output
            .value(&rows.iter().map(row).collect::<Vec<_>>());
    }
    let mut table = Table::new(&["STATE", "PATH"]);
    for (file, state) in rows {
        let look = if state == "trusted" {
            style::GOOD
        } else {
            style::CARE
        };
        table.row([Cell::styled(state, look), file.display().to_string().into()]);
    }
    context.output.table(&table)
}

/// A daemon that runs sees it by itself in a moment; one that does not watch is told.
async fn tell_daemon(context: &Context) {
    if let Ok(nexus) = context.connect().await
        && let Err(error) = nexus.daemon().reload().await
    {
        context.output.warn(&format!(
            "the daemon could not read its configuration again: {error}"
        ));
    }
}
