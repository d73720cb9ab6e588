//! Real daemons, real servers, many clients, and everything that can go wrong at once.
//!
//! `cargo test -p nexusd --test chaos` is a short form of all three runs, for every day;
//! `cargo test -p nexusd --release --test chaos -- --long` has the full size:
//!
//! - `chaos`: 20 servers and 200 clients for a minute, while servers are killed, frozen, restarted and
//!   reloaded, and clients leave in the middle of their calls;
//! - `kill-server`: one server is killed 200 times under load;
//! - `kill-daemon`: the daemon is killed 20 times, and nothing of it is left.
//!
//! What the clients saw and what the servers did are compared afterwards, by a checker that must first
//! object to falsified histories. `--seed N` plays the same dice again, `--only RUN` one run alone.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr
)]
#![cfg_attr(not(target_os = "linux"), allow(unused))]

#[cfg(target_os = "linux")]
mod client;
mod dice;
mod falsified;
mod history;
#[cfg(target_os = "linux")]
mod injector;
#[cfg(target_os = "linux")]
mod kill_daemon;
#[cfg(target_os = "linux")]
mod kill_server;
mod options;
#[cfg(target_os = "linux")]
mod processes;
#[cfg(target_os = "linux")]
mod recovery;
#[cfg(target_os = "linux")]
mod report;
#[cfg(target_os = "linux")]
mod rest;
#[cfg(target_os = "linux")]
mod roster;
#[cfg(target_os = "linux")]
mod storm;
#[cfg(target_os = "linux")]
#[path = "../it/support.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod support;

use options::{Asked, Options};
use std::process::ExitCode;

fn main() -> ExitCode {
    match options::read(std::env::args().skip(1)) {
        Ok(Asked::List) => {
            println!("chaos: test");
            ExitCode::SUCCESS
        }
        Ok(Asked::Nothing) => ExitCode::SUCCESS,
        Ok(Asked::Run(options)) => run(&options),
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::from(2)
        }
    }
}

/// Elsewhere there is no `/proc` to look into.
#[cfg(not(target_os = "linux"))]
fn run(_: &Options) -> ExitCode {
    falsified::must_be_found();
    ExitCode::SUCCESS
}

/// A run that waits for something that does not come is ended, and its daemon with it.
#[cfg(target_os = "linux")]
async fn bounded(run: impl Future<Output = Vec<String>>) -> Vec<String> {
    const LONGEST: std::time::Duration = std::time::Duration::from_secs(300);
    let ended = tokio::time::timeout(LONGEST, run).await;
    ended.unwrap_or_else(|_| vec![format!("a run did not end within {LONGEST:?}")])
}

#[cfg(target_os = "linux")]
fn run(options: &Options) -> ExitCode {
    falsified::must_be_found();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let mut problems = Vec::new();
    runtime.block_on(async {
        if options.wants("chaos") {
            problems.extend(bounded(storm::run(options)).await);
        }
        if options.wants("kill-server") {
            problems.extend(bounded(kill_server::run(options)).await);
        }
        if options.wants("kill-daemon") {
            problems.extend(bounded(kill_daemon::run(options)).await);
        }
    });
    if problems.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("\n{} problems, the first of them:", problems.len());
    for problem in problems.iter().take(20) {
        println!("  {problem}");
    }
    println!("again with: --seed {}", options.seed);
    ExitCode::FAILURE
}
