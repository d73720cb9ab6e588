//! The types of JSON Schema.

use serde_json::{Value, value::RawValue};
use std::fmt;

/// A type. In the order in which a value is tried: text comes last, because everything is text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Null,
    Boolean,
    Integer,
    Number,
    Object,
    Array,
    String,
}

/// References in references are not followed for ever.
const MAX_DEPTH: usize = 8;

/// The types that a schema allows, each once; none when it does not say.
pub(crate) fn kinds(schema: &Value, root: &Value) -> Vec<Kind> {
    let mut kinds = Vec::new();
    collect(schema, root, MAX_DEPTH, &mut kinds);
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

fn collect(schema: &Value, root: &Value, depth: usize, kinds: &mut Vec<Kind>) {
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    match schema.get("type") {
        Some(Value::String(name)) => kinds.extend(Kind::named(name)),
        Some(Value::Array(names)) => {
            let names = names.iter().filter_map(Value::as_str);
            kinds.extend(names.filter_map(Kind::named));
        }
        _ => {}
    }
    if !kinds.is_empty() {
        return;
    }
    if let Some(target) = schema.get("$ref").and_then(|name| resolve(name, root)) {
        collect(target, root, depth, kinds);
    }
    for union in ["anyOf", "oneOf", "allOf"] {
        let Some(Value::Array(parts)) = schema.get(union) else {
            continue;
        };
        for part in parts {
            let mut of_part = Vec::new();
            collect(part, root, depth, &mut of_part);
            kinds.extend(of_part);
        }
    }
}

/// The schema itself, where this only refers to it.
pub(crate) fn referred<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let mut schema = schema;
    for _ in 0..MAX_DEPTH {
        match schema.get("$ref").and_then(|name| resolve(name, root)) {
            Some(target) => schema = target,
            None => break,
        }
    }
    schema
}

/// The schema of an array's elements; `null` when there is none.
pub(crate) fn items<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let union = ["anyOf", "oneOf", "allOf"].map(|union| schema.get(union));
    let parts = union.into_iter().flatten().filter_map(Value::as_array);
    std::iter::once(schema)
        .chain(parts.flatten())
        .find_map(|part| referred(part, root).get("items"))
        .map_or(&Value::Null, |items| referred(items, root))
}

fn resolve<'a>(name: &Value, root: &'a Value) -> Option<&'a Value> {
    root.pointer(name.as_str()?.strip_prefix('#')?)
}

impl Kind {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "null" => Self::Null,
            "boolean" => Self::Boolean,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "object" => Self::Object,
            "array" => Self::Array,
            "string" => Self::String,
            _ => return None,
        })
    }

    /// Whether a text, as it is written, is a value of this type.
    pub(crate) fn fits(self, text: &str) -> bool {
        // Read as it stands: no number is too long or too large.
        let Ok(raw) = serde_json::from_str::<&RawValue>(text) else {
            return self == Self::String;
        };
        let json = raw.get();
        let first = json.as_bytes().first().copied().unwrap_or_default();
        let is_number = first == b'-' || first.is_ascii_digit();
        match self {
            Self::Null => json == "null",
            Self::Boolean => json == "true" || json == "false",
            Self::Number => is_number,
            Self::Integer => is_number && is_whole(json),
            Self::Object => first == b'{',
            Self::Array => first == b'[',
            Self::String => true,
        }
    }

    pub(crate) fn article(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "true or false",
            Self::Integer => "an integer",
            Self::Number => "a number",
            Self::Object => "an object",
            Self::Array => "an array",
            Self::String => "text",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
        })
    }
}

/// JSON Schema counts `1.0` and `1e3` as integers.
fn is_whole(number: &str) -> bool {
    !number.contains(['.', 'e', 'E']) || number.parse::<f64>().is_ok_and(|n| n.fract() == 0.0)
}
