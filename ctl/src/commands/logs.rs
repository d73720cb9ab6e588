//! `nexusctl logs`.

use super::Context;
use crate::{
    cli::Logs,
    exit::Error,
    output::{style, time},
};
use nexus_client::LogOptions;
use serde::Serialize;

pub(crate) async fn run(context: &Context, args: Logs) -> Result<(), Error> {
    let nexus = context.connect().await?;
    let mut options = LogOptions::default();
    options.tail = args.lines;
    options.follow = args.follow;
    let mut lines = nexus.servers().logs(&args.server, options).await?;
    while let Some(line) = lines.next().await {
        let line = line?;
        let at = line.at.map(time::rfc3339);
        if context.output.json {
            context.output.value_line(&LineJson {
                at,
                instance: line.instance,
                generation: line.generation,
                missed: line.missed,
                line: &line.line,
            })?;
            continue;
        }
        if line.missed > 0 {
            let missed = format!("{} lines were lost here", line.missed);
            context.output.warn(&missed);
        }
        let text = context.output.safe(&line.line);
        match at.filter(|_| args.timestamps) {
            Some(at) => {
                let at = context.output.paint(&at, style::DIM);
                context.output.line(&format!("{at} {text}"))?;
            }
            None => context.output.line(&text)?,
        }
    }
    Ok(())
}

#[derive(Serialize)]
struct LineJson<'a> {
    at: Option<String>,
    instance: u32,
    generation: u64,
    missed: u64,
    line: &'a str,
}
