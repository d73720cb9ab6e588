//! What servers write to their standard error, and what they log for their client.

use crate::{RawJson, Result};
use nexus_proto::{level::LogLevel, v1};
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

/// What a server logs for its client, besides what it writes to its standard error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogMessage {
    /// How urgent it is; `Info` where the server gave a level that there is not.
    pub level: LogLevel,
    /// Who logs it.
    pub logger: Option<String>,
    /// What it says: any JSON, verbatim.
    pub data: RawJson,
}

impl LogMessage {
    pub(crate) fn from_wire(wire: v1::LogMessage) -> Result<Self> {
        Ok(Self {
            level: wire.level.parse().unwrap_or(LogLevel::Info),
            logger: Some(wire.logger).filter(|logger| !logger.is_empty()),
            data: RawJson::from_wire(wire.data, "a log message")?,
        })
    }

    /// What it says, for people: text as it is, anything else as JSON.
    pub fn text(&self) -> String {
        let text = self.data.parse::<String>();
        text.unwrap_or_else(|_| self.data.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_text_or_json() {
        let message = |level: &str, data: &'static str| {
            LogMessage::from_wire(v1::LogMessage {
                level: level.into(),
                logger: String::new(),
                data: data.as_bytes().into(),
            })
            .unwrap()
        };
        assert_eq!(message("error", r#""a\tb""#).text(), "a\tb");
        let odd = message("shout", r#"{"n": 1e400}"#);
        assert_eq!((odd.level, odd.logger.as_ref()), (LogLevel::Info, None));
        assert_eq!(odd.text(), r#"{"n": 1e400}"#);
    }
}
