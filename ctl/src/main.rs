//! `nexusctl`: see, call and steer the MCP servers that nexusd runs.

mod agents;
mod arguments;
mod ask;
mod cli;
mod commands;
mod exit;
mod output;

use cli::{Cli, Command};
use commands::Context;
use exit::Error;
use nexus_proto::linger;
use output::Output;
use std::{process::ExitCode, time::Duration};

fn main() -> ExitCode {
    let cli = Cli::read();
    let output = Output::new(cli.wants_json(), cli.global.quiet, cli.global.color);
    let context = Context {
        output,
        socket: cli.global.socket,
        timeout: cli.global.timeout,
    };
    match run(&context, cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(&context.output),
    }
}

fn run(context: &Context, command: Command) -> Result<(), Error> {
    // These need no daemon, and no runtime either.
    match command {
        Command::Completions { shell } => return commands::completions::run(context, shell),
        Command::Man { dir } => return commands::man::run(context, dir),
        _ => {}
    }
    let runtime = linger::runtime().map_err(|source| Error::Io {
        attempt: "cannot start".to_owned(),
        source,
    })?;
    let done = runtime.block_on(async {
        tokio::select! {
            done = within(context, commands::run(context, command)) => done,
            // Ends whatever was under way: the daemon cancels what nobody waits for.
            Ok(()) = tokio::signal::ctrl_c() => Err(Error::Interrupted),
        }
    });
    // A thread that still reads stdin must not keep the process.
    runtime.shutdown_background();
    done
}

/// Holds a command to its `--timeout`. Calls have told the daemon of it, and it knows more than we
/// do: it gets the time to say so.
async fn within(
    context: &Context,
    command: impl Future<Output = Result<(), Error>>,
) -> Result<(), Error> {
    const GRACE: Duration = Duration::from_millis(500);
    match context.timeout {
        Some(time) => tokio::time::timeout(time.saturating_add(GRACE), command)
            .await
            .unwrap_or(Err(Error::Timeout(time))),
        None => command.await,
    }
}
