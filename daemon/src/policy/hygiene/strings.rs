//! Cleans the strings in JSON text, and touches nothing else of it: neither numbers nor order. Pure.

use nexus_proto::text;
use std::{borrow::Cow, fmt::Write as _};

/// Members whose text is meant to be read, and may not be endless.
const PROSE: [&str; 3] = ["\"description\"", "\"title\"", "\"name\""];

/// The same JSON without anything hostile in its strings, and no prose longer than `max` bytes. `None` where there is
/// nothing to mend.
///
/// Names of members are not mended but spelt out: else one could become another that is there already.
pub(super) fn cleaned(json: &str, max: usize) -> Option<String> {
    if json.len() <= max && !is_suspect(json) {
        return None;
    }
    let bytes = json.as_bytes();
    let mut out = String::new();
    let (mut at, mut copied) = (0, 0);
    let mut member = None;
    while let Some(byte) = bytes.get(at) {
        if *byte != b'"' {
            // Between the name of a member and its value stands nothing else.
            if !(byte.is_ascii_whitespace() || *byte == b':') {
                member = None;
            }
            at += 1;
            continue;
        }
        let end = end_of_string(bytes, at)?;
        let raw = &json[at..end];
        let is_name = json[end..].trim_ascii_start().starts_with(':');
        let written = match is_name {
            true => named(raw),
            false => value(raw, member.take(), max),
        };
        if let Some(written) = written {
            out.push_str(&json[copied..at]);
            out.push_str(&written);
            copied = end;
        }
        if is_name {
            member = Some(raw);
        }
        at = end;
    }
    if copied == 0 {
        return None;
    }
    out.push_str(&json[copied..]);
    Some(out)
}

/// Whether there may be something in it: what is in plain ASCII, without escapes, has nothing.
fn is_suspect(json: &str) -> bool {
    let bytes = json.as_bytes();
    if !json.is_ascii() || memchr::memchr(0x7f, bytes).is_some() {
        return true;
    }
    // What follows a backslash is looked at and passed over, so that `\\u` is not taken for an escape.
    let mut at = 0;
    while let Some(next) = memchr::memchr(b'\\', &bytes[at..]) {
        if matches!(bytes.get(at + next + 1), Some(b'u' | b'b' | b'f' | b'r')) {
            return true;
        }
        at = bytes.len().min(at + next + 2);
    }
    false
}

/// Behind the closing quote of the string that begins there.
fn end_of_string(bytes: &[u8], begin: usize) -> Option<usize> {
    let mut at = begin + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

fn named(raw: &str) -> Option<String> {
    if !is_suspect(raw) {
        return None;
    }
    let text = read(raw);
    match text::reveal(&text) {
        Cow::Owned(shown) => Some(written(&shown)),
        Cow::Borrowed(_) => None,
    }
}

fn value(raw: &str, member: Option<&str>, max: usize) -> Option<String> {
    let is_prose = member.is_some_and(|member| PROSE.contains(&member));
    let is_long = is_prose && raw.len() > max;
    if !is_long && !is_suspect(raw) {
        return None;
    }
    let text = read(raw);
    let clean = match member {
        // It matches what it did before.
        Some("\"pattern\"") if !text::is_clean(&text) => Cow::Owned(escaped_pattern(&text)),
        _ => text::clean(&text),
    };
    if is_long && clean.len() > max {
        let end = clean.floor_char_boundary(max - '…'.len_utf8());
        return Some(written(&format!("{}…", &clean[..end])));
    }
    match clean {
        Cow::Owned(clean) => Some(written(&clean)),
        Cow::Borrowed(_) => None,
    }
}

/// The hostile characters of a regular expression, as it can spell them itself.
fn escaped_pattern(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        if text::is_clean(c.encode_utf8(&mut [0; 4])) {
            pattern.push(c);
        } else if u32::from(c) <= 0xffff {
            let _ = write!(pattern, "\\u{:04x}", u32::from(c));
        } else {
            let _ = write!(pattern, "\\u{{{:x}}}", u32::from(c));
        }
    }
    pattern
}

fn written(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// What a string says. Halves of characters, which JSON can write and nothing can show, are left out.
fn read(raw: &str) -> String {
    if let Ok(text) = serde_json::from_str(raw) {
        return text;
    }
    let mut whole = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        whole.push_str(before);
        let half = escape.get(2..4).map(str::to_ascii_lowercase);
        let is_half = escape.starts_with("\\u")
            && half.is_some_and(|half| ("d8".."e0").contains(&half.as_str()));
        let end = if is_half { 6 } else { 2 };
        let end = escape.ceil_char_boundary(end.min(escape.len()));
        if !is_half {
            whole.push_str(&escape[..end]);
        }
        rest = &escape[end..];
    }
    whole.push_str(rest);
    serde_json::from_str(&whole).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    #[test]
    fn what_is_clean_is_not_written_anew() {
        for json in [
            r#"{"name":"a","x":[1.50, 1e400],"d":"tab\tline\nquote\"slash\\u001b"}"#,
            r#"{"name":"größe","d":"\u00fc 👩‍💻 ❤️","p":"[\\u0000-\\u001f]"}"#,
            r#"{"d":"one\r\ntwo"}"#,
        ] {
            assert_eq!(cleaned(json, 1000), None, "{json}");
        }
    }

    #[test]
    fn only_the_string_that_has_it_is_written_anew() {
        let hostile = "{ \"n\":1.50, \"d\":\"a\\u001b[31mb\\u202e\",\"e\" : [\"\u{200b}x\", 12345678901234567890123] }";
        let clean = "{ \"n\":1.50, \"d\":\"ab\",\"e\" : [\"x\", 12345678901234567890123] }";
        assert_eq!(cleaned(hostile, 1000).as_deref(), Some(clean));
    }

    #[test]
    fn a_member_does_not_become_another() {
        let json = "{\"name\":\"good\",\"na\\u200bme\":\"evil\"}";
        let clean: Value = serde_json::from_str(&cleaned(json, 1000).unwrap()).unwrap();
        assert_eq!(clean, json!({"name": "good", "na\\u{200b}me": "evil"}));
    }

    #[test]
    fn a_pattern_matches_what_it_did() {
        let json = r#"{"pattern":"^[^\u0000-\u001f]*$","x":{"pattern":{"type":"\u0007"}}}"#;
        let clean: Value = serde_json::from_str(&cleaned(json, 1000).unwrap()).unwrap();
        assert_eq!(clean["pattern"], "^[^\\u0000-\\u001f]*$");
        assert_eq!(clean["x"]["pattern"]["type"], "");
    }

    #[test]
    fn prose_is_shortened_and_nothing_else() {
        let long = "é".repeat(600);
        let json = json!({"description": long, "default": long}).to_string();
        let clean: Value = serde_json::from_str(&cleaned(&json, 1000).unwrap()).unwrap();
        let description = clean["description"].as_str().unwrap();
        assert!(description.len() <= 1000 && description.ends_with('…'));
        assert_eq!(clean["default"], json!(long));
    }

    #[test]
    fn halves_of_characters_hide_nothing() {
        let json = r#"{"d":"\ud800\u001b[2Ja\udfffb\\"}"#;
        assert_eq!(cleaned(json, 1000).unwrap(), r#"{"d":"ab\\"}"#);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let text =
            "([a-z \"\\\\\n]|[\u{200b}-\u{200f}\u{1b}\u{7f}\u{85}\u{202e}❤👩\u{fe0f}]|\\PC){0,12}";
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i64>().prop_map(Value::from),
            text.prop_map(Value::from)
        ];
        leaf.prop_recursive(4, 32, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(text, inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn is_clean(value: &Value) -> bool {
        match value {
            Value::String(text) => text::is_clean(text),
            Value::Array(list) => list.iter().all(is_clean),
            Value::Object(map) => map
                .iter()
                .all(|(key, value)| text::is_clean(key) && is_clean(value)),
            _ => true,
        }
    }

    proptest! {
        #[test]
        fn what_comes_out_is_clean_json_and_stays_so(value in any_json()) {
            let json = value.to_string();
            match cleaned(&json, 1000) {
                None => prop_assert!(is_clean(&value)),
                Some(clean) => {
                    prop_assert!(!is_clean(&value));
                    let read: Value = serde_json::from_str(&clean).unwrap();
                    prop_assert!(is_clean(&read), "{}", clean);
                    prop_assert_eq!(cleaned(&clean, 1000), None);
                }
            }
        }
    }
}
