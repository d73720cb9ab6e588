//! What a line of the audit looks like. Pure.

use super::recover;
use memchr::memmem::Finder;
use nexus_proto::{reason::Reason, time::Stamp};
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
        put(&mut to, Stamp::new(self.at).as_str());
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
    let _ = write!(to, ".{:03}", end.duration.subsec_micros() % 1000);
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
    put(&mut to, Stamp::new(at).as_str());
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

fn quote(to: &mut Vec<u8>, text: &str) {
    // It cannot fail: it is text, and goes into memory.
    let _ = serde_json::to_writer(to, text);
}

fn clip(text: &str, longest: usize) -> &str {
    &text[..text.floor_char_boundary(longest)]
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
    fn an_end_is_longer_than_one_that_is_lost() {
        let mut shortest = Vec::new();
        let end = End {
            decision: "none",
            outcome: "",
            duration: Duration::ZERO,
            result: None,
        };
        add_end(&mut shortest, end);
        assert!(shortest.len() > LOST.len().max(LOST_WAITING.len()));
    }
}
