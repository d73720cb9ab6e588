//! What servers write to their standard error.

use nexus_proto::v1;
use std::time::SystemTime;

/// Which lines of a server's standard error to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LogOptions {
    /// How many of the lines that are kept; all of them when `None`.
    pub tail: Option<u32>,
    /// Go on with new lines as they come.
    pub follow: bool,
}

impl LogOptions {
    /// Only the last `lines` of what is kept.
    #[must_use]
    pub fn tail(mut self, lines: u32) -> Self {
        self.tail = Some(lines);
        self
    }

    /// Go on with new lines as they come.
    #[must_use]
    pub fn follow(mut self) -> Self {
        self.follow = true;
        self
    }
}

/// One line that a server wrote to its standard error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogLine {
    /// The line, without its end.
    pub line: String,
    /// When it was read.
    pub at: Option<SystemTime>,
    /// Which instance of the server wrote it.
    pub instance: u32,
    /// Which process of that instance.
    pub generation: u64,
    /// How many lines were lost before this one because it was read too slowly.
    pub missed: u64,
}

impl From<v1::ServersLogsResponse> for LogLine {
    fn from(wire: v1::ServersLogsResponse) -> Self {
        Self {
            line: wire.line,
            at: wire.at.and_then(|at| at.try_into().ok()),
            instance: wire.instance,
            generation: wire.generation,
            missed: wire.missed,
        }
    }
}
