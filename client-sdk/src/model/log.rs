//! What servers write to their standard error, and what they log for their client.

use crate::{RawJson, Result};
use nexus_proto::v1;
use std::{fmt, str::FromStr, time::SystemTime};

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

/// How urgent a log message is; the more urgent, the greater.
///
/// ```
/// use nexus_client::LogLevel;
///
/// assert!(LogLevel::Error > LogLevel::Info);
/// assert_eq!("warning".parse(), Ok(LogLevel::Warning));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogLevel {
    /// Details for whoever looks for a fault.
    Debug,
    /// How things are going.
    Info,
    /// Ordinary, but worth a look.
    Notice,
    /// Something may go wrong.
    Warning,
    /// Something went wrong.
    Error,
    /// A part of the server does not work.
    Critical,
    /// Somebody must act at once.
    Alert,
    /// The server cannot be used.
    Emergency,
}

impl LogLevel {
    /// All of them, the least urgent first.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// Its name, as MCP has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// That is no level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected debug, info, notice, warning, error, critical, alert or emergency")]
pub struct UnknownLogLevel;

impl FromStr for LogLevel {
    type Err = UnknownLogLevel;

    fn from_str(name: &str) -> Result<Self, UnknownLogLevel> {
        let mut levels = Self::ALL.into_iter();
        levels
            .find(|level| level.as_str().eq_ignore_ascii_case(name))
            .ok_or(UnknownLogLevel)
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
    fn levels_are_in_order_and_read_as_they_are_written() {
        assert!(LogLevel::ALL.is_sorted());
        for level in LogLevel::ALL {
            assert_eq!(level.to_string().parse(), Ok(level));
        }
        assert_eq!("loud".parse::<LogLevel>(), Err(UnknownLogLevel));
    }

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
