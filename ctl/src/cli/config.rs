//! What can be typed to look at the configuration, and to bring others' into it.

use super::Json;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct Config {
    #[command(subcommand)]
    pub(crate) verb: Option<ConfigVerb>,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigVerb {
    /// Show the configuration in force, without secrets
    #[command(after_help = "\
Examples:
  nexusctl config show
  nexusctl config show --origin    which file and line each server comes from, and what it hides")]
    Show(Show),
    /// List the files that count, the strongest last
    Path(Json),
    /// Check files without a daemon; exits with 1 if there is an error
    #[command(after_help = "\
Examples:
  nexusctl config check                 all files that the daemon would read
  nexusctl config check ./mcp.json      one file, whoever it is for")]
    Check(Check),
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Say where each server comes from
    #[arg(long)]
    pub(crate) origin: bool,
    /// Read the files, even if a daemon runs
    #[arg(long)]
    pub(crate) offline: bool,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Files; all that the daemon would read, if none are named
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Trust {
    /// A project's folder or file; the current folder, if none is named
    pub(crate) path: Option<PathBuf>,
    /// List what is trusted
    #[arg(long, conflicts_with_all = ["path", "remove"])]
    pub(crate) list: bool,
    /// Trust it no longer
    #[arg(long)]
    pub(crate) remove: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Import {
    /// Agents, or files; without any, all agents that are found are listed
    #[arg(value_name = "AGENT|FILE")]
    pub(crate) from: Vec<String>,
    /// Also servers of which there is another of the same name
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Show what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Connect {
    /// Which agent; without one, all that are found are listed
    pub(crate) agent: Option<String>,
    /// Put back what was there before, byte for byte
    #[arg(long, requires = "agent")]
    pub(crate) undo: bool,
    /// With --undo: also if the file has changed since
    #[arg(long, requires = "undo")]
    pub(crate) force: bool,
    /// Leave the agent's own copies of servers that Nexus has
    #[arg(long)]
    pub(crate) keep: bool,
    /// Write this file, instead of the agent's own
    #[arg(long, value_name = "PATH", requires = "agent")]
    pub(crate) file: Option<PathBuf>,
    /// Show what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) json: Json,
}

impl Config {
    pub(super) fn wants_json(&self) -> bool {
        self.json.json
            || match &self.verb {
                Some(ConfigVerb::Show(args)) => args.json.json,
                Some(ConfigVerb::Path(json)) => json.json,
                Some(ConfigVerb::Check(args)) => args.json.json,
                None => false,
            }
    }
}
