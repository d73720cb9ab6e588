//! `nexusd`: one pool of MCP servers for every agent on this machine.

use clap::Parser as _;
use nexusd::{args::Args, start};
use std::process::ExitCode;

fn main() -> ExitCode {
    start(&Args::parse())
}
