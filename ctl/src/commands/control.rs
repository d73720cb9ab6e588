//! `nexusctl start`, `stop`, `restart` and `refresh`.

use super::{Context, servers::ServerJson};
use crate::{
    cli::{Control, Refresh},
    exit::Error,
    output::{safe, style},
};
use futures_util::future::join_all;
use nexus_client::{CommandOutcome, Error as ClientError, Server, Wait};
use serde::Serialize;
use std::time::SystemTime;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Verb {
    Start,
    Stop,
    Restart,
}

/// What became of one server.
struct Done {
    server: Server,
    already: bool,
}

pub(crate) async fn run(context: &Context, verb: Verb, args: Control) -> Result<(), Error> {
    let nexus = &context.connect().await?;
    let wait = if args.no_wait { Wait::No } else { Wait::Done };
    let command = |name: String| async move {
        let servers = nexus.servers();
        let told = match verb {
            Verb::Start => servers.start(&name, wait).await,
            Verb::Stop => servers.stop(&name, wait).await,
            Verb::Restart => servers.restart(&name, wait).await,
        };
        told.map(|told| Done {
            already: told.outcome == CommandOutcome::AlreadyTrue,
            server: told.server,
        })
    };
    report(
        context,
        join_all(args.servers.into_iter().map(command)).await,
    )
}

pub(crate) async fn refresh(context: &Context, args: Refresh) -> Result<(), Error> {
    let nexus = &context.connect().await?;
    let command = |name: String| async move {
        let server = nexus.servers().refresh(&name).await;
        server.map(|server| Done {
            server,
            already: false,
        })
    };
    report(
        context,
        join_all(args.servers.into_iter().map(command)).await,
    )
}

/// Says what became of each; one that failed makes the command fail, after all have been said.
fn report(context: &Context, results: Vec<Result<Done, ClientError>>) -> Result<(), Error> {
    let output = &context.output;
    let now = SystemTime::now();
    let mut failed = Vec::new();
    let mut done = Vec::new();
    for result in results {
        match result {
            Ok(one) => done.push(one),
            Err(error) => failed.push(Error::from(error)),
        }
    }
    if output.json {
        let json = |done| DoneJson::new(done, now);
        output.value(&done.iter().map(json).collect::<Vec<_>>())?;
    } else {
        for Done { server, already } in &done {
            let state = style::of_state(server.state);
            let state = output.paint(server.state.as_str(), state);
            let already = if *already { " already" } else { "" };
            let name = safe::line(&server.name);
            output.data(&format!("{name}: {state}{already}"))?;
        }
    }
    let Some(last) = failed.pop() else {
        return Ok(());
    };
    for error in &failed {
        error.report(output);
    }
    Err(last)
}

#[derive(Serialize)]
struct DoneJson<'a> {
    already: bool,
    server: ServerJson<'a>,
}

impl<'a> DoneJson<'a> {
    fn new(done: &'a Done, now: SystemTime) -> Self {
        Self {
            already: done.already,
            server: ServerJson::new(&done.server, now),
        }
    }
}
