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

/// The exit code for a configuration that cannot be used: starting again does not help.
const EX_CONFIG: u8 = 78;

/// The exit code for a command line that makes no sense, as clap has it.
const EX_USAGE: u8 = 2;

/// Does what the command line says.
pub fn start(args: &Args) -> ExitCode {
    let internal = match &args.internal {
        Some(Internal::DemoServer { options }) => Some(nexus_test_server::run(options.clone())),
        #[cfg(unix)]
        Some(Internal::Guardian { cookie }) => Some(process::guardian::run(cookie)),
        None => None,
    };
    match internal {
        Some(Ok(())) => return ExitCode::SUCCESS,
        Some(Err(error)) => return fail(&error, None),
        None => {}
    }
    let config = match Config::load(args.config.as_deref()) {
        Ok(config) => config,
        Err(error) => {
            let _ = fail(&error, error.hint());
            return ExitCode::from(EX_CONFIG);
        }
    };
    if args.check {
        return check(&config);
    }
    if let Err(error) = telemetry::start(args.log_format, &args.log) {
        let _ = fail(&error, None);
        return ExitCode::from(EX_USAGE);
    }
    if config.demo && args.log_format.resolve() == LogFormat::Human {
        greet();
    }
    let runtime = match runtime(args.threads) {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error, None),
    };
    let ran = runtime.block_on(run::run(args, config));
    // What still waits for a disk is not waited for.
    runtime.shutdown_timeout(Duration::from_secs(1));
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error @ RunError::AlreadyRunning { .. }) => {
            say(&format!("nexusd: {error}\n"));
            // Whoever wanted a daemon has one; a manager that wants to look after it has not.
            if platform::systemd::is_our_manager() {
                ExitCode::from(EX_TEMPFAIL)
            } else {
                ExitCode::SUCCESS
            }
        }
        Err(error) => fail(&error, error.hint()),
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
fn greet() {
    let file = config::user_file().map_or_else(
        || "a config file".to_owned(),
        |file| file.display().to_string(),
    );
    say(&format!(
        "No servers are configured: serving the built-in server `demo`.\n\n\
         Try, in another terminal:\n  \
           nexusctl tools\n  \
           nexusctl call demo.add --arg a=2 --arg b=3\n\n\
         Your own servers go into {file}:\n  \
           {{ \"mcpServers\": {{ \"time\": {{ \"command\": \"uvx\", \"args\": [\"mcp-server-time\"] }} }} }}\n\n"
    ));
}

/// Says what is configured. What cannot be used was told before.
fn check(config: &Config) -> ExitCode {
    for warning in &config.warnings {
        say(&format!("warning: {warning}\n"));
    }
    let n = config.servers.len();
    let plural = if n == 1 { "" } else { "s" };
    match config.files.first() {
        Some(file) => say(&format!("{}: {n} server{plural}, good\n", file.display())),
        None => say("no configuration: the built-in demo would be served\n"),
    }
    ExitCode::SUCCESS
}

fn fail(error: &dyn Error, hint: Option<&str>) -> ExitCode {
    let mut text = format!("error: {error}\n");
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!("  caused by: {error}\n");
        cause = error.source();
    }
    if let Some(hint) = hint {
        text += &format!("\nhint: {hint}\n");
    }
    say(&text);
    ExitCode::FAILURE
}

fn say(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}
