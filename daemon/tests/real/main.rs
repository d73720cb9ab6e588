//! The servers that people use, from npm and PyPI: all that each of them can do, through the daemon.
//!
//! `scripts/real-servers.sh` installs them and runs this with the folder they are in. One line for each proof; the
//! first that fails ends it.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr
)]

#[cfg(unix)]
mod npm;
#[cfg(unix)]
mod pypi;
#[cfg(unix)]
#[path = "../it/support.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod support;

use std::process::ExitCode;

#[cfg(not(unix))]
fn main() -> ExitCode {
    println!("skipped: the real servers are tried on Unix only");
    ExitCode::SUCCESS
}

#[cfg(unix)]
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    if std::env::args().any(|arg| arg == "--list") {
        println!("real: test");
        return ExitCode::SUCCESS;
    }
    let Some(folder) = std::env::var_os("NEXUS_REAL_SERVERS").map(std::path::PathBuf::from) else {
        println!("skipped: scripts/real-servers.sh runs this");
        return ExitCode::SUCCESS;
    };
    let all = async {
        let npm = folder.join("node_modules/.bin");
        let node = std::process::Command::new("node").arg("-v").output();
        if npm.exists() && node.is_ok() {
            npm::everything(&npm).await;
            npm::filesystem(&npm).await;
            npm::memory_and_thinking(&npm).await;
        }
        let pypi = folder.join("venv/bin");
        if pypi.exists() {
            pypi::time_and_git(&pypi).await;
        }
    };
    match tokio::time::timeout(std::time::Duration::from_secs(180), all).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => {
            eprintln!("FAILED: not done after three minutes");
            ExitCode::FAILURE
        }
    }
}

/// Says what was shown.
#[cfg(unix)]
fn ok(what: impl std::fmt::Display) {
    println!("ok: {what}");
}
