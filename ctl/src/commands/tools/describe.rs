//! A tool, with what it takes.

use crate::{
    arguments::kinds_of,
    output::{Output, safe, style, table::Table},
};
use nexus_client::Tool;
use serde_json::Value;

pub(super) fn text(output: &Output, tool: &Tool) -> String {
    let mut text = output.paint(&safe::line(&tool.dotted()), style::BOLD) + "\n";
    if let Some(about) = tool.description().or_else(|| tool.title()) {
        for line in safe::text(&about).trim().lines() {
            text += &format!("  {line}\n");
        }
    }
    let traits = [
        (tool.read_only(), "only reads"),
        (tool.idempotent() && !tool.read_only(), "can be repeated"),
    ];
    for (_, says) in traits.into_iter().filter(|(is, _)| *is) {
        text += &format!("  it says that it {says}\n");
    }
    let schema = tool.input_schema().unwrap_or_default();
    match arguments(&schema) {
        Some(table) => text += &table.render(output.color(), output.width()),
        None => text += "  takes no arguments\n",
    }
    text
}

/// The arguments of a schema; `None` when there are none.
fn arguments(schema: &Value) -> Option<Table> {
    let properties = schema.get("properties")?.as_object()?;
    if properties.is_empty() {
        return None;
    }
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| {
        required.is_some_and(|names| names.iter().any(|other| other.as_str() == Some(name)))
    };
    // Those that must be given come first; otherwise the order is the schema's.
    let mut names: Vec<_> = properties.keys().collect();
    names.sort_by_key(|name| !is_required(name));
    let mut table = Table::new(&["  ARGUMENT", "TYPE", "REQUIRED", "DESCRIPTION"]);
    for name in names {
        let property = &properties[name];
        let about = property.get("description").and_then(Value::as_str);
        table.row([
            format!("  {}", safe::line(name)).into(),
            kind(property, schema).into(),
            if is_required(name) { "yes" } else { "" }.into(),
            about.map(safe::line).unwrap_or_default().into(),
        ]);
    }
    Some(table)
}

/// The types of an argument, or the values that it can have.
fn kind(property: &Value, root: &Value) -> String {
    if let Some(Value::Array(values)) = property.get("enum") {
        let values: Vec<_> = values
            .iter()
            .map(|value| match value {
                Value::String(text) => safe::line(text),
                other => other.to_string(),
            })
            .collect();
        return values.join("|");
    }
    let kinds = kinds_of(property, root);
    let kinds: Vec<_> = kinds.iter().map(ToString::to_string).collect();
    match kinds[..] {
        [] => "any".to_owned(),
        _ => kinds.join("|"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn arguments_are_listed_with_the_required_ones_first() {
        let schema = json!({
            "properties": {
                "a": {"type": "number", "description": "The\nfirst"},
                "mode": {"enum": ["x", 5]},
                "z": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "any": {},
            },
            "required": ["z", "a"],
        });
        assert_eq!(
            arguments(&schema).unwrap().render(false, None),
            "  ARGUMENT  TYPE         REQUIRED  DESCRIPTION\n  \
               a         number       yes       The first\n  \
               z         null|string  yes\n  \
               mode      x|5\n  \
               any       any\n"
        );
        assert!(arguments(&json!({"type": "object"})).is_none());
    }
}
