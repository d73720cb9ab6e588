//! TOML. Pure.

use super::too_deep;
use crate::{
    diagnosis::Diagnosis,
    node::{Entry, MAX_DEPTH, Node, Span, Value},
    source::Source,
};
use std::sync::Arc;
use toml_edit::{Document, Item, Table, TableLike, Value as Toml};

pub(super) fn parse(source: &Arc<Source>) -> Result<Node, Box<Diagnosis>> {
    let parsed = Document::parse(source.text.as_str());
    let document = parsed.map_err(|error| {
        let span = source.clip(&error.span().unwrap_or(0..0));
        let (line, column) = source.place(span.start);
        // What it says may run over several lines, and quote the text: the first says what is wrong.
        let what = error.message().lines().next().unwrap_or_default().to_owned();
        Box::new(
            Diagnosis::error("config::syntax", format!("invalid TOML at line {line}, column {column}"))
                .in_file(source)
                .at(span, what)
                .fix("the usual mistakes: text without quotes, a [table] that is there twice, a backslash in \"…\" (write '…')"),
        )
    })?;
    let span = 0..source.text.len();
    Ok(Node {
        value: table(source, document.as_table(), &span, 0)?,
        span,
    })
}

fn table(
    source: &Arc<Source>,
    table: &dyn TableLike,
    around: &Span,
    depth: usize,
) -> Result<Value, Box<Diagnosis>> {
    if depth > MAX_DEPTH {
        return Err(too_deep(source, around.start));
    }
    let mut entries = Vec::new();
    for (key, item) in table.iter() {
        let key_span = table.key(key).and_then(toml_edit::Key::span);
        let around = key_span.clone().unwrap_or_else(|| around.clone());
        entries.push(Entry {
            key: key.to_owned(),
            node: of_item(source, item, &around, depth + 1)?,
            key_span: around,
        });
    }
    Ok(Value::Map(entries))
}

fn of_item(
    source: &Arc<Source>,
    item: &Item,
    around: &Span,
    depth: usize,
) -> Result<Node, Box<Diagnosis>> {
    let span = || item.span().unwrap_or_else(|| around.clone());
    let value = match item {
        Item::None => Value::Null,
        Item::Value(value) => return of_value(source, value, around, depth),
        Item::Table(one) => self::table(source, one as &Table, around, depth)?,
        Item::ArrayOfTables(tables) => {
            let mut nodes = Vec::new();
            for one in tables {
                let span = one.span().unwrap_or_else(|| around.clone());
                nodes.push(Node {
                    value: self::table(source, one, &span, depth + 1)?,
                    span,
                });
            }
            Value::List(nodes)
        }
    };
    Ok(Node {
        span: span(),
        value,
    })
}

fn of_value(
    source: &Arc<Source>,
    value: &Toml,
    around: &Span,
    depth: usize,
) -> Result<Node, Box<Diagnosis>> {
    let span = value.span().unwrap_or_else(|| around.clone());
    if depth > MAX_DEPTH {
        return Err(too_deep(source, span.start));
    }
    let value = match value {
        Toml::String(text) => Value::Text(text.value().clone()),
        Toml::Integer(number) => Value::Number(number.value().to_string()),
        Toml::Float(number) => Value::Number(number.value().to_string()),
        Toml::Boolean(yes) => Value::Bool(*yes.value()),
        Toml::Datetime(time) => Value::Text(time.value().to_string()),
        Toml::Array(array) => {
            let nodes: Result<_, _> = array
                .iter()
                .map(|one| of_value(source, one, &span, depth + 1))
                .collect();
            Value::List(nodes?)
        }
        Toml::InlineTable(inline) => table(source, inline, &span, depth)?,
    };
    Ok(Node { span, value })
}
