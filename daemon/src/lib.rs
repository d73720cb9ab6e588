//! The daemon of Nexus. `ARCHITECTURE.md` at the root of the project has the map.

pub mod agent;
pub mod alive;
pub mod api;
pub mod args;
pub mod catalog;
pub mod config;
pub mod face;
pub mod mcp;
pub mod nearest;
pub mod platform;
pub mod pool;
pub mod process;
pub mod router;
pub mod run;
pub mod shutdown;
pub mod supervisor;
pub mod telemetry;
pub mod transport;

/// The hidden command that makes the daemon's own binary the demo server.
pub const DEMO_SERVER: &str = "demo-server";

/// The hidden command that makes it the guardian of another.
pub const GUARDIAN: &str = "guardian";

use args::{Args, Internal};
use config::Config;
use run::RunError;
use std::{
    error::Error,
    io::{self, Write as _},
    process::ExitCode,
    time::Duration,
};
use telemetry::LogFormat;

/// The hidden command that makes it start a daemon, and start it again.
#[cfg(windows)]
pub const KEEPER: &str = "keeper";

/// The hidden command with which Windows starts it as a service.
#[cfg(windows)]
pub const SERVICE: &str = "service";

/// The exit code for anything that went wrong.
const EX_FAILURE: u8 = 1;

/// The exit code for a configuration that cannot be used: starting again does not help.
const EX_CONFIG: u8 = 78;

/// The exit code for a command line that makes no sense, as clap has it.
const EX_USAGE: u8 = 2;

/// Does what the command line says.
pub fn start(args: &Args) -> ExitCode {
    let done = match &args.internal {
        None => return serve(args).into(),
        Some(Internal::DemoServer { options }) => nexus_test_server::run_stdio(options.clone()),
        #[cfg(unix)]
        Some(Internal::Guardian { cookie }) => process::guardian::run(cookie),
        #[cfg(windows)]
        Some(Internal::Keeper) => process::keeper::run(),
        #[cfg(windows)]
        Some(Internal::Service { client }) => {
            let ours = args.clone();
            platform::service::run(client.clone(), move || serve(&ours))
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(args, &error, None).into(),
    }
}

/// Serves until the end, and says how that went.
fn serve(args: &Args) -> u8 {
    let config = match Config::load(args.config.as_deref()) {
        Ok(config) => config,
        Err(error) => {
            fail(args, &error, error.hint());
            return EX_CONFIG;
        }
    };
    if args.check {
        return check(args, &config);
    }
    let file = args.log_file.as_deref();
    if let Err(error) = telemetry::start(args.log_format, &args.log, file) {
        fail(args, &error, None);
        return EX_USAGE;
    }
    if config.demo && file.is_none() && args.log_format.resolve(file) == LogFormat::Human {
        greet(args);
    }
    let runtime = match runtime(args.threads) {
        Ok(runtime) => runtime,
        Err(error) => return fail(args, &error, None),
    };
    let ran = runtime.block_on(run::run(args, config));
    // What still waits for a disk is not waited for.
    runtime.shutdown_timeout(Duration::from_secs(1));
    match ran {
        Ok(()) => 0,
        Err(error @ RunError::AlreadyRunning { .. }) => {
            say(args, &format!("nexusd: {error}\n"));
            // Whoever wanted a daemon has one; a manager that wants to look after it has not.
            if platform::manager::is_there() {
                EX_TEMPFAIL
            } else {
                0
            }
        }
        Err(error) => fail(args, &error, error.hint()),
    }
}

/// "Try again later", as in sysexits.h.
const EX_TEMPFAIL: u8 = 75;

/// One thread: waking another costs more than all the work of a call (ARCHITECTURE.md has the
/// figures).
fn runtime(threads: u16) -> io::Result<tokio::runtime::Runtime> {
    let mut builder = match threads {
        1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    if threads > 1 {
        builder.worker_threads(threads.into());
    }
    builder.enable_all().build()
}

/// What a person who starts the daemon by hand, and has configured nothing, wants to know.
fn greet(args: &Args) {
    let file = config::user_file().map_or_else(
        || "a config file".to_owned(),
        |file| file.display().to_string(),
    );
    let text = format!(
        "No servers are configured: serving the built-in server `demo`.\n\n\
         Try, in another terminal:\n  \
           nexusctl tools\n  \
           nexusctl call demo.add --arg a=2 --arg b=3\n\n\
         Your own servers go into {file}:\n  \
           {{ \"mcpServers\": {{ \"time\": {{ \"command\": \"uvx\", \"args\": [\"mcp-server-time\"] }} }} }}\n\n"
    );
    say(args, &text);
}

/// Says what is configured. What cannot be used was told before.
fn check(args: &Args, config: &Config) -> u8 {
    for warning in &config.warnings {
        say(args, &format!("warning: {warning}\n"));
    }
    let n = config.servers.len();
    let plural = if n == 1 { "" } else { "s" };
    match config.files.first() {
        Some(file) => {
            let text = format!("{}: {n} server{plural}, good\n", file.display());
            say(args, &text);
        }
        None => say(
            args,
            "no configuration: the built-in demo would be served\n",
        ),
    }
    0
}

fn fail(args: &Args, error: &dyn Error, hint: Option<&str>) -> u8 {
    let mut text = format!("error: {error}\n");
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!("  caused by: {error}\n");
        cause = error.source();
    }
    if let Some(hint) = hint {
        text += &format!("\nhint: {hint}\n");
    }
    say(args, &text);
    EX_FAILURE
}

/// For whoever has started us, and where nobody sees that, for whoever reads the log.
fn say(args: &Args, text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
    if let Some(file) = &args.log_file {
        let _ = telemetry::file::append(file, text.as_bytes());
    }
}
