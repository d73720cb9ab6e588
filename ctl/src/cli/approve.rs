//! What can be typed after `nexusctl approve`.

use super::Json;
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Approve {
    /// A tool, or all of a server; without any, what waits is listed
    #[arg(value_name = "SERVER|SERVER.TOOL")]
    pub(crate) what: Option<String>,
    /// Everything that waits
    #[arg(long, conflicts_with = "what")]
    pub(crate) all: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) json: Json,
}
