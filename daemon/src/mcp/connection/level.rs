//! How much a server is to log: as whoever wants most has it.

use super::{Connection, Waiting};
use crate::mcp::outgoing::{Ask, Param};
use nexus_proto::level::LogLevel;
use std::sync::Arc;

/// How much a server is to log.
#[derive(Debug, Default)]
pub(super) struct Levels {
    /// As an operator wants it.
    pub(super) wanted: Option<LogLevel>,
    /// As it was last told.
    pub(super) told: Option<LogLevel>,
}

impl Connection {
    /// Says how much the server is to log. A modern one is told so with every request.
    pub fn set_level(self: &Arc<Self>, level: LogLevel) {
        self.level.lock().wanted = Some(level);
        self.adjust_level(None);
    }

    /// Has the server log as much as whoever wants most: an operator, the calls under way, and this one.
    pub(super) fn adjust_level(self: &Arc<Self>, also: Option<LogLevel>) {
        let level = {
            let calls = self.table.lock();
            let calls = calls
                .pending
                .values()
                .filter_map(|pending| pending.call.as_ref()?.log_level);
            let calls = calls.min();
            let mut levels = self.level.lock();
            // Where nobody has said what is usual, a server goes on as it was last told.
            let all = least(least(calls, also), levels.wanted.or(levels.told));
            match all {
                Some(level) if levels.told != all => {
                    levels.told = all;
                    level
                }
                _ => return,
            }
        };
        self.tell_level(level);
    }

    pub(super) fn tell_level(self: &Arc<Self>, level: LogLevel) {
        let logs = self.terms.get().is_some_and(|terms| terms.offers.logging);
        if logs && !self.is_modern() {
            let ask = Ask {
                method: "logging/setLevel",
                params: &[("level", Param::Text(level.as_str()))],
            };
            // Whether it obeys shows in what it logs.
            drop(self.ask(&ask).map(Waiting::quietly));
        }
    }
}

/// The less urgent of two levels.
pub(super) fn least(one: Option<LogLevel>, other: Option<LogLevel>) -> Option<LogLevel> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
