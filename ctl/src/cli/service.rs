//! What can be typed after `nexusctl service`.

use super::Json;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[cfg(not(windows))]
const EXAMPLES: &str = "\
Examples:
  nexusctl service install                      for you, from your next login on and now
  sudo nexusctl service install --system alice  for a user who never logs in";

#[cfg(windows)]
const EXAMPLES: &str = "\
Examples:
  nexusctl service install                      for you, from your next logon on and now
  nexusctl service install --system             for a machine where nobody logs on (as an administrator)
  nexusctl service install --system alice       the same, and alice is the one who uses it";

#[derive(Debug, Args)]
pub(crate) struct Service {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Have the daemon started with your session, and by the first client
    #[command(after_help = EXAMPLES)]
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
    // On Windows nobody's name means whoever installs it.
    #[cfg_attr(not(windows), arg(long, value_name = "USER"))]
    #[cfg_attr(windows, arg(long, value_name = "USER", num_args = 0..=1, default_missing_value = ""))]
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
