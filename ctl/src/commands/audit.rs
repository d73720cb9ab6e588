//! `nexusctl audit`: reads what the daemon has written down. No daemon is needed for that.

mod entry;
mod files;

use super::Context;
use crate::{cli::Audit, exit::Error, output::table::Table};
use entry::{Entry, Wanted};
use files::Files;
use nexus_config::layers::Places;
use std::{
    collections::VecDeque,
    path::PathBuf,
    time::{Duration, SystemTime},
};

/// How many calls a person is shown who has not said how many.
const LAST: usize = 100;

/// How often is looked for more.
const PAUSE: Duration = Duration::from_millis(200);

pub(crate) async fn run(context: &Context, args: Audit) -> Result<(), Error> {
    let path = file(args.state)?;
    let since = args.since.as_deref();
    let since = since.map(|text| entry::since(text, SystemTime::now()));
    let wanted = Wanted {
        agent: args.agent,
        server: args.server,
        since: since.transpose().map_err(Error::usage)?,
    };
    let last = match (args.lines, context.output.json || wanted.since.is_some()) {
        (Some(count), _) => count,
        (None, true) => usize::MAX,
        (None, false) => LAST,
    };
    let mut files = Files::new(path.clone());
    let mut found: VecDeque<(Entry, String)> = VecDeque::new();
    let mut older = false;
    read(&mut files, &wanted, &path, |entry, line| {
        found.push_back((entry, line.to_owned()));
        if found.len() > last {
            found.pop_front();
            older = true;
        }
    })?;
    if found.is_empty() && !args.follow {
        let place = path.display();
        context
            .output
            .note(&format!("no such calls are in {place}"));
    }
    if older && args.lines.is_none() {
        let shown = format!("the last {LAST} calls; more with -n or --since");
        context.output.note(&shown);
    }
    if context.output.json || args.follow {
        for (entry, line) in &found {
            show(context, entry, line)?;
        }
    } else if !found.is_empty() {
        table(context, &found)?;
    }
    if !args.follow {
        return Ok(());
    }
    loop {
        tokio::time::sleep(PAUSE).await;
        let mut shown = Ok(());
        read(&mut files, &wanted, &path, |entry, line| {
            if shown.is_ok() {
                shown = show(context, &entry, line);
            }
        })?;
        shown?;
    }
}

/// Where the daemon writes.
fn file(state: Option<PathBuf>) -> Result<PathBuf, Error> {
    let state = state.or_else(|| Places::ours().state);
    let state = state.ok_or_else(|| Error::usage("there is no folder for state: use --state"))?;
    Ok(state.join("audit/audit.jsonl"))
}

fn read(
    files: &mut Files,
    wanted: &Wanted,
    path: &std::path::Path,
    mut tell: impl FnMut(Entry, &str),
) -> Result<(), Error> {
    let read = files.read(|line| {
        // What is no line of ours is nobody's.
        if let Ok(entry) = serde_json::from_str::<Entry>(line)
            && wanted.has(&entry)
        {
            tell(entry, line);
        }
    });
    read.map_err(|source| Error::Io {
        attempt: format!("cannot read {}", path.display()),
        source,
    })
}

fn table(context: &Context, found: &VecDeque<(Entry, String)>) -> Result<(), Error> {
    let mut table = Table::new(&["TIME (UTC)", "AGENT", "CALL", "DECISION", "OUTCOME", ">MS"]);
    for (entry, _) in found {
        match entry.lines_lost {
            Some(count) => context.output.warn(&missing(count)),
            None => table.row(entry.row()),
        }
    }
    context.output.table(&table)
}

/// One line by itself: nobody knows yet how wide the next will be.
fn show(context: &Context, entry: &Entry, line: &str) -> Result<(), Error> {
    if context.output.json {
        return context.output.line(line);
    }
    if let Some(count) = entry.lines_lost {
        context.output.warn(&missing(count));
        return Ok(());
    }
    let widths = [19, 16, 32, 12, 12, 0];
    let cells = entry.cells().into_iter().zip(widths);
    let cells = cells.map(|((text, style), width)| {
        let padded = format!("{text:width$}");
        context.output.paint(&padded, style)
    });
    let cells: Vec<_> = cells.collect();
    context.output.line(&cells.join("  "))
}

fn missing(count: u64) -> String {
    format!("{count} calls could not be written down before this")
}
