//! The command line around the library.

use std::process::ExitCode;

use clap::Parser;
use nexus_test_server::{Options, fault_help, run};

/// An MCP server that behaves well by default and misbehaves on command.
///
/// It speaks MCP over stdio, or over Streamable HTTP with --http, in the legacy revisions (2024-11-05 to 2025-11-25,
/// which begin with `initialize`) and in the modern one (2026-07-28, metadata on every request).
#[derive(Parser)]
#[command(name = "nexus-test-server", version, after_long_help = fault_help())]
struct Cli {
    #[command(flatten)]
    options: Options,
}

fn main() -> ExitCode {
    match run(Cli::parse().options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = std::io::Write::write_all(
                &mut std::io::stderr(),
                format!("nexus-test-server: {error}\n").as_bytes(),
            );
            ExitCode::FAILURE
        }
    }
}
