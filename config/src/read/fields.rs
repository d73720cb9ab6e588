//! The values of a server's keys, and what is wrong with them. Pure.

use super::Dialect;
use crate::{
    diagnosis::Diagnosis,
    model::{Setting, Text},
    nearest::nearest,
    node::{Entry, Node, Value},
    policy::Rate,
    source::Source,
};
use std::{
    net::{Ipv4Addr, SocketAddr},
    ops::RangeInclusive,
    sync::Arc,
    time::Duration,
};

/// No time is longer: what is meant by it is "never".
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

/// Nobody waits that many seconds for anything: these are milliseconds.
const SURELY_MILLISECONDS: f64 = 3600.0;

pub(super) struct Fields<'a> {
    pub(super) source: &'a Arc<Source>,
    pub(super) dialect: Dialect,
    pub(super) diagnoses: Vec<Diagnosis>,
    server: String,
}

impl<'a> Fields<'a> {
    pub(super) fn new(source: &'a Arc<Source>, server: &str, dialect: Dialect) -> Self {
        Self {
            source,
            dialect,
            server: server.to_owned(),
            diagnoses: Vec::new(),
        }
    }

    pub(super) fn tell(&mut self, diagnosis: Diagnosis) {
        let diagnosis = diagnosis.in_file(self.source);
        self.diagnoses.push(match self.server.as_str() {
            "" => diagnosis,
            server => diagnosis.of_server(server),
        });
    }

    /// It is not what it should be.
    pub(super) fn wrong(&mut self, key: &str, node: &Node, expected: &str, example: &str) {
        self.tell(
            Diagnosis::error("config::type", format!("{key:?} must be {expected}"))
                .at(
                    super::head(self.source, &node.span),
                    format!("this is {}", node.kind()),
                )
                .fix(format!("write {example}")),
        );
    }

    pub(super) fn bool(&mut self, entry: &Entry) -> Option<bool> {
        match &entry.node.value {
            Value::Bool(yes) => Some(*yes),
            Value::Text(text) if text.eq_ignore_ascii_case("true") => Some(true),
            Value::Text(text) if text.eq_ignore_ascii_case("false") => Some(false),
            Value::Null => None,
            _ => {
                let example = format!("\"{}\": true", entry.key);
                self.wrong(&entry.key, &entry.node, "true or false", &example);
                None
            }
        }
    }

    /// Text, or what stands for itself.
    fn text_of(node: &Node) -> Option<Text> {
        let raw = match &node.value {
            Value::Text(text) | Value::Number(text) => text.clone(),
            Value::Bool(yes) => yes.to_string(),
            Value::Null | Value::List(_) | Value::Map(_) => return None,
        };
        Some(Text {
            raw,
            span: node.span.clone(),
        })
    }

    pub(super) fn text(&mut self, entry: &Entry) -> Option<Text> {
        if entry.node.value == Value::Null {
            return None;
        }
        let text = Self::text_of(&entry.node).map(|text| self.in_our_words(text));
        if text.is_none() {
            let example = format!("\"{}\": \"…\"", entry.key);
            self.wrong(&entry.key, &entry.node, "text", &example);
        }
        text
    }

    /// A list of text, or one text that is a list of one.
    pub(super) fn texts(&mut self, entry: &Entry) -> Vec<Text> {
        self.texts_of(&entry.key, &entry.node)
    }

    pub(super) fn texts_of(&mut self, key: &str, node: &Node) -> Vec<Text> {
        let nodes = match &node.value {
            Value::List(nodes) => nodes.as_slice(),
            Value::Null => &[],
            Value::Map(_) => {
                self.wrong(
                    key,
                    node,
                    "a list of text",
                    &format!("\"{key}\": [\"…\", \"…\"]"),
                );
                &[]
            }
            _ => std::slice::from_ref(node),
        };
        let mut texts = Vec::new();
        for node in nodes {
            match Self::text_of(node).map(|text| self.in_our_words(text)) {
                Some(text) => texts.push(text),
                None => self.wrong(
                    key,
                    node,
                    "a list of text",
                    &format!("\"{key}\": [\"…\", \"…\"]"),
                ),
            }
        }
        texts
    }

    pub(super) fn names(&mut self, entry: &Entry) -> Vec<String> {
        self.texts(entry).into_iter().map(|text| text.raw).collect()
    }

    /// Names and values: a map, or a list of `NAME=value`.
    pub(super) fn settings(&mut self, entry: &Entry) -> Vec<(String, Setting)> {
        let mut settings = Vec::new();
        match &entry.node.value {
            Value::Null => {}
            Value::Map(entries) => {
                for inner in entries {
                    if let Some(setting) = self.setting(inner) {
                        settings.push((inner.key.clone(), setting));
                    }
                }
            }
            Value::List(nodes) => {
                for node in nodes {
                    match Self::text_of(node).and_then(|text| split(&text)) {
                        Some((name, text)) => {
                            settings.push((name, Setting::Text(self.in_our_words(text))))
                        }
                        None => self.wrong(
                            &entry.key,
                            node,
                            "a map, or a list of NAME=value",
                            &format!("\"{}\": {{\"NAME\": \"value\"}}", entry.key),
                        ),
                    }
                }
            }
            _ => {
                let example = format!("\"{}\": {{\"NAME\": \"value\"}}", entry.key);
                self.wrong(
                    &entry.key,
                    &entry.node,
                    "a map of names and values",
                    &example,
                );
            }
        }
        settings
    }

    pub(super) fn setting(&mut self, entry: &Entry) -> Option<Setting> {
        let node = &entry.node;
        if node.value == Value::Null {
            return None;
        }
        if let Some(text) = Self::text_of(node) {
            return Some(Setting::Text(self.in_our_words(text)));
        }
        if let Some(file) = node.get("file").and_then(Self::text_of) {
            return Some(Setting::File(file));
        }
        if let Some(entry) = node.get("keyring").and_then(Self::text_of) {
            return Some(Setting::Keyring(entry));
        }
        if let Some(command) = node.get("cmd").or_else(|| node.get("command")) {
            let argv = match command.text().and_then(shlex::split) {
                Some(words) => words
                    .into_iter()
                    .map(|raw| Text {
                        raw,
                        span: command.span.clone(),
                    })
                    .collect(),
                None => self.texts_of("cmd", command),
            };
            if !argv.is_empty() {
                return Some(Setting::Command(argv));
            }
        }
        self.wrong(
            &entry.key,
            node,
            "text, {\"file\": PATH}, {\"cmd\": [PROGRAM, …]} or {\"keyring\": \"SERVICE/NAME\"}",
            &format!("\"{}\": \"…\"", entry.key),
        );
        None
    }

    /// Another program's way to write a variable, in ours.
    fn in_our_words(&self, text: Text) -> Text {
        if !self.dialect.bare_variables {
            return text;
        }
        Text {
            raw: crate::expand::embrace(&text.raw),
            span: text.span,
        }
    }

    pub(super) fn count(&mut self, entry: &Entry, range: RangeInclusive<usize>) -> Option<usize> {
        let number = match &entry.node.value {
            Value::Null => return None,
            Value::Number(text) | Value::Text(text) => text.parse().ok(),
            _ => None,
        };
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            let expected = match *range.end() {
                usize::MAX => format!("a whole number, {} or more", range.start()),
                end => format!("a whole number from {} to {end}", range.start()),
            };
            let example = format!("\"{}\": {}", entry.key, (*range.start()).max(1));
            self.wrong(&entry.key, &entry.node, &expected, &example);
        }
        number
    }

    /// An address of this machine alone, with a port; a port alone is one too.
    pub(super) fn address(&mut self, entry: &Entry) -> Option<SocketAddr> {
        let address = match &entry.node.value {
            Value::Null => return None,
            Value::Number(text) | Value::Text(text) => {
                let port = text.parse().ok();
                let local = port.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
                local.or_else(|| text.parse().ok())
            }
            _ => None,
        };
        let address = address.filter(|address| address.ip().is_loopback());
        if address.is_none() {
            let expected = "an address of this machine alone, with a port";
            let example = format!("\"{}\": \"127.0.0.1:7420\"", entry.key);
            self.wrong(&entry.key, &entry.node, expected, &example);
        }
        address
    }

    pub(super) fn time(&mut self, entry: &Entry, zero: bool) -> Option<Duration> {
        self.time_of(&entry.key, &entry.node, zero)
    }

    /// Seconds, or with a unit. Zero where it means something.
    pub(super) fn time_of(&mut self, key: &str, node: &Node, zero: bool) -> Option<Duration> {
        let seconds = match &node.value {
            Value::Null => return None,
            Value::Number(number) => number.parse::<f64>().ok().map(|number| {
                if self.dialect.milliseconds {
                    return number / 1000.0;
                }
                if number <= SURELY_MILLISECONDS {
                    return number;
                }
                let better = format!("\"{key}\": \"{number}ms\"");
                self.tell(
                    Diagnosis::warning(
                        "config::unit",
                        format!("{key:?} is taken to be in milliseconds"),
                    )
                    .at(node.span.clone(), "nobody waits that many seconds")
                    .fix(format!("write {better}, or \"{key}\": {}", number / 1000.0)),
                );
                number / 1000.0
            }),
            Value::Text(text) => seconds(text),
            _ => None,
        };
        let time = seconds
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .filter(|time| zero || !time.is_zero());
        if time.is_none() {
            self.wrong(
                key,
                node,
                "a time",
                &format!("\"{key}\": 30 (seconds), or \"{key}\": \"500ms\""),
            );
        }
        time.map(|time| time.min(LONGEST))
    }

    /// A number of bytes, or with a unit.
    pub(super) fn size(&mut self, entry: &Entry) -> Option<usize> {
        let size = match &entry.node.value {
            Value::Null => return None,
            Value::Number(text) | Value::Text(text) => bytes(text),
            _ => None,
        };
        if size.is_none() {
            let example = format!("\"{}\": \"10MB\"", entry.key);
            self.wrong(&entry.key, &entry.node, "a size", &example);
        }
        size
    }

    /// How often something may be done.
    pub(super) fn rate(&mut self, entry: &Entry) -> Option<Rate> {
        if entry.node.value == Value::Null {
            return None;
        }
        let rate = entry.node.text().and_then(Rate::parse);
        if rate.is_none() {
            let example = format!("\"{}\": \"10/s\", or \"60/min burst 10\"", entry.key);
            self.wrong(&entry.key, &entry.node, "a rate", &example);
        }
        rate
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(
        &mut self,
        entry: &Entry,
        all: &[T],
        as_str: fn(T) -> &'static str,
    ) -> Option<T> {
        if entry.node.value == Value::Null {
            return None;
        }
        let words: Vec<&str> = all.iter().map(|one| as_str(*one)).collect();
        let plain = |word: &str| word.to_lowercase().replace('_', "-");
        let written = Self::text_of(&entry.node).map(|text| plain(&text.raw));
        let found = all
            .iter()
            .find(|one| written.as_deref() == Some(as_str(**one)));
        if found.is_none() {
            let near = written
                .as_deref()
                .and_then(|written| nearest(written, words.iter().copied()));
            let expected = format!("one of {}", words.join(", "));
            let example = format!("\"{}\": {:?}", entry.key, near.unwrap_or(words[0]));
            self.wrong(&entry.key, &entry.node, &expected, &example);
        }
        found.copied()
    }
}

fn split(text: &Text) -> Option<(String, Text)> {
    let (name, value) = text.raw.split_once('=')?;
    let text = Text {
        raw: value.to_owned(),
        span: text.span.clone(),
    };
    (!name.is_empty()).then(|| (name.to_owned(), text))
}

/// `30`, `30s`, `500ms`, `2m`, `1h`.
fn seconds(text: &str) -> Option<f64> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: f64 = digits.trim().parse().ok()?;
    let unit = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "ms" | "milliseconds" => 0.001,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3600.0,
        _ => return None,
    };
    Some(number * unit)
}

/// `1000000`, `512KB`, `10MB`, `10MiB`, `1G`.
fn bytes(text: &str) -> Option<usize> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: usize = digits.trim().parse().ok()?;
    let unit = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "kib" => 1 << 10,
        "m" | "mb" => 1_000_000,
        "mib" => 1 << 20,
        "g" | "gb" => 1_000_000_000,
        "gib" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(unit).filter(|size| *size > 0)
}
