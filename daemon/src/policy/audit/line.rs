//! What a line of the audit looks like. Pure.

use super::recover;
use memchr::memmem::Finder;
use nexus_proto::reason::Reason;
use serde::Deserialize;
use std::{borrow::Cow, fmt, io::Write as _, sync::LazyLock, time::Duration};

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
    pub(super) fn text(&self) -> Vec<u8> {
        self.written(MAX_TEXT)
    }

    /// The same, if there is little room.
    pub(super) fn short(&self) -> Vec<u8> {
        self.written(SHORT)
    }

    fn written(&self, longest: usize) -> Vec<u8> {
        let mut to = Vec::with_capacity(recover::SLOT);
        put(&mut to, "{\"id\":\"");
        let _ = write!(to, "{}", self.id);
        put(&mut to, "\",\"at\":\"");
        rfc3339(&mut to, self.at);
        put(&mut to, "\",\"agent\":{\"id\":");
        number(&mut to, self.agent);
        let text = |to: &mut Vec<u8>, key: &str, text: &str| {
            put(to, key);
            quote(to, clip(text, longest));
        };
        text(&mut to, ",\"name\":", self.name);
        if let Some(program) = self.program {
            text(&mut to, ",\"program\":", program);
        }
        if let Some(project) = self.project {
            text(&mut to, ",\"project\":", project);
        }
        if let Some(pid) = self.pid {
            put(&mut to, ",\"pid\":");
            number(&mut to, pid.into());
        }
        put(&mut to, "},\"method\":\"");
        put(&mut to, self.method);
        put(&mut to, "\"");
        if let Some(server) = self.server {
            text(&mut to, ",\"server\":", server);
        }
        let kind = match self.method {
            "resources/read" => ",\"uri\":",
            "prompts/get" => ",\"prompt\":",
            _ => ",\"tool\":",
        };
        text(&mut to, kind, self.target);
        if let Some((size, hash)) = self.arguments {
            put(&mut to, ",\"arguments_bytes\":");
            number(&mut to, size as u64);
            if let Some(hash) = hash {
                add_hash(&mut to, &hash);
            }
        }
        to
    }
}

/// Adds the hash of the arguments.
pub(super) fn add_hash(to: &mut Vec<u8>, hash: &[u8; 32]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    put(to, ",\"arguments_sha256\":\"");
    for byte in hash {
        let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
        to.extend_from_slice(&[DIGITS[high], DIGITS[low]]);
    }
    to.push(b'"');
}

/// Ends a line.
pub(super) fn add_end(to: &mut Vec<u8>, end: End) {
    put(to, ",\"decision\":\"");
    put(to, end.decision);
    put(to, "\",\"outcome\":\"");
    put(to, end.outcome);
    put(to, "\",\"duration_ms\":");
    number(
        to,
        u64::try_from(end.duration.as_millis()).unwrap_or(u64::MAX),
    );
    put(to, ".");
    digits::<3>(to, u64::from(end.duration.subsec_micros() % 1000));
    if let Some(size) = end.result {
        put(to, ",\"result_bytes\":");
        number(to, size as u64);
    }
    put(to, "}\n");
}

/// Ends the line of a call of which nobody knows what became of it.
pub(super) const LOST: &[u8] = b",\"decision\":\"allowed\",\"outcome\":\"lost\"}\n";

/// The same of one that was not even let through yet.
pub(super) const LOST_WAITING: &[u8] = b",\"decision\":\"none\",\"outcome\":\"lost\"}\n";

/// A line that says that others are missing.
pub(super) fn missing(id: Id, at: Duration, count: u64) -> Vec<u8> {
    let mut to = format!("{{\"id\":\"{id}\",\"at\":\"").into_bytes();
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
    static IS_ERROR: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"isError\""));
    static QUESTION: LazyLock<Finder<'static>> =
        LazyLock::new(|| Finder::new("\"input_required\""));
    if IS_ERROR.find(result).is_none() && QUESTION.find(result).is_none() {
        return "ok";
    }
    match serde_json::from_slice::<Says<'_>>(result) {
        Ok(says) if says.is_error => "tool-error",
        Ok(says) if says.result_type == "input_required" => "input-required",
        _ => "ok",
    }
}

fn put(to: &mut Vec<u8>, text: &str) {
    to.extend_from_slice(text.as_bytes());
}

fn number(to: &mut Vec<u8>, number: u64) {
    // It cannot fail: it goes into memory.
    let _ = serde_json::to_writer(to, &number);
}

/// So many digits of a number, with zeros in front. `write!` would take longer than all else of a line.
fn digits<const N: usize>(to: &mut Vec<u8>, mut number: u64) {
    let mut text = [b'0'; N];
    for digit in text.iter_mut().rev() {
        *digit += (number % 10) as u8;
        number /= 10;
    }
    to.extend_from_slice(&text);
}

fn quote(to: &mut Vec<u8>, text: &str) {
    // It cannot fail: it is text, and goes into memory.
    let _ = serde_json::to_writer(to, text);
}

fn clip(text: &str, longest: usize) -> &str {
    &text[..text.floor_char_boundary(longest)]
}

/// `2026-07-28T09:05:00.123Z`: always as long, so that lines can be compared as text.
fn rfc3339(to: &mut Vec<u8>, since_1970: Duration) {
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
    digits::<4>(to, year);
    for (before, part) in [("-", month), ("-", day), ("T", h), (":", m), (":", s)] {
        put(to, before);
        digits::<2>(to, part);
    }
    put(to, ".");
    digits::<3>(to, since_1970.subsec_millis().into());
    put(to, "Z");
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
        assert!(line.ends_with(b"}\n") && line.starts_with(b"{\"id\":\"abc-7\","));
        let line: Value = serde_json::from_slice(&line).unwrap();
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
        let line = [&head.short()[..], LOST].concat();
        assert!(line.len() <= recover::SLOT, "{}", line.len());
        assert!(serde_json::from_slice::<Value>(&line).is_ok());
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
            let mut text = Vec::new();
            rfc3339(&mut text, Duration::from_secs(seconds));
            String::from_utf8(text).unwrap()
        };
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00.000Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00.000Z");
        assert_eq!(at(1_767_225_599), "2025-12-31T23:59:59.000Z");
    }
}
