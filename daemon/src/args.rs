//! The command line of `nexusd`.

use crate::telemetry::LogFormat;
use clap::{Parser, Subcommand};
use std::{net::SocketAddr, path::PathBuf};

/// One pool of MCP servers for every agent on this machine.
///
/// nexusd starts the MCP servers that are configured, keeps them alive, and serves all of them
/// over one private endpoint. Use it with nexusctl, or with the nexus-client library.
#[derive(Debug, Clone, Parser)]
#[command(name = "nexusd", version, after_help = EXAMPLES)]
pub struct Args {
    /// The one config file to read, instead of all layers (`nexusctl config path` lists them)
    #[arg(long, short, value_name = "FILE", env = crate::config::CONFIG_VARIABLE)]
    pub config: Option<PathBuf>,

    /// Where to listen [default: $XDG_RUNTIME_DIR/nexus/nexusd.sock]
    #[arg(long, value_name = "PATH", env = nexus_proto::endpoint::SOCKET_VARIABLE)]
    pub socket: Option<PathBuf>,

    /// Serve MCP over HTTP too, on this loopback address [default if given alone: 127.0.0.1:7420]; `nexusctl
    /// http` shows the token that clients need
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:7420")]
    pub http: Option<SocketAddr>,

    /// A program that is the operator's, as nexusctl is: nobody is asked for it, and it may answer for others; a
    /// name or a path, `*` stands for anything
    #[arg(long = "operator", value_name = "PROGRAM")]
    pub operators: Vec<String>,

    /// What to log: error, warn, info, debug, trace, or a filter such as nexusd=debug [default: info]
    #[arg(long, value_name = "FILTER", env = "NEXUS_LOG")]
    pub log: Option<String>,

    /// How to log: for people on a terminal, for machines elsewhere
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub log_format: LogFormat,

    /// Log to this file instead of standard error; three of a megabyte each are kept
    #[arg(long, value_name = "FILE")]
    pub log_file: Option<PathBuf>,

    /// Where lists and logs of servers are kept [default: ~/.local/state/nexus]
    #[arg(long, value_name = "FOLDER")]
    pub state: Option<PathBuf>,

    /// Do not read the configuration again when its file is written; `nexusctl reload` still does
    #[arg(long)]
    pub no_watch: bool,

    /// Check the configuration, print what is wrong with it, and end
    #[arg(long)]
    pub check: bool,

    /// How many threads serve calls [default: 1]; one alone is fastest up to a few dozen busy agents
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Option<u16>,

    #[command(subcommand)]
    pub(crate) internal: Option<Internal>,
}

const EXAMPLES: &str = "\
Examples:
  nexusd                              serve ~/.config/nexus/mcp.json, or a built-in demo
  nexusd --config ./mcp.json          serve another file
  nexusd --check                      is the configuration good?
  kill -HUP $(pidof nexusd)           read the configuration again, now

Then, in another terminal:
  nexusctl tools                      what is there?
  nexusctl call demo.add --arg a=2 --arg b=3";

/// What the daemon runs itself as.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Internal {
    /// The demo server.
    #[command(name = crate::DEMO_SERVER, hide = true)]
    DemoServer {
        #[command(flatten)]
        options: Box<nexus_test_server::Options>,
    },
    /// What ends the servers of a daemon that could not.
    #[cfg(unix)]
    #[command(name = crate::GUARDIAN, hide = true)]
    Guardian {
        /// The mark of what belongs to the daemon.
        cookie: String,
    },
    /// What starts the daemon of a user at logon, and again when it has crashed.
    #[cfg(windows)]
    #[command(name = crate::KEEPER, hide = true)]
    Keeper,
    /// The daemon as a service of Windows.
    #[cfg(windows)]
    #[command(name = crate::SERVICE, hide = true)]
    Service {
        /// The account that may use it, besides the service's own.
        #[arg(long, value_name = "ACCOUNT")]
        client: Option<String>,
    },
}
