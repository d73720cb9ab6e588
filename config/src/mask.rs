//! Hides what may be a secret in a text that is shown. Pure.
//!
//! It works on any text, also one that cannot be parsed, and leaves every byte where it is: whoever points
//! at a place in the text points at the same place in what is shown.

use crate::keys;

/// Words in the names of what is secret.
const SECRET_WORDS: &[&str] = &[
    "token",
    "secret",
    "passw",
    "apikey",
    "api_key",
    "api-key",
    "auth",
    "credential",
    "private",
];

/// How well-known tokens begin.
const PREFIXES: &[&str] = &[
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "sk-",
    "pk_",
    "rk_",
    "xox",
    "AKIA",
    "ASIA",
    "AIza",
    "eyJ",
    "npm_",
    "hf_",
    "Bearer ",
    "Basic ",
    "-----BEGIN",
];

/// The text, with stars instead of what may be a secret.
pub fn mask(text: &str) -> String {
    let mut masked = Masked {
        text,
        out: String::with_capacity(text.len()),
        key: String::new(),
        before: String::new(),
        quoted_to: usize::MAX,
        hidden_to: None,
    };
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        at = match c {
            '"' | '\'' => masked.quoted(at, c),
            '\n' | '\r' | ' ' | '\t' | ',' | '[' | ']' | '{' | '}' | ':' | '=' => {
                masked.out.push(c);
                at + c.len_utf8()
            }
            _ => masked.word(at),
        };
    }
    masked.out
}

struct Masked<'a> {
    text: &'a str,
    out: String,
    /// The name that stands before.
    key: String,
    /// The value that stands before.
    before: String,
    /// Where the last text in quotes ended.
    quoted_to: usize,
    /// Where the last one ended that was hidden.
    hidden_to: Option<usize>,
}

impl Masked<'_> {
    fn quoted(&mut self, at: usize, quote: char) -> usize {
        let inner = at + 1;
        let rest = &self.text[inner..];
        let mut end = rest.len();
        let mut closed = false;
        let mut escaped = false;
        for (index, c) in rest.char_indices() {
            match c {
                '\n' => {
                    end = index;
                    break;
                }
                _ if escaped => escaped = false,
                '\\' if quote == '"' => escaped = true,
                c if c == quote => {
                    end = index;
                    closed = true;
                    break;
                }
                _ => {}
            }
        }
        let content = &rest[..end];
        let after = inner + end + usize::from(closed);
        self.out.push(quote);
        self.token(content, at, after, closed);
        if closed {
            self.out.push(quote);
        }
        self.quoted_to = after;
        after
    }

    fn word(&mut self, at: usize) -> usize {
        let rest = &self.text[at..];
        let stop = |c: char| {
            c.is_whitespace() || matches!(c, ',' | '[' | ']' | '{' | '}' | '"' | '\'' | '=')
        };
        let mut end = rest.find(stop).unwrap_or(rest.len());
        // `NAME:` is a name; `http://…` is not.
        if let Some(word) = rest[..end].strip_suffix(':') {
            end = word.len();
        }
        let end = end.max(rest.chars().next().map_or(1, char::len_utf8));
        self.token(&rest[..end], at, at + end, true);
        at + end
    }

    /// A name, or a value.
    fn token(&mut self, content: &str, at: usize, after: usize, closed: bool) {
        let follows = self.text[after..].trim_start_matches([' ', '\t']);
        let is_key = closed
            && at != self.quoted_to
            && (follows.starts_with(':') || follows.starts_with('='));
        if is_key && !looks_secret(content) {
            content.clone_into(&mut self.key);
            self.before.clear();
            self.out.push_str(content);
            return;
        }
        // What has no end may be anything; and what follows it at once is more of it.
        let goes_on = |end: usize| !self.text[end..at].contains([' ', '\t', '\n']);
        let is_more = at == self.quoted_to || self.hidden_to.is_some_and(goes_on);
        if closed
            && (is_harmless(content) || !is_more)
            && is_shown(&self.key, &self.before, content)
        {
            self.out.push_str(content);
        } else {
            self.hidden_to = Some(after);
            self.out.extend(
                content
                    .bytes()
                    .map(|byte| if byte == b'\t' { '\t' } else { '*' }),
            );
        }
        // Where a quote is missing, what stands between two values looks like one.
        if content.contains(|c: char| c.is_ascii_alphanumeric()) {
            content.clone_into(&mut self.before);
        }
    }
}

/// Whether a value may be shown that stands under this name, after that other value.
fn is_shown(key: &str, before: &str, value: &str) -> bool {
    if is_harmless(value) {
        return true;
    }
    let harmless_key = match keys::find(key).map(|key| key.name) {
        Some(
            "env" | "headers" | "env_http_headers" | "request_options" | "bearer_token" | "tls",
        ) => false,
        Some(_) => true,
        None => key.is_empty() || keys::ROOTS.contains(&key),
    };
    harmless_key && !hides_argument(before, value)
}

/// Whether an argument that stands after another may be a secret.
pub fn hides_argument(before: &str, value: &str) -> bool {
    if is_harmless(value) {
        return false;
    }
    if before.starts_with('-')
        && !before.contains('=')
        && names_secret(before)
        && !value.starts_with('-')
    {
        return true;
    }
    if let Some((name, value)) = value.split_once('=')
        && names_secret(name)
        && !is_harmless(value)
    {
        return true;
    }
    looks_secret(value)
}

/// Whether the name of a variable or an option is that of a secret.
pub fn names_secret(name: &str) -> bool {
    let name = name.to_lowercase();
    SECRET_WORDS.iter().any(|word| name.contains(word))
        || name.ends_with("key")
        || name.ends_with("pat")
}

/// Whether a value looks like a key, a token, or an address with one.
pub fn looks_secret(value: &str) -> bool {
    if PREFIXES.iter().any(|prefix| value.starts_with(prefix)) {
        return true;
    }
    // user:password@host, and what is asked for in a query
    if let Some((_, rest)) = value.split_once("://") {
        let host = rest.split('/').next().unwrap_or_default();
        let is_port = |(_, port): (&str, &str)| port.chars().all(|c| c.is_ascii_digit());
        return host.contains('@')
            || rest.contains('?')
            || !host.split_once(':').is_none_or(is_port);
    }
    let is_random = |part: &str| {
        let has = |is: fn(&char) -> bool| part.chars().filter(is).count();
        part.len() >= 16 && has(char::is_ascii_digit) >= 3 && has(char::is_ascii_alphabetic) >= 3
    };
    value
        .split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '+' | '=')))
        .any(is_random)
}

/// Whether what stands between brackets as a name is rather what the name was meant to stand for. The names of
/// variables have no small letters, as a rule.
pub fn is_no_name(name: &str) -> bool {
    name.contains(|c: char| c.is_ascii_lowercase()) && looks_secret(name)
}

/// Whether a value only says where a secret is. What a program is asked may be one itself.
pub fn is_reference(value: &str) -> bool {
    let inner = value.strip_prefix("${").and_then(|v| v.strip_suffix('}'));
    inner.is_some_and(|inner| {
        !inner.contains(":-")
            && !inner.contains(['$', '{'])
            && !inner.starts_with("cmd:")
            && (inner.contains(':') || !is_no_name(inner))
    })
}

fn is_harmless(value: &str) -> bool {
    let is_number = value.len() <= 5 && value.parse::<f64>().is_ok();
    is_reference(value)
        || is_number
        || value.len() <= 1
        || matches!(
            value,
            "true" | "false" | "null" | "//" | "/*" | "*/" | "---"
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CANARY: &str = "cAnArY1234567890abcdef";

    #[test]
    fn what_may_be_secret_is_hidden_in_every_format() {
        for text in [
            format!(r#"{{"env": {{"A": "{CANARY}"}}"#),
            format!(r#"{{"env": {{"A": "{CANARY}"#),
            format!("env:\n  A: {CANARY}\n  B: '{CANARY}'"),
            format!("[mcp_servers.x.env]\nA = \"{CANARY}\""),
            format!("[mcp_servers.x]\nenv = {{ A = \"{CANARY}\" }}"),
            format!(r#"{{"headers": {{"Authorization": "Bearer {CANARY}"}}}}"#),
            format!(r#"{{"args": ["--api-key", "{CANARY}", "--token={CANARY}"]}}"#),
            format!(r#"{{"url": "https://x.example/mcp?key={CANARY}"}}"#),
            format!(r#"{{"url": "https://u:{CANARY}@x.example/mcp"}}"#),
            format!(r#"{{"args": ["--password", "hunter2"], "x": "{CANARY}"}}"#),
            format!(r#"{{"env": {{"A": "${{{CANARY}}}"}}}}"#),
        ] {
            let masked = mask(&text);
            assert!(
                !masked.contains(CANARY) && !masked.contains("hunter2"),
                "{masked}"
            );
            assert_eq!(masked.len(), text.len());
        }
    }

    #[test]
    fn what_helps_to_see_the_mistake_is_shown() {
        for text in [
            r#"  { "name": "test" "command": ["echo", "-y", "@scope/server-x"] }"#,
            r#""mcpServers": { "a": { "type": "stdio", "disabled": true, "timeout": 30 } }"#,
            r#""env": { "A": "${A}" }"#,
            "command: npx",
        ] {
            assert_eq!(mask(text), text);
        }
    }

    proptest! {
        #[test]
        fn every_byte_stays_where_it_is(text in "([a-z]|\"|'|\\\\|:|=|\n|\\{|\\}|é| |,|#|/)*") {
            let masked = mask(&text);
            prop_assert_eq!(masked.len(), text.len());
            let ends = |text: &str| text.match_indices('\n').map(|(at, _)| at).collect::<Vec<_>>();
            prop_assert_eq!(ends(&masked), ends(&text));
        }
    }
}
