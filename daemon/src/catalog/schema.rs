//! Whether a schema can be checked without harm. Pure.
//!
//! A schema comes from a server, and is checked on the thread that serves everybody. With references
//! a few hundred bytes can stand for billions of steps, so a schema is only used if it is small with
//! its references written out, which one that refers to itself never is.

use serde_json::Value;
use std::collections::HashMap;

/// How many parts a schema may have with its references written out.
const MAX_PARTS: u64 = 20_000;

/// Words that refer in ways that are not followed here.
const UNFOLLOWED: &[&str] = &["$dynamicRef", "$recursiveRef", "$anchor", "$dynamicAnchor"];

/// Whether checking against this schema is surely bounded.
pub(super) fn is_bounded(schema: &Value) -> bool {
    let mut sizes = HashMap::new();
    size(schema, schema, &mut sizes, 0).is_some_and(|size| size <= MAX_PARTS)
}

/// How many parts it has; `None` if that is not known or has no end.
fn size<'a>(
    root: &'a Value,
    part: &'a Value,
    sizes: &mut HashMap<&'a str, Option<u64>>,
    depth: u32,
) -> Option<u64> {
    // serde_json reads nothing deeper than this; references may go on.
    if depth > 256 {
        return None;
    }
    let mut total: u64 = 1;
    match part {
        Value::Object(map) => {
            for (key, value) in map {
                if UNFOLLOWED.contains(&key.as_str()) {
                    return None;
                }
                let added = match (key.as_str(), value) {
                    ("$ref", Value::String(to)) => match sizes.get(to.as_str()) {
                        Some(known) => (*known)?,
                        None => {
                            // Until it is known it has no end: that is how a circle shows.
                            sizes.insert(to, None);
                            let target = root.pointer(&pointer(to)?)?;
                            let size = size(root, target, sizes, depth + 1)?;
                            sizes.insert(to, Some(size));
                            size
                        }
                    },
                    // They count where they are referred to.
                    ("$defs" | "definitions", _) => 0,
                    _ => size(root, value, sizes, depth + 1)?,
                };
                total = total.saturating_add(added);
            }
        }
        Value::Array(items) => {
            for item in items {
                total = total.saturating_add(size(root, item, sizes, depth + 1)?);
            }
        }
        _ => {}
    }
    Some(total)
}

/// Where a reference within the schema points to.
fn pointer(reference: &str) -> Option<String> {
    let fragment = reference.strip_prefix('#')?;
    // Escapes are rare enough not to be followed.
    (!fragment.contains('%')).then(|| fragment.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ordinary_schemas_are_bounded() {
        assert!(is_bounded(
            &json!({"type": "object", "properties": {"a": {"type": "number"}}})
        ));
        assert!(is_bounded(&json!({
            "properties": {"a": {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]}},
            "$defs": {"A": {"properties": {"b": {"$ref": "#/$defs/B"}}}, "B": {"enum": [1, 2]}}
        })));
    }

    #[test]
    fn a_schema_that_refers_to_itself_is_not() {
        assert!(!is_bounded(&json!({"$ref": "#"})));
        assert!(!is_bounded(
            &json!({"properties": {"child": {"$ref": "#"}}})
        ));
        assert!(!is_bounded(&json!({
            "$ref": "#/$defs/A",
            "$defs": {"A": {"items": {"$ref": "#/$defs/B"}}, "B": {"not": {"$ref": "#/$defs/A"}}}
        })));
    }

    #[test]
    fn one_that_doubles_with_each_step_is_not() {
        let mut defs = serde_json::Map::new();
        for i in 0..40 {
            let next = json!({"$ref": format!("#/$defs/d{}", i + 1)});
            defs.insert(format!("d{i}"), json!({"allOf": [next, next]}));
        }
        defs.insert("d40".into(), json!({"type": "object"}));
        assert!(!is_bounded(&json!({"$ref": "#/$defs/d0", "$defs": defs})));
    }

    #[test]
    fn what_is_not_understood_is_not() {
        for schema in [
            json!({"$ref": "https://example.com/schema"}),
            json!({"$ref": "#/nowhere"}),
            json!({"$dynamicRef": "#x"}),
        ] {
            assert!(!is_bounded(&schema), "{schema}");
        }
    }
}
