//! Tools that are not what was approved of.

use crate::{RawJson, Result};
use nexus_proto::v1;

/// A tool that is not, or no longer, what was approved of.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolChange {
    /// The name of its server, as the config gave it.
    pub server: String,
    /// Its name on that server.
    pub tool: String,
    /// The definition that was approved of, if there was one.
    pub approved: Option<RawJson>,
    /// The definition as it is now.
    pub now: RawJson,
    /// Its server is run by another command than when it was approved of.
    pub other_command: bool,
    /// It is held back until it is approved of.
    pub held: bool,
}

impl ToolChange {
    pub(crate) fn from_wire(wire: v1::ToolChange) -> Result<Self> {
        let approved = match wire.approved.is_empty() {
            true => None,
            false => Some(RawJson::from_wire(wire.approved, "a definition")?),
        };
        Ok(Self {
            server: wire.server,
            tool: wire.tool,
            approved,
            now: RawJson::from_wire(wire.now, "a definition")?,
            other_command: wire.other_command,
            held: wire.held,
        })
    }

    /// The name as people type it: `server.tool`.
    pub fn dotted(&self) -> String {
        format!("{}.{}", self.server, self.tool)
    }
}
