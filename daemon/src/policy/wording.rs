//! What is asked and told, in words. Pure.

use super::{
    consent::{About, Answer},
    redact::redacted,
};
use bytes::Bytes;
use serde_json::{Value, json};
use std::time::Duration;

/// How much of arguments is shown.
const MAX_SHOWN: usize = 600;

/// Larger arguments are not looked at.
const MAX_READ: usize = 64 * 1024;

/// How many tools of a server are named.
const MAX_TOOLS: usize = 20;

/// What somebody wants to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// Who.
    pub agent: String,
    /// With which server.
    pub server: String,
    /// What the server has, if that matters.
    pub tools: Vec<String>,
    /// How: `tools/call`, `resources/read` or `prompts/get`.
    pub method: &'static str,
    /// The tool, the URI or the prompt.
    pub target: String,
    /// With what, made safe to be shown.
    pub arguments: String,
}

impl Wish {
    /// In a few words, beginning with a verb.
    fn action(&self) -> String {
        let Self { server, target, .. } = self;
        match self.method {
            "resources/read" => format!("read {target} of {server:?}"),
            "prompts/get" => format!("use the prompt {target} of {server:?}"),
            _ => format!("call {target} of {server:?}"),
        }
    }

    /// The question, for people.
    pub fn question(&self, about: About) -> String {
        let (agent, server) = (&self.agent, &self.server);
        match about {
            About::Server => {
                let mut text = format!("Let {agent} connect to the MCP server {server:?}?");
                if !self.tools.is_empty() {
                    let shown = self.tools.len().min(MAX_TOOLS);
                    let more = match self.tools.len() - shown {
                        0 => String::new(),
                        more => format!(" and {more} more"),
                    };
                    text += &format!("\nTools: {}{more}", self.tools[..shown].join(", "));
                }
                text
            }
            About::Call => {
                let mut text = format!("Let {agent} {}?", self.action());
                if !self.arguments.is_empty() {
                    text += &format!("\nArguments: {}", self.arguments);
                }
                text
            }
        }
    }

    /// The question as MCP puts it: a form with one field.
    pub fn form(&self, about: About) -> Bytes {
        let (words, names): (Vec<_>, Vec<_>) = choices(about)
            .iter()
            .map(|(word, name, _)| (*word, *name))
            .unzip();
        let form = json!({
            "mode": "form",
            "message": self.question(about),
            "requestedSchema": {
                "type": "object",
                "properties": {
                    "answer": {
                        "type": "string",
                        "title": "Answer",
                        "enum": words,
                        "enumNames": names,
                    }
                },
                "required": ["answer"],
            },
        });
        form.to_string().into()
    }

    /// Somebody said no.
    pub fn denied(&self, about: About) -> String {
        let (agent, server) = (&self.agent, &self.server);
        match about {
            About::Server => {
                format!("{agent} may not use {server:?}: somebody was asked, and said no")
            }
            About::Call => {
                format!(
                    "{agent} may not {}: somebody was asked, and said no",
                    self.action()
                )
            }
        }
    }

    /// Nobody said anything.
    pub fn unanswered(&self, about: About, waited: Duration) -> String {
        let (agent, server) = (&self.agent, &self.server);
        let what = match about {
            About::Server => format!("use {server:?}"),
            About::Call => self.action(),
        };
        format!("nobody said within {waited:?} whether {agent} may {what}, which is a no")
    }
}

/// The answers that there are: the word, what people read, and what it means.
pub(super) fn choices(about: About) -> [(&'static str, &'static str, Answer); 3] {
    match about {
        About::Server => [
            ("allow", "Allow all tools (this session)", Answer::Server),
            (
                "confirm",
                "Require confirmation for each tool",
                Answer::Once,
            ),
            ("deny", "Deny connection", Answer::Deny),
        ],
        About::Call => [
            ("once", "Allow once", Answer::Once),
            (
                "always",
                "Allow always (this server, this session)",
                Answer::Server,
            ),
            ("deny", "Deny", Answer::Deny),
        ],
    }
}

/// What a client has answered to [`Wish::form`].
pub(super) fn read_answer(about: About, result: &[u8]) -> Answer {
    let Ok(result) = serde_json::from_slice::<Value>(result) else {
        return Answer::Dismiss;
    };
    match result["action"].as_str() {
        Some("accept") => {
            let word = result["content"]["answer"].as_str().unwrap_or_default();
            let choice = choices(about).into_iter().find(|(own, ..)| *own == word);
            // Who accepts and does not say what has not said yes to anything.
            choice.map_or(Answer::Dismiss, |(_, _, answer)| answer)
        }
        Some("decline") => Answer::Deny,
        _ => Answer::Dismiss,
    }
}

/// Arguments as people may see them: on one line, without secrets and what a terminal would act on, and not too long.
pub(super) fn shown(arguments: &[u8]) -> String {
    if arguments.is_empty() || arguments == b"{}" {
        return String::new();
    }
    match redacted(arguments, &[], MAX_READ) {
        Some(text) => plain(&text),
        None if arguments.len() > MAX_READ => format!("{} bytes", arguments.len()),
        None => plain(&String::from_utf8_lossy(arguments)),
    }
}

/// On one line, with whatever is not plain spelt out, and not too long.
pub(super) fn plain(text: &str) -> String {
    let mut spelt = text.chars().flat_map(|c| match c {
        ' '..='~' => vec![c],
        c if c.is_alphanumeric() => vec![c],
        c => c.escape_unicode().collect(),
    });
    let mut shown: String = spelt.by_ref().take(MAX_SHOWN).collect();
    if spelt.next().is_some() {
        shown += " …";
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish() -> Wish {
        Wish {
            agent: "claude-code".into(),
            server: "postgres".into(),
            tools: vec!["query".into(), "execute".into()],
            method: "tools/call",
            target: "query".into(),
            arguments: shown(br#"{"sql":"SELECT 1"}"#),
        }
    }

    #[test]
    fn a_question_says_who_wants_what() {
        let wish = wish();
        assert_eq!(
            wish.question(About::Server),
            "Let claude-code connect to the MCP server \"postgres\"?\nTools: query, execute"
        );
        assert_eq!(
            wish.question(About::Call),
            "Let claude-code call query of \"postgres\"?\nArguments: {\"sql\":\"SELECT 1\"}"
        );
    }

    #[test]
    fn an_answer_counts_only_where_it_is_clear() {
        let read = |about, text: &str| read_answer(about, text.as_bytes());
        let accept =
            |word: &str| format!(r#"{{"action":"accept","content":{{"answer":"{word}"}}}}"#);
        for about in [About::Server, About::Call] {
            for (word, _, answer) in choices(about) {
                assert_eq!(read(about, &accept(word)), answer);
            }
            assert_eq!(read(about, r#"{"action":"decline"}"#), Answer::Deny);
            for unclear in [
                r#"{"action":"cancel"}"#,
                r#"{"action":"accept"}"#,
                "{}",
                "[",
                &accept("yes"),
            ] {
                assert_eq!(read(about, unclear), Answer::Dismiss, "{unclear}");
            }
        }
    }

    #[test]
    fn arguments_are_shown_without_secrets_and_without_tricks() {
        assert_eq!(shown(b"{}"), "");
        assert_eq!(
            shown(
                "{\"password\":\"hunter2\",\"a\":{\"t\":\"ghp_0123456789abcdefghij\"},\"n\":1}"
                    .as_bytes()
            ),
            r#"{"password":"***","a":{"t":"***"},"n":1}"#
        );
        let text = shown("{\"x\":\"\\u001b[2J\u{202e}caf\u{e9}\"}".as_bytes());
        assert_eq!(text, "{\"x\":\"\\u001b[2J\\u{202e}caf\u{e9}\"}");
        let long = format!("{{\"x\":\"{}\"}}", "y".repeat(5000));
        assert!(shown(long.as_bytes()).len() < 700 && shown(long.as_bytes()).ends_with(" …"));
        assert_eq!(shown(&vec![b'x'; 70_000]), "70000 bytes");
        assert_eq!(shown(br#"{"token":1234}"#), r#"{"token":"***"}"#);
        // What is cut says so, also where it takes more room than it had.
        let tricky = format!("{{\"a\":\"{}\",\"b\":\"rm -rf\"}}", "\u{202e}".repeat(150));
        assert!(shown(tricky.as_bytes()).ends_with(" …"));
    }
}
