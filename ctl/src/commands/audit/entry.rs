//! One line of the audit, and which of them are wanted. PURE.

use crate::output::{
    safe, style,
    table::Cell,
    time::{self, parse_duration},
};
use anstyle::Style;
use serde::Deserialize;
use std::time::SystemTime;

/// A line, as far as it is shown.
#[derive(Debug, Deserialize)]
pub(super) struct Entry {
    at: String,
    #[serde(default)]
    agent: Agent,
    #[serde(default)]
    method: String,
    server: Option<String>,
    tool: Option<String>,
    uri: Option<String>,
    prompt: Option<String>,
    #[serde(default)]
    decision: String,
    #[serde(default)]
    outcome: String,
    duration_ms: Option<f64>,
    /// Lines that are missing before this one.
    pub(super) lines_lost: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
struct Agent {
    #[serde(default)]
    id: u64,
    #[serde(default)]
    name: String,
    program: Option<String>,
}

/// Which lines are wanted.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    pub(super) agent: Option<String>,
    pub(super) server: Option<String>,
    /// Written as lines have it, or the beginning of that.
    pub(super) since: Option<String>,
}

impl Wanted {
    pub(super) fn has(&self, entry: &Entry) -> bool {
        let agent = |wanted: &String| {
            let agent = &entry.agent;
            agent.id.to_string() == *wanted
                || agent.name.eq_ignore_ascii_case(wanted)
                || agent.program.as_ref().is_some_and(|it| it.contains(wanted))
        };
        let server = |wanted: &String| {
            let server = entry.server.as_ref();
            server.is_some_and(|server| server.eq_ignore_ascii_case(wanted))
        };
        // Whose lines are missing, nobody knows.
        let is_theirs = entry.lines_lost.is_some()
            || self.agent.as_ref().is_none_or(agent) && self.server.as_ref().is_none_or(server);
        is_theirs && self.since.as_ref().is_none_or(|since| entry.at >= *since)
    }
}

/// Reads `10m`, `2h`, `2026-07-28`, `2026-07-28T09:05`.
pub(super) fn since(text: &str, now: SystemTime) -> Result<String, String> {
    if let Ok(ago) = parse_duration(text) {
        return Ok(time::rfc3339(
            now.checked_sub(ago).unwrap_or(SystemTime::UNIX_EPOCH),
        ));
    }
    let bare = text.trim_end_matches('Z').replace(' ', "T");
    let shape = "dddd-dd-ddTdd:dd:dd.ddd";
    let fits = |(c, like): (char, char)| match like {
        'd' => c.is_ascii_digit(),
        like => c == like,
    };
    let is_time =
        bare.len() >= 10 && bare.len() <= shape.len() && bare.chars().zip(shape.chars()).all(fits);
    match is_time {
        true => Ok(bare),
        false => Err(format!(
            "{text:?} is no time: expected one such as 10m, 2026-07-28 or 2026-07-28T09:05"
        )),
    }
}

impl Entry {
    /// When, who, what, and what became of it.
    pub(super) fn cells(&self) -> [(String, Style); 6] {
        let name = match self.agent.name.as_str() {
            "" => format!("agent {}", self.agent.id),
            name => safe::line(name),
        };
        let target = [&self.tool, &self.uri, &self.prompt];
        let target = target.into_iter().flatten().next();
        let target = target.map(|target| safe::line(target)).unwrap_or_default();
        let server = self.server.as_deref().map(safe::line);
        let call = match (server, self.method.as_str()) {
            (Some(server), "resources/read") => format!("{server} {target}"),
            (Some(server), _) => format!("{server}.{target}"),
            (None, _) => target,
        };
        let decided = match self.decision.as_str() {
            "allowed" | "none" => style::PLAIN,
            "rate-limited" => style::CARE,
            _ => style::BAD,
        };
        let ended = match self.outcome.as_str() {
            "ok" => style::GOOD,
            "tool-error" | "cancelled" | "input-required" => style::CARE,
            _ => style::BAD,
        };
        let ms = self.duration_ms.map(|ms| format!("{ms:.1}"));
        let at = self.at.split('.').next().unwrap_or_default();
        [
            (safe::line(&at.replace('T', " ")), style::DIM),
            (name, style::PLAIN),
            (call, style::PLAIN),
            (safe::line(&self.decision), decided),
            (safe::line(&self.outcome), ended),
            (ms.unwrap_or_else(|| "-".to_owned()), style::PLAIN),
        ]
    }

    pub(super) fn row(&self) -> [Cell; 6] {
        self.cells().map(|(text, style)| Cell::styled(text, style))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn times_are_read_as_people_write_them() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_785_229_500);
        for (text, read) in [
            ("10m", "2026-07-28T08:55:00.000Z"),
            ("2026-07-28", "2026-07-28"),
            ("2026-07-28 09:05", "2026-07-28T09:05"),
            ("2026-07-28T09:05:00Z", "2026-07-28T09:05:00"),
        ] {
            assert_eq!(since(text, now).as_deref(), Ok(read));
        }
        for text in ["yesterday", "2026-7-28", "09:05"] {
            assert!(since(text, now).is_err(), "{text}");
        }
    }

    #[test]
    fn only_what_is_wanted_is_shown() {
        let entry: Entry = serde_json::from_str(
            r#"{"at":"2026-07-28T09:05:00.000Z","agent":{"id":7,"name":"Claude","program":"/opt/claude"},
                "server":"mail","tool":"send","decision":"allowed","outcome":"ok","duration_ms":1.25}"#,
        )
        .unwrap();
        let wanted = |agent: Option<&str>, server: Option<&str>, since: Option<&str>| {
            let owned = |text: Option<&str>| text.map(str::to_owned);
            let (agent, server, since) = (owned(agent), owned(server), owned(since));
            let wanted = Wanted {
                agent,
                server,
                since,
            };
            wanted.has(&entry)
        };
        assert!(wanted(None, None, None));
        assert!(wanted(Some("claude"), Some("mail"), Some("2026-07-28")));
        assert!(wanted(Some("7"), None, Some("2026-07-28T09:05")));
        assert!(wanted(Some("opt/cl"), None, None));
        assert!(!wanted(Some("8"), None, None));
        assert!(!wanted(None, Some("web"), None));
        assert!(!wanted(None, None, Some("2026-07-29")));
        let shown = entry.cells().map(|(text, _)| text);
        assert_eq!(
            shown,
            [
                "2026-07-28 09:05:00",
                "Claude",
                "mail.send",
                "allowed",
                "ok",
                "1.2"
            ]
        );
    }
}
