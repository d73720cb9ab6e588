//! What makes a tool the tool that it is. Pure.

use bytes::Bytes;
use nexus_proto::name::TOLD_OF_TOOLS;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

/// SHA-256 over what an agent is told of a tool, in hexadecimal: the same however it is written down.
pub(super) fn digest(definition: &Bytes) -> String {
    let mut hash = Sha256::new();
    match serde_json::from_slice::<Map<String, Value>>(definition) {
        Ok(members) => {
            let fields = TOLD_OF_TOOLS
                .iter()
                .filter_map(|field| Some((*field, members.get(*field)?)));
            for (field, value) in fields {
                hash.update(field);
                hash.update("=");
                add(&mut hash, value);
                hash.update("\n");
            }
        }
        // A number that we do not have: any other writing is another tool.
        Err(_) => hash.update(definition),
    }
    let hex = |byte: &u8| format!("{byte:02x}");
    hash.finalize().iter().map(hex).collect()
}

/// Members in the order of their names, whatever order they came in.
fn add(hash: &mut Sha256, value: &Value) {
    match value {
        Value::Array(list) => {
            hash.update("[");
            for value in list {
                add(hash, value);
                hash.update(",");
            }
            hash.update("]");
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            hash.update("{");
            for (name, value) in members {
                hash.update(Value::from(name.as_str()).to_string());
                hash.update(":");
                add(hash, value);
                hash.update(",");
            }
            hash.update("}");
        }
        value => hash.update(value.to_string()),
    }
}

/// In which of these two definitions differ. Not how: what a server has slipped in is not to reach agents in an error.
pub(super) fn changed_fields(before: &Bytes, now: &Bytes) -> Vec<&'static str> {
    let read = |definition: &Bytes| {
        serde_json::from_slice::<Map<String, Value>>(definition).unwrap_or_default()
    };
    let (before, now) = (read(before), read(now));
    let is_other = |field: &&&str| before.get(**field) != now.get(**field);
    TOLD_OF_TOOLS.iter().filter(is_other).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(definition: &'static str) -> String {
        digest(&Bytes::from_static(definition.as_bytes()))
    }

    #[test]
    fn how_it_is_written_down_does_not_count() {
        let one = of(r#"{"name":"a","inputSchema":{"x":[1,{"b":2,"a":null}],"type":"object"}}"#);
        let same = r#"{ "inputSchema": {"type":"object","x":[1,{"a":null,"b":2}]}, "name":"\u0061", "_meta":{"n":1} }"#;
        assert_eq!(one, of(same));
        assert_eq!(one.len(), 64);
    }

    #[test]
    fn whatever_an_agent_is_told_counts() {
        let mut seen = std::collections::HashSet::new();
        for definition in [
            r#"{"name":"a"}"#,
            r#"{"name":"b"}"#,
            r#"{"name":"a","title":"t"}"#,
            r#"{"name":"a","description":"t"}"#,
            r#"{"name":"a","inputSchema":{}}"#,
            r#"{"name":"a","inputSchema":[]}"#,
            r#"{"name":"a","inputSchema":{"a":["b","c"]}}"#,
            r#"{"name":"a","inputSchema":{"a":["b"],"c":1}}"#,
            r#"{"name":"a","outputSchema":{}}"#,
            r#"{"name":"a","annotations":{"readOnlyHint":true}}"#,
            r#"{"name":"a","inputSchema":{"maximum":1e400}}"#,
            r#"{"name":"a","inputSchema":{"maximum":1e401}}"#,
        ] {
            assert!(seen.insert(of(definition)), "{definition}");
        }
    }

    #[test]
    fn the_fields_that_differ_are_named() {
        let before = Bytes::from_static(br#"{"name":"a","description":"x","annotations":{}}"#);
        let now =
            Bytes::from_static(br#"{"name":"a","description":"y","title":"z","annotations":{}}"#);
        assert_eq!(changed_fields(&before, &now), ["title", "description"]);
    }
}
