//! Changes a few members of a JSON object and leaves every other byte as it is. Pure.

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;
use std::{borrow::Cow, fmt, ops::Range};

/// The members of an object, in their order, with repeated ones.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(Key(key)) = map.next_key()? {
                    members.push((key, map.next_value()?));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

/// A key, borrowed where it has no escapes.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// Where the values of an object stand in its text.
fn values<'a>(object: &'a [u8]) -> Option<Vec<(Cow<'a, str>, Range<usize>)>> {
    let Members(members) = serde_json::from_slice(object).ok()?;
    let place = |raw: &RawValue| {
        let start = raw.get().as_ptr() as usize - object.as_ptr() as usize;
        start..start + raw.get().len()
    };
    Some(
        members
            .into_iter()
            .map(|(key, raw)| (key, place(raw)))
            .collect(),
    )
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
    let mut out = object[..brace].to_vec();
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
}
