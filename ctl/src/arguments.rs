//! The arguments of a call from `--arg name=value`, typed by the tool's schema. PURE.
//!
//! Values are kept as they were written: a number of thirty digits stays one.

use serde_json::{Map, Value, value::RawValue};

mod kind;

use kind::Kind;
pub(crate) use kind::kinds as kinds_of;

/// What is wrong with an argument, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

/// The JSON object that the arguments make, as text. `schema` is the tool's input schema.
pub(crate) fn build(pairs: &[(String, String)], schema: &Value) -> Result<String, Wrong> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in pairs {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let mut fields = Vec::new();
    for name in names {
        let values = pairs.iter().filter(|(other, _)| other == name);
        let values: Vec<&str> = values.map(|(_, value)| value.as_str()).collect();
        let json = argument(name, &values, schema)?;
        fields.push(format!("{}:{json}", quoted(name)));
    }
    Ok(format!("{{{}}}", fields.join(",")))
}

/// Checks that `text` is a JSON object, as `--json` wants it.
pub(crate) fn check_object(text: &str) -> Result<(), Wrong> {
    let hint = Some(r#"write a JSON object, such as '{"a": 2, "b": 3}'"#.to_owned());
    match serde_json::from_str::<&RawValue>(text) {
        Ok(raw) if raw.get().starts_with('{') => Ok(()),
        Ok(_) => Err(Wrong {
            message: "the arguments are not a JSON object".to_owned(),
            hint,
        }),
        Err(error) => Err(Wrong {
            message: format!("the arguments are not JSON: {error}"),
            hint,
        }),
    }
}

fn argument(name: &str, values: &[&str], root: &Value) -> Result<String, Wrong> {
    let schema = property(name, root)?;
    let kinds = kinds_of(schema, root);
    if let [value] = values {
        return typed(value, &kinds, schema, root)
            .ok_or_else(|| wrong(name, value, &kinds, schema));
    }
    // Several values of one name are the elements of an array.
    if !kinds.is_empty() && !kinds.contains(&Kind::Array) {
        return Err(Wrong {
            message: format!("`{name}` is given {} times, but is no array", values.len()),
            hint: None,
        });
    }
    let items = kind::items(schema, root);
    let item_kinds = kinds_of(items, root);
    let elements: Result<Vec<_>, _> = values
        .iter()
        .map(|value| {
            typed(value, &item_kinds, items, root)
                .ok_or_else(|| wrong(name, value, &item_kinds, items))
        })
        .collect();
    Ok(format!("[{}]", elements?.join(",")))
}

/// The schema of a property; `null` for one that the tool takes without describing it.
fn property<'a>(name: &str, root: &'a Value) -> Result<&'a Value, Wrong> {
    let properties = root.get("properties").and_then(Value::as_object);
    if let Some(schema) = properties.and_then(|properties| properties.get(name)) {
        return Ok(kind::referred(schema, root));
    }
    match root.get("additionalProperties") {
        Some(Value::Bool(false)) => Err(unknown(name, properties)),
        Some(schema @ Value::Object(_)) => Ok(kind::referred(schema, root)),
        _ => Ok(&Value::Null),
    }
}

fn unknown(name: &str, properties: Option<&Map<String, Value>>) -> Wrong {
    let known: Vec<_> = properties
        .into_iter()
        .flat_map(Map::keys)
        .map(|name| format!("`{name}`"))
        .collect();
    Wrong {
        message: format!("the tool has no argument `{name}`"),
        hint: Some(match known[..] {
            [] => "it takes no arguments".to_owned(),
            _ => format!("it takes {}", known.join(", ")),
        }),
    }
}

/// The value as JSON, in the first kind that it fits.
fn typed(value: &str, kinds: &[Kind], schema: &Value, root: &Value) -> Option<String> {
    if kinds.is_empty() {
        return enumerated(untyped(value), value, schema);
    }
    let json = kinds.iter().find_map(|kind| {
        if *kind == Kind::Array && !kind.fits(value) {
            // One value is an array of one.
            let items = kind::items(schema, root);
            let item = typed(value, &kinds_of(items, root), items, root)?;
            return Some(format!("[{item}]"));
        }
        if *kind != Kind::String {
            return kind.fits(value).then(|| value.trim().to_owned());
        }
        // Where other kinds are possible too, quotes say that text is meant.
        let is_quoted = kinds.len() > 1 && serde_json::from_str::<String>(value).is_ok();
        Some(if is_quoted {
            value.trim().to_owned()
        } else {
            quoted(value)
        })
    })?;
    enumerated(json, value, schema)
}

/// Nobody says what it is: JSON if it is any, else text.
fn untyped(value: &str) -> String {
    match serde_json::from_str::<&RawValue>(value) {
        Ok(raw) => raw.get().to_owned(),
        Err(_) => quoted(value),
    }
}

/// The value if the schema lists it, or lists nothing.
fn enumerated(json: String, value: &str, schema: &Value) -> Option<String> {
    let Some(listed) = listed(schema) else {
        return Some(json);
    };
    let is = |json: &str| {
        let read: Option<Value> = serde_json::from_str(json).ok();
        read.is_some_and(|read| listed.contains(&&read))
    };
    // A list may hold `"5"` where `5` was understood.
    [json, quoted(value)].into_iter().find(|json| is(json))
}

fn listed(schema: &Value) -> Option<Vec<&Value>> {
    match (schema.get("enum"), schema.get("const")) {
        (Some(Value::Array(values)), _) => Some(values.iter().collect()),
        (_, Some(value)) => Some(vec![value]),
        _ => None,
    }
}

fn wrong(name: &str, value: &str, kinds: &[Kind], schema: &Value) -> Wrong {
    let wanted = match listed(schema) {
        Some(values) => {
            let values: Vec<_> = values
                .iter()
                .map(|value| match value {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                })
                .collect();
            format!("one of {}", values.join(", "))
        }
        None => {
            let names: Vec<_> = kinds.iter().map(|kind| kind.article()).collect();
            names.join(" or ")
        }
    };
    Wrong {
        message: format!("`{name}` must be {wanted}, not `{value}`"),
        hint: kinds
            .contains(&Kind::Object)
            .then(|| format!(r#"write JSON: --arg {name}='{{"key": "value"}}'"#)),
    }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests;
