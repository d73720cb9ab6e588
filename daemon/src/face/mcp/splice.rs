//! Changes a few members of a JSON object and leaves every other byte as it is. Pure.

use memchr::memchr2;
use std::{borrow::Cow, ops::Range};

/// Where the values of an object stand in its text, in their order, with repeated ones. The text is known to be JSON:
/// only its outermost members are looked for.
fn values(object: &[u8]) -> Option<Vec<(Cow<'_, str>, Range<usize>)>> {
    let mut values = Vec::with_capacity(8);
    let mut at = token(object, 0);
    if object.get(at) != Some(&b'{') {
        return None;
    }
    loop {
        at = token(object, at + 1);
        if object.get(at) == Some(&b'}') {
            return Some(values);
        }
        let end = string_end(object, at)?;
        let name = key(&object[at..end])?;
        let colon = token(object, end);
        at = token(object, colon + 1);
        let end = value_end(object, at)?;
        values.push((name, at..end));
        at = token(object, end);
        match object.get(at)? {
            b',' => {}
            _ => return Some(values),
        }
    }
}

/// Where the next token begins.
fn token(text: &[u8], from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    from + rest.len() - rest.trim_ascii_start().len()
}

/// Where a string ends that begins here.
fn string_end(text: &[u8], begin: usize) -> Option<usize> {
    let mut at = begin + 1;
    loop {
        at += memchr2(b'"', b'\\', text.get(at..)?)?;
        match text[at] {
            b'"' => return Some(at + 1),
            _ => at += 2,
        }
    }
}

/// Where a value ends that begins here.
fn value_end(text: &[u8], begin: usize) -> Option<usize> {
    let (mut at, mut depth) = (begin, 0usize);
    loop {
        match text.get(at)? {
            b'"' => at = string_end(text, at)?,
            b'{' | b'[' => (at, depth) = (at + 1, depth + 1),
            // The end of what it stands in.
            b'}' | b']' if depth == 0 => return Some(at),
            b'}' | b']' => (at, depth) = (at + 1, depth - 1),
            b',' | b' ' | b'\t' | b'\r' | b'\n' if depth == 0 => return Some(at),
            _ => {
                at += 1;
                continue;
            }
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

/// A key, borrowed where it has no escapes.
fn key(quoted: &[u8]) -> Option<Cow<'_, str>> {
    let bare = quoted.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    match bare.contains(&b'\\') {
        true => serde_json::from_slice(quoted).ok().map(Cow::Owned),
        false => str::from_utf8(bare).ok().map(Cow::Borrowed),
    }
}

/// The same object with another value of a member that it has. `value` is JSON text.
pub(super) fn with_value(object: &[u8], key: &str, value: &[u8]) -> Option<Vec<u8>> {
    let values = values(object)?;
    // Whoever reads a repeated member takes the last one, as a rule.
    let (_, place) = values.into_iter().rfind(|(name, _)| name == key)?;
    Some([&object[..place.start], value, &object[place.end..]].concat())
}

/// The same object without these members.
pub(super) fn without(object: &[u8], keys: &[&str]) -> Option<Vec<u8>> {
    let values = values(object)?;
    let brace = object.iter().position(|&b| b == b'{')? + 1;
    let mut out = Vec::with_capacity(object.len());
    out.extend_from_slice(&object[..brace]);
    let mut from = brace;
    let mut is_first = true;
    for (key, place) in &values {
        // From the end of the member before it, with the comma.
        let member = &object[from..place.end];
        from = place.end;
        if keys.contains(&key.as_ref()) {
            continue;
        }
        let member = match is_first {
            true => member
                .trim_ascii_start()
                .strip_prefix(b",")
                .unwrap_or(member),
            false => member,
        };
        out.extend_from_slice(member);
        is_first = false;
    }
    out.extend_from_slice(&object[from..]);
    Some(out)
}

/// The same object with more members before its own. `members` is JSON text without braces.
pub(super) fn with_first(object: &[u8], members: &str) -> Option<Vec<u8>> {
    let brace = object.iter().position(|&b| b == b'{')? + 1;
    let is_empty = object[brace..].trim_ascii_start().first() == Some(&b'}');
    let comma = if is_empty { "" } else { "," };
    Some(
        [
            &object[..brace],
            members.as_bytes(),
            comma.as_bytes(),
            &object[brace..],
        ]
        .concat(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Map, Value};

    fn text(bytes: Option<Vec<u8>>) -> String {
        String::from_utf8(bytes.unwrap()).unwrap()
    }

    const ODD: &[u8] = br#"{ "b" : 1e400, "name":"x" ,"a": {"name":"inner"}, "b":[ 2 ] }"#;

    #[test]
    fn one_value_is_replaced_and_the_rest_stays() {
        assert_eq!(
            text(with_value(ODD, "name", b"\"s__x\"")),
            r#"{ "b" : 1e400, "name":"s__x" ,"a": {"name":"inner"}, "b":[ 2 ] }"#
        );
        assert_eq!(
            text(with_value(ODD, "b", b"0")),
            r#"{ "b" : 1e400, "name":"x" ,"a": {"name":"inner"}, "b":0 }"#
        );
        assert_eq!(with_value(ODD, "c", b"0"), None);
        assert_eq!(with_value(b"[1]", "c", b"0"), None);
        assert_eq!(
            text(with_value(br#"{"na\u006de":1}"#, "name", b"2")),
            r#"{"na\u006de":2}"#
        );
    }

    #[test]
    fn members_are_left_out_wherever_they_stand() {
        assert_eq!(
            text(without(ODD, &["name"])),
            r#"{ "b" : 1e400 ,"a": {"name":"inner"}, "b":[ 2 ] }"#
        );
        assert_eq!(
            text(without(ODD, &["b"])),
            r#"{ "name":"x" ,"a": {"name":"inner"} }"#
        );
        assert_eq!(text(without(br#"{"a":1}"#, &["a"])), "{}");
        assert_eq!(text(without(br#"{"a":1, "b":2}"#, &["a"])), r#"{ "b":2}"#);
        assert_eq!(text(without(ODD, &[])), std::str::from_utf8(ODD).unwrap());
    }

    #[test]
    fn members_are_added_at_the_front() {
        assert_eq!(text(with_first(b"{}", r#""x":1"#)), r#"{"x":1}"#);
        assert_eq!(text(with_first(b" { } ", r#""x":1"#)), r#" {"x":1 } "#);
        assert_eq!(
            text(with_first(br#"{"a":2}"#, r#""x":1"#)),
            r#"{"x":1,"a":2}"#
        );
    }

    fn anything() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f32>().prop_map(|n| Value::from(f64::from(n))),
            "[\"\\\\\\PC{}\\[\\],: ]{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(".{0,6}", inner, 0..4)
                    .prop_map(|map| Value::Object(Map::from_iter(map))),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_member_is_found_however_it_is_written(
            object in prop::collection::btree_map(".{0,6}", anything(), 0..5),
            pretty in any::<bool>(),
        ) {
            let object = Value::Object(Map::from_iter(object));
            let text = match pretty {
                true => format!(" {object:#}\n"),
                false => object.to_string(),
            };
            let found = values(text.as_bytes()).unwrap().into_iter().map(|(key, place)| {
                let value: Value = serde_json::from_str(&text[place]).unwrap();
                (key.into_owned(), value)
            });
            prop_assert_eq!(Value::Object(found.collect()), object);
        }

        #[test]
        fn what_is_no_object_is_nobodys_end(text in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = without(&text, &["a"]);
            let _ = with_value(&[b"{\"a\":", &text[..]].concat(), "a", b"1");
        }
    }
}
