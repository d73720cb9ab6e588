//! How grave a log message is.

use crate::reply::{self, RpcError, quoted};

/// From the least to the gravest.
pub(crate) const LEVELS: [&str; 8] = [
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
];

/// Where a level stands; -32602 if there is no such.
pub(crate) fn rank(level: &str) -> Result<usize, RpcError> {
    LEVELS
        .iter()
        .position(|known| *known == level)
        .ok_or_else(|| {
            RpcError::invalid_params(format!("level must be one of {}", LEVELS.join(", ")))
        })
}

/// A log message of the level with this rank.
pub(crate) fn message(rank: usize, text: &str) -> Vec<u8> {
    let (level, text) = (LEVELS[rank], quoted(text));
    let params = format!(r#"{{"level":"{level}","logger":"nexus-test-server","data":{text}}}"#);
    reply::outgoing(None, "notifications/message", &params)
}
