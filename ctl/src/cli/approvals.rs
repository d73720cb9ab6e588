//! What can be typed after `nexusctl approvals`.

use super::Json;
use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct Approvals {
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Show questions as they come, and answer them, until Ctrl-C
    #[command(after_help = "On a terminal you are asked; elsewhere each change is a line.")]
    Watch {
        #[command(flatten)]
        json: Json,
    },
    /// Say yes
    #[command(after_help = "\
Examples:
  nexusctl approvals allow 3             this call; or the server, with a question for each call
  nexusctl approvals allow 3 --server    everything of this server, for as long as the agent is here")]
    Allow {
        /// The numbers of the questions
        #[arg(required = true, value_name = "ID")]
        ids: Vec<u64>,
        /// Everything of this server, by this agent, for as long as it is here
        #[arg(long, visible_alias = "always")]
        server: bool,
    },
    /// Say no
    Deny {
        /// The numbers of the questions
        #[arg(required = true, value_name = "ID")]
        ids: Vec<u64>,
    },
    /// Forget what was answered: it is asked about again
    #[command(after_help = "\
Examples:
  nexusctl approvals forget                    everything
  nexusctl approvals forget --server mail
  nexusctl approvals forget --agent 7          the agents have their numbers in `nexusctl agents`")]
    Forget {
        /// Only for this agent
        #[arg(long, value_name = "ID")]
        agent: Option<u64>,
        /// Only for this server
        #[arg(long, value_name = "NAME")]
        server: Option<String>,
    },
}

impl Approvals {
    pub(super) fn json(&self) -> bool {
        match &self.verb {
            Some(Verb::Watch { json }) => json.json || self.json.json,
            _ => self.json.json,
        }
    }
}
