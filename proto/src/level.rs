//! How urgent what a server logs for its client is.

use std::{fmt, str::FromStr};

/// How urgent a log message is; the more urgent, the greater.
///
/// ```
/// use nexus_proto::level::LogLevel;
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
}
