//! The faults of a process's beginning.

use std::env;
use std::io::{self, Write as _};
use std::process::{Command, Stdio, exit};
use std::thread;
use std::time::Duration;

use super::{Fault, Plan};
use crate::journal::Journal;
use crate::options::Options;
use crate::platform;

/// Set for the grandchild: it gets the same arguments, so that this works in any host binary.
const LINGER: &str = "NEXUS_TEST_SERVER_LINGER_SECONDS";

/// Does what is due before anything is read, in either transport.
pub(crate) fn at_start(options: &Options) -> io::Result<()> {
    if let Some(seconds) = env::var_os(LINGER) {
        linger(
            seconds
                .to_str()
                .and_then(|text| text.parse().ok())
                .unwrap_or_default(),
        );
    }
    if let Some(path) = &options.start_journal {
        Journal::open(path)?.record_start();
    }
    let plan = Plan::new(options.faults.clone());
    if let Some(milliseconds) = plan.number(Fault::ExitAfterMs) {
        spawn(move || {
            thread::sleep(Duration::from_millis(milliseconds));
            exit(9);
        })?;
    }
    if plan.has(Fault::CrashStart) {
        let _ = writeln!(io::stderr(), "fatal: cannot open database");
        exit(1);
    }
    if plan.has(Fault::IgnoreTerm) {
        platform::ignore_term()?;
    }
    if let Some(seconds) = plan.number(Fault::Grandchild) {
        leave_grandchild(seconds)?;
    }
    if let Some(mebibytes) = plan.number(Fault::StderrFlood) {
        let line = [&[b'.'; 1023][..], b"\n"].concat();
        for _ in 0..mebibytes * 1024 {
            io::stderr().write_all(&line)?;
        }
    }
    if let Some(milliseconds) = plan.number(Fault::SlowStart) {
        thread::sleep(Duration::from_millis(milliseconds));
    }
    Ok(())
}

/// The fault init-exit.
pub(crate) fn exit_at_init() -> ! {
    let _ =
        io::stderr().write_all(b"error: configuration is incomplete\nerror: API_KEY is not set\n");
    exit(3);
}

/// The fault exit-on-probe.
pub(crate) fn exit_at_probe(method: &str) -> ! {
    let _ = writeln!(io::stderr(), "error: {method} before initialize");
    exit(4);
}

/// What package runners and careless servers print on stdout.
pub(crate) fn chatter(lines: u64) -> impl Iterator<Item = &'static str> {
    const LINES: [&str; 3] = [
        "> nexus-test-server@0.1.0 start",
        "\u{1b}[32mServer starting...\u{1b}[0m",
        "npm warn deprecated left-pad@1.3.0: use String.prototype.padStart()",
    ];
    LINES
        .into_iter()
        .cycle()
        .zip(0..lines)
        .map(|(line, _)| line)
}

/// The fault banner.
pub(crate) fn banner(lines: u64) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    for line in chatter(lines) {
        writeln!(stdout, "{line}")?;
    }
    stdout.flush()
}

/// Starts this binary again as a process that outlives us with our stdout and stderr in its hands.
fn leave_grandchild(seconds: u64) -> io::Result<()> {
    let mut child = Command::new(env::current_exe()?)
        .args(env::args_os().skip(1))
        .env(LINGER, seconds.to_string())
        .stdin(Stdio::null())
        .spawn()?;
    spawn(move || drop(child.wait()))
}

/// Starts a thread that does next to nothing.
fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new()
        .stack_size(64 * 1024)
        .spawn(work)
        .map(drop)
}

fn linger(seconds: u64) -> ! {
    platform::leave_session();
    thread::sleep(Duration::from_secs(seconds));
    exit(0);
}
