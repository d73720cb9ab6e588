//! `nexusctl audit`.

use super::Json;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct Audit {
    /// Go on with new calls as they end
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Only the last calls [default: 100 in a table, unless --since is given]
    #[arg(short = 'n', long, value_name = "COUNT")]
    pub(crate) lines: Option<usize>,
    /// Only those of this agent: its name, its number, or a part of its program's path
    #[arg(short, long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// Only those of this server
    #[arg(short, long, value_name = "NAME")]
    pub(crate) server: Option<String>,
    /// Only those since then: a time ago such as 10m or 2h, or a time (UTC) such as 2026-07-28 or 2026-07-28T09:05
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Where the daemon keeps its state, if it was started with --state
    #[arg(long, value_name = "FOLDER")]
    pub(crate) state: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) json: Json,
}
