//! What a line of the audit looks like. Pure.

use nexus_proto::reason::Reason;
use serde::Deserialize;
use std::{
    borrow::Cow,
    fmt::{self, Write as _},
    time::Duration,
};

/// Longer names, paths and URIs are cut.
const MAX_TEXT: usize = 2048;

/// To this, where there is only room for a short line: each letter may take six.
const SHORT: usize = 24;

/// Tells a line from all others, also from those of earlier daemons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Id {
    /// When the daemon was started, in milliseconds.
    pub(super) run: u64,
    /// Which of its lines it is.
    pub(super) number: u64,
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{}", self.run, self.number)
    }
}

/// What is known of a call when it begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head<'a> {
    pub(super) id: Id,
    /// When, since 1970.
    pub(super) at: Duration,
    pub(super) agent: u64,
    pub(super) name: &'a str,
    pub(super) pid: Option<u32>,
    pub(super) program: Option<&'a str>,
    pub(super) project: Option<&'a str>,
    pub(super) method: &'static str,
    /// `None` if there is none of that name.
    pub(super) server: Option<&'a str>,
    /// The tool, URI or prompt.
    pub(super) target: &'a str,
    /// How many bytes of arguments, and their hash where it is known already.
    pub(super) arguments: Option<(usize, Option<[u8; 32]>)>,
}

/// What became of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    pub(super) decision: &'static str,
    pub(super) outcome: &'static str,
    pub(super) duration: Duration,
    pub(super) result: Option<usize>,
}

impl Head<'_> {
    /// The line without its end.
    pub(super) fn text(&self) -> String {
        self.written(MAX_TEXT)
    }

    /// The same, if there is little room.
    pub(super) fn short(&self) -> String {
        self.written(SHORT)
    }

    fn written(&self, longest: usize) -> String {
        let mut to = String::with_capacity(512);
        let _ = write!(to, "{{\"id\":\"{}\",\"at\":\"", self.id);
        rfc3339(&mut to, self.at);
        let _ = write!(to, "\",\"agent\":{{\"id\":{}", self.agent);
        let mut put = |key: &str, text: &str| {
            to.push_str(key);
            quote(&mut to, clip(text, longest));
        };
        put(",\"name\":", self.name);
        if let Some(program) = self.program {
            put(",\"program\":", program);
        }
        if let Some(project) = self.project {
            put(",\"project\":", project);
        }
        if let Some(pid) = self.pid {
            let _ = write!(to, ",\"pid\":{pid}");
        }
        let _ = write!(to, "}},\"method\":\"{}\"", self.method);
        if let Some(server) = self.server {
            to.push_str(",\"server\":");
            quote(&mut to, clip(server, longest));
        }
        to.push_str(match self.method {
            "resources/read" => ",\"uri\":",
            "prompts/get" => ",\"prompt\":",
            _ => ",\"tool\":",
        });
        quote(&mut to, clip(self.target, longest));
        if let Some((size, hash)) = self.arguments {
            let _ = write!(to, ",\"arguments_bytes\":{size}");
            if let Some(hash) = hash {
                add_hash(&mut to, &hash);
            }
        }
        to
    }
}

/// Adds the hash of the arguments.
pub(super) fn add_hash(to: &mut String, hash: &[u8; 32]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    to.push_str(",\"arguments_sha256\":\"");
    for byte in hash {
        to.push(DIGITS[usize::from(byte >> 4)].into());
        to.push(DIGITS[usize::from(byte & 15)].into());
    }
    to.push('"');
}

/// Ends a line.
pub(super) fn add_end(to: &mut String, end: End) {
    let End {
        decision, outcome, ..
    } = end;
    let ms = end.duration.as_micros();
    let _ = write!(
        to,
        ",\"decision\":\"{decision}\",\"outcome\":\"{outcome}\",\"duration_ms\":{}.{:03}",
        ms / 1000,
        ms % 1000
    );
    if let Some(size) = end.result {
        let _ = write!(to, ",\"result_bytes\":{size}");
    }
    to.push_str("}\n");
}

/// Ends the line of a call of which nobody knows what became of it.
pub(super) const LOST: &str = ",\"decision\":\"allowed\",\"outcome\":\"lost\"}\n";

/// The same of one that was not even let through yet.
pub(super) const LOST_WAITING: &str = ",\"decision\":\"none\",\"outcome\":\"lost\"}\n";

/// A line that says that others are missing.
pub(super) fn missing(id: Id, at: Duration, count: u64) -> String {
    let mut to = format!("{{\"id\":\"{id}\",\"at\":\"");
    rfc3339(&mut to, at);
    let _ = writeln!(to, "\",\"lines_lost\":{count}}}");
    to
}

/// What was decided, told by why a call failed; and for all other reasons by whether it was let through.
pub(super) fn decision(reason: Option<Reason>, let_through: bool) -> &'static str {
    match reason {
        Some(Reason::Sandboxed) => "sandboxed",
        Some(Reason::Denied) => "denied",
        Some(Reason::Unanswered) => "unanswered",
        Some(Reason::RateLimited) => "rate-limited",
        Some(Reason::ToolChanged) => "tool-changed",
        _ if let_through => "allowed",
        // It did not come to that: there is no such tool, or the arguments do not fit.
        _ => "none",
    }
}

/// What a failure is called.
pub(super) fn failed(reason: Reason) -> &'static str {
    match reason {
        Reason::Cancelled => "cancelled",
        reason => reason.as_str(),
    }
}

/// What a result says of itself.
pub(super) fn outcome(result: &[u8]) -> &'static str {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Says<'a> {
        #[serde(default)]
        is_error: bool,
        #[serde(borrow, default)]
        result_type: Cow<'a, str>,
    }
    let has = |name: &[u8]| memchr::memmem::find(result, name).is_some();
    if !has(b"\"isError\"") && !has(b"\"input_required\"") {
        return "ok";
    }
    match serde_json::from_slice::<Says<'_>>(result) {
        Ok(says) if says.is_error => "tool-error",
        Ok(says) if says.result_type == "input_required" => "input-required",
        _ => "ok",
    }
}

fn quote(to: &mut String, text: &str) {
    // It cannot fail: it is text.
    to.push_str(&serde_json::to_string(text).unwrap_or_default());
}

fn clip(text: &str, longest: usize) -> &str {
    &text[..text.floor_char_boundary(longest)]
}

/// `2026-07-28T09:05:00.123Z`: always as long, so that lines can be compared as text.
fn rfc3339(to: &mut String, since_1970: Duration) {
    let (days, seconds) = (since_1970.as_secs() / 86400, since_1970.as_secs() % 86400);
    // Howard Hinnant's `civil_from_days`.
    let z = days + 719_468;
    let (era, of_era) = (z / 146_097, z % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = (shifted + 2) % 12 + 1;
    let year = year + era * 400 + u64::from(month <= 2);
    let (h, m, s) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let ms = since_1970.subsec_millis();
    let _ = write!(
        to,
        "{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}.{ms:03}Z"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn head<'a>(name: &'a str, target: &'a str) -> Head<'a> {
        Head {
            id: Id {
                run: 0xabc,
                number: 7,
            },
            at: Duration::from_millis(1_785_229_500_042),
            agent: 3,
            name,
            pid: Some(42),
            program: Some("/usr/bin/x"),
            project: None,
            method: "tools/call",
            server: Some("mail"),
            target,
            arguments: Some((2, Some([0xa5; 32]))),
        }
    }

    #[test]
    fn a_line_says_who_did_what_and_what_became_of_it() {
        let mut line = head("a \"name\"\n", "send").text();
        add_end(
            &mut line,
            End {
                decision: decision(None, true),
                outcome: outcome(b"{\"isError\":true}"),
                duration: Duration::from_micros(1234),
                result: Some(16),
            },
        );
        assert!(line.ends_with("}\n") && line.starts_with("{\"id\":\"abc-7\","));
        let line: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(
            line,
            json!({
                "id": "abc-7",
                "at": "2026-07-28T09:05:00.042Z",
                "agent": {"id": 3, "name": "a \"name\"\n", "pid": 42, "program": "/usr/bin/x"},
                "method": "tools/call",
                "server": "mail",
                "tool": "send",
                "arguments_bytes": 2,
                "arguments_sha256": "a5".repeat(32),
                "decision": "allowed",
                "outcome": "tool-error",
                "duration_ms": 1.234,
                "result_bytes": 16,
            })
        );
    }

    #[test]
    fn a_short_line_has_room_whatever_it_is_about() {
        let bad = "\u{1}".repeat(5000);
        let mut head = head(&bad, &bad);
        head.project = Some(&bad);
        head.program = Some(&bad);
        head.server = Some(&bad);
        let line = head.short() + LOST;
        assert!(line.len() <= super::super::recover::SLOT, "{}", line.len());
        assert!(serde_json::from_str::<Value>(&line).is_ok());
    }

    #[test]
    fn the_decision_is_told_by_the_reason() {
        for (reason, let_through, told) in [
            (None, true, "allowed"),
            (Some(Reason::ServerExited), true, "allowed"),
            (Some(Reason::Denied), false, "denied"),
            (Some(Reason::Unanswered), false, "unanswered"),
            (Some(Reason::Sandboxed), false, "sandboxed"),
            (Some(Reason::RateLimited), false, "rate-limited"),
            (Some(Reason::ToolChanged), false, "tool-changed"),
            (Some(Reason::ToolNotFound), false, "none"),
        ] {
            assert_eq!(decision(reason, let_through), told);
        }
        assert_eq!(
            outcome(br#"{"content":[{"text":"\"isError\":true"}]}"#),
            "ok"
        );
        assert_eq!(outcome(br#"{"isError":false}"#), "ok");
        let questions = br#"{"resultType":"input_required"}"#;
        assert_eq!(outcome(questions), "input-required");
        assert_eq!(failed(Reason::Cancelled), "cancelled");
        assert_eq!(failed(Reason::Deadline), "DEADLINE");
    }

    #[test]
    fn dates_are_right_around_leap_days() {
        let at = |seconds| {
            let mut text = String::new();
            rfc3339(&mut text, Duration::from_secs(seconds));
            text
        };
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00.000Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00.000Z");
        assert_eq!(at(1_767_225_599), "2025-12-31T23:59:59.000Z");
    }
}
