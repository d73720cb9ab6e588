//! What can be typed after `nexusctl service`.

use super::Json;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct Service {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Have the daemon started with your session, and by the first client
    #[command(after_help = "\
Examples:
  nexusctl service install                      for you, from your next login on and now
  sudo nexusctl service install --system alice  for a user who never logs in")]
    Install(Install),
    /// Undo that
    Uninstall(Which),
    /// Start it
    Start(Which),
    /// Stop it, until it is started again or you log in
    Stop(Which),
    /// Show whether it is installed, and whether it runs
    Status(Which),
}

#[derive(Debug, Args)]
pub(crate) struct Install {
    #[command(flatten)]
    pub(crate) which: Which,
    /// The daemon's program; found beside nexusctl, or on the PATH
    #[arg(long, value_name = "PATH")]
    pub(crate) nexusd: Option<PathBuf>,
    /// Do not start it now
    #[arg(long)]
    pub(crate) no_start: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Which {
    /// The service of the system that runs for this user, instead of your own
    #[arg(long, value_name = "USER")]
    pub(crate) system: Option<String>,
    #[command(flatten)]
    pub(crate) json: Json,
}

impl Service {
    pub(super) fn wants_json(&self) -> bool {
        let which = match &self.verb {
            Verb::Install(args) => &args.which,
            Verb::Uninstall(which)
            | Verb::Start(which)
            | Verb::Stop(which)
            | Verb::Status(which) => which,
        };
        which.json.json
    }
}
