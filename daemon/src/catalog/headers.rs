//! The arguments of a tool that its server wants to have in headers too (`x-mcp-header`). Pure.

use serde_json::{Value, value::RawValue};
use std::collections::BTreeMap;

/// How deep the arguments are searched.
const MAX_DEPTH: usize = 16;

/// The ends of the headers' names, and their values. `schema` is that of the arguments, which are JSON text.
pub(super) fn of(schema: &Value, arguments: &[u8]) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    if let Ok(arguments) = serde_json::from_slice::<&RawValue>(arguments) {
        collect(schema, arguments, MAX_DEPTH, &mut headers);
    }
    headers
}

fn collect(
    schema: &Value,
    arguments: &RawValue,
    depth: usize,
    headers: &mut Vec<(String, String)>,
) {
    let properties = schema.get("properties").and_then(Value::as_object);
    let given = serde_json::from_str::<BTreeMap<String, &RawValue>>(arguments.get());
    let (Some(properties), Ok(given), 1..) = (properties, given, depth) else {
        return;
    };
    for (name, property) in properties {
        let Some(value) = given.get(name) else {
            continue;
        };
        match property.get("x-mcp-header").and_then(Value::as_str) {
            Some(header) => {
                if let Some(text) = text(value.get()) {
                    headers.push((header.to_owned(), text));
                }
            }
            None => collect(property, value, depth - 1, headers),
        }
    }
}

/// A string without its quotes, a number or a truth value as it stands; nothing else.
fn text(json: &str) -> Option<String> {
    match json.as_bytes().first()? {
        b'"' => serde_json::from_str(json).ok(),
        b'{' | b'[' | b'n' => None,
        _ => Some(json.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_wanted_is_found_and_stays_as_it_is() {
        let schema = json!({"properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "size": {"type": "number", "x-mcp-header": "Size"},
            "other": {"type": "string"},
            "gone": {"x-mcp-header": "Gone"},
            "list": {"x-mcp-header": "List"},
            "inner": {"properties": {"dry": {"type": "boolean", "x-mcp-header": "Dry"}}},
        }});
        let arguments =
            br#"{"region":"a \"b\"","size":1.50,"other":"x","list":[1],"inner":{"dry":true}}"#;
        let mut headers = of(&schema, arguments);
        headers.sort();
        let expected = [("Dry", "true"), ("Region", "a \"b\""), ("Size", "1.50")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(headers, expected);
        assert!(of(&schema, b"").is_empty() && of(&json!(7), b"{}").is_empty());
    }
}
