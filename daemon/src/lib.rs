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
pub mod policy;
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
use nexus_config::{
    Diagnosis,
    render::{Look, render},
};
use nexus_proto::linger;
use nexus_test_server::Options;
use run::RunError;
use std::{
    error::Error,
    io::{self, IsTerminal as _, Write as _},
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
        Some(Internal::DemoServer { options }) => nexus_test_server::run(Options::clone(options)),
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
            show_all(args, &error.diagnoses);
            return EX_CONFIG;
        }
    };
    if args.check {
        return check(args, &config);
    }
    // The command line wins over the file.
    let log = args.log.as_deref().or(config.settings.log.as_deref());
    let threads = args.threads.or(config.settings.threads).unwrap_or(1);
    let file = args.log_file.as_deref();
    if let Err(error) = telemetry::start(args.log_format, log.unwrap_or("info"), file) {
        fail(args, &error, None);
        return EX_USAGE;
    }
    if config.demo && file.is_none() && args.log_format.resolve(file) == LogFormat::Human {
        greet(args);
    }
    let runtime = match runtime(threads) {
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
    match threads {
        1 => linger::runtime(),
        _ => tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads.into())
            .enable_all()
            .build(),
    }
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
    show_all(args, &config.diagnoses);
    let n = config.servers.len();
    let plural = if n == 1 { "" } else { "s" };
    if config.diagnoses.iter().any(Diagnosis::is_error) {
        say(
            args,
            &format!("{n} server{plural} would run, and some would not\n"),
        );
        return EX_CONFIG;
    }
    let files: Vec<String> = config
        .files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    match files.is_empty() {
        false => say(
            args,
            &format!("{}: {n} server{plural}, good\n", files.join(", ")),
        ),
        true => say(
            args,
            "no configuration: the built-in demo would be served\n",
        ),
    }
    0
}

/// Shows what is wrong with the configuration: set out on a terminal, plainly in a journal.
fn show_all(args: &Args, diagnoses: &[Diagnosis]) {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let number = |text: String| text.parse().ok();
    let look = if io::stderr().is_terminal() {
        Look::Fancy {
            color: !is_set("NO_COLOR")
                && std::env::var_os("TERM").is_none_or(|term| term != "dumb"),
            width: std::env::var("COLUMNS")
                .ok()
                .and_then(number)
                .unwrap_or(100),
        }
    } else {
        Look::Plain
    };
    for diagnosis in diagnoses {
        say(args, &format!("{}\n", render(diagnosis, look)));
    }
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
