//! Changes one entry of a file that is somebody else's, and leaves every other byte as it was. PURE.

use jsonc_parser::{
    ParseOptions,
    cst::{CstInputValue, CstObject, CstRootNode},
};
use nexus_config::{
    Format, Layer, Source,
    node::{Node, Value as Tree},
    read::servers_of,
    syntax,
};
use serde_json::{Value, json};
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table};

/// The mark of UTF-8.
const MARK: char = '\u{feff}';

/// How an agent writes a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// `command` and `args`.
    Plain,
    /// The same, and `type: stdio`.
    Typed,
    /// The same, with `type: local` and all tools.
    Copilot,
    /// One list for the command.
    Opencode,
    /// Names of its own.
    Goose,
    /// In a list, with its name in it.
    Named,
}

impl Shape {
    /// The entry that runs this command.
    pub(crate) fn entry(self, name: &str, program: &str, args: &[&str]) -> Value {
        match self {
            Self::Plain => json!({ "command": program, "args": args }),
            Self::Typed => json!({ "type": "stdio", "command": program, "args": args }),
            Self::Copilot => {
                json!({ "type": "local", "command": program, "args": args, "tools": ["*"] })
            }
            Self::Opencode => {
                let command: Vec<&str> = std::iter::once(program)
                    .chain(args.iter().copied())
                    .collect();
                json!({ "type": "local", "command": command, "enabled": true })
            }
            Self::Goose => json!({
                "type": "stdio", "name": name, "cmd": program, "args": args, "envs": {}, "env_keys": [],
                "timeout": 300, "enabled": true, "bundled": null, "description": "",
            }),
            Self::Named => json!({ "name": name, "command": program, "args": args }),
        }
    }
}

/// What is to be done to a file.
#[derive(Debug)]
pub(crate) struct Change<'a> {
    /// Under which names servers stand, where the file does not say.
    pub(crate) root: &'a [&'a str],
    /// Servers that are put there, instead of others of the same name.
    pub(crate) put: &'a [(String, Value)],
    /// Servers that are taken away.
    pub(crate) take: &'a [String],
}

/// The text with that change.
pub(crate) fn apply(text: &str, format: Format, change: &Change<'_>) -> Result<String, String> {
    // What some editors on Windows put before everything stays there.
    if let Some(rest) = text.strip_prefix(MARK) {
        return Ok(format!("{MARK}{}", apply(rest, format, change)?));
    }
    let source = Source::new(
        match format {
            Format::Json => "a.json",
            Format::Yaml => "a.yaml",
            Format::Toml => "a.toml",
        },
        Layer::User,
        text,
    );
    let tree = syntax::parse(&source).map_err(|diagnosis| diagnosis.to_string())?;
    let root: Vec<&str> = match servers_of(&tree) {
        Some(root) => root.path,
        None => change.root.to_vec(),
    };
    match format {
        Format::Json => json(text, &root, change),
        Format::Toml => toml(text, &root, change),
        Format::Yaml => yaml(text, &tree, &root, change),
    }
}

fn options() -> ParseOptions {
    ParseOptions {
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        ..ParseOptions::default()
    }
}

fn json(text: &str, root: &[&str], change: &Change<'_>) -> Result<String, String> {
    let blank = text.trim().is_empty();
    let document = CstRootNode::parse(if blank { "{\n}\n" } else { text }, &options())
        .map_err(|error| error.to_string())?;
    let other = || format!("{} is not a map", root.join("."));
    let mut object: CstObject = document.object_value_or_create().ok_or_else(other)?;
    let (last, path) = root.split_last().ok_or_else(other)?;
    for name in path {
        object = object.object_value_or_create(name).ok_or_else(other)?;
    }
    if let Some(array) = object.array_value(last) {
        let named = |name: &str| {
            let is_it = |node: &jsonc_parser::cst::CstNode| {
                let text = node.as_object().and_then(|object| {
                    object
                        .get("name")?
                        .value()?
                        .as_string_lit()?
                        .decoded_value()
                        .ok()
                });
                text.as_deref() == Some(name)
            };
            array.elements().into_iter().find(is_it)
        };
        for name in change
            .take
            .iter()
            .chain(change.put.iter().map(|(name, _)| name))
        {
            if let Some(node) = named(name) {
                node.remove();
            }
        }
        for (name, value) in change.put {
            let mut value = value.clone();
            if let Value::Object(map) = &mut value {
                map.insert("name".to_owned(), json!(name));
            }
            array.append(input(&value));
        }
        return Ok(document.to_string());
    }
    let servers = object.object_value_or_create(last).ok_or_else(other)?;
    for name in change.take {
        if let Some(entry) = servers.get(name) {
            entry.remove();
        }
    }
    for (name, value) in change.put {
        match servers.get(name) {
            Some(entry) => entry.set_value(input(value)),
            None => drop(servers.append(name, input(value))),
        }
    }
    Ok(document.to_string())
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(yes) => CstInputValue::Bool(*yes),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(list) => CstInputValue::Array(list.iter().map(input).collect()),
        Value::Object(map) => CstInputValue::Object(
            map.iter()
                .map(|(key, value)| (key.clone(), input(value)))
                .collect(),
        ),
    }
}

fn toml(text: &str, root: &[&str], change: &Change<'_>) -> Result<String, String> {
    let mut document: DocumentMut = text
        .parse()
        .map_err(|error: toml_edit::TomlError| error.message().to_owned())?;
    let other = || format!("{} is not a table", root.join("."));
    let (last, path) = root.split_last().ok_or_else(other)?;
    let mut table: &mut Table = document.as_table_mut();
    for name in path {
        table = table
            .entry(name)
            .or_insert_with(implicit)
            .as_table_mut()
            .ok_or_else(other)?;
    }
    if let Some(list) = table.get_mut(last).and_then(Item::as_array_of_tables_mut) {
        let is_out = |one: &Table| {
            one.get("name").and_then(Item::as_str).is_some_and(|name| {
                change.take.iter().any(|out| out == name)
                    || change.put.iter().any(|(put, _)| put == name)
            })
        };
        let kept: ArrayOfTables = list.iter().filter(|one| !is_out(one)).cloned().collect();
        *list = kept;
        for (name, value) in change.put {
            let mut one = of_map(value);
            one.insert("name", toml_edit::value(name));
            list.push(one);
        }
        return Ok(document.to_string());
    }
    let servers = table
        .entry(last)
        .or_insert_with(implicit)
        .as_table_like_mut()
        .ok_or_else(other)?;
    for name in change.take {
        servers.remove(name);
    }
    for (name, value) in change.put {
        servers.insert(name, Item::Table(of_map(value)));
    }
    Ok(document.to_string())
}

fn implicit() -> Item {
    let mut table = Table::new();
    table.set_implicit(true);
    Item::Table(table)
}

fn of_map(value: &Value) -> Table {
    let mut table = Table::new();
    for (key, value) in value.as_object().into_iter().flatten() {
        if let Some(value) = of_value(value) {
            table.insert(key, Item::Value(value));
        }
    }
    table
}

fn of_value(value: &Value) -> Option<toml_edit::Value> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(yes) => (*yes).into(),
        Value::Number(number) => match number.as_i64() {
            Some(number) => number.into(),
            None => number.as_f64()?.into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(list) => {
            toml_edit::Value::Array(list.iter().filter_map(of_value).collect::<Array>())
        }
        Value::Object(_) => {
            let mut table = of_map(value).into_inline_table();
            table.fmt();
            toml_edit::Value::InlineTable(table)
        }
    })
}

/// Lines are put in and taken out: JSON in one line is YAML, too.
fn yaml(text: &str, tree: &Node, root: &[&str], change: &Change<'_>) -> Result<String, String> {
    let [root] = root else {
        return Err("servers stand too deep in this file to be changed".to_owned());
    };
    let line_start = |at: usize| text[..at].rfind('\n').map_or(0, |end| end + 1);
    let entry = |name: &str, value: &Value| format!("{}: {value}", json!(name));
    let Some(servers) = tree.get(root).filter(|node| node.value != Tree::Null) else {
        let mut out = text.to_owned();
        if tree.get(root).is_some() {
            return Err(format!(
                "{root} is there, but empty: write `{root}: {{}}` or remove it"
            ));
        }
        if !out.is_empty() && !out.ends_with('\n') {
            out.push('\n');
        }
        out += &format!("{root}:\n");
        for (name, value) in change.put {
            out += &match value.get("name") {
                Some(_) if value.get("cmd").is_none() => format!("  - {value}\n"),
                _ => format!("  {}\n", entry(name, value)),
            };
        }
        return Ok(out);
    };
    // Where each entry begins, and what it is called.
    let (starts, is_list): (Vec<(usize, String)>, bool) = match &servers.value {
        Tree::Map(entries) => (
            entries
                .iter()
                .map(|one| (one.key_span.start, one.key.clone()))
                .collect(),
            false,
        ),
        Tree::List(nodes) => {
            let name = |node: &Node| {
                node.get("name")
                    .and_then(Node::text)
                    .unwrap_or_default()
                    .to_owned()
            };
            (
                nodes
                    .iter()
                    .map(|node| (node.span.start, name(node)))
                    .collect(),
                true,
            )
        }
        _ => return Err(format!("{root} is not a map")),
    };
    let Some((first, _)) = starts.first() else {
        // `extensions: {}`
        let span = servers.span.clone();
        let lines: String = change
            .put
            .iter()
            .map(|(name, value)| format!("\n  {}", entry(name, value)))
            .collect();
        return Ok(format!(
            "{}{lines}{}",
            text[..span.start].trim_end(),
            &text[span.end..]
        ));
    };
    let begin = line_start(*first);
    let lead = &text[begin..*first];
    if !lead.chars().all(|c| c == ' ' || c == '-') {
        return Err(format!("{root} is written in one line: change it by hand"));
    }
    let ends: Vec<usize> = starts
        .iter()
        .skip(1)
        .map(|(at, _)| line_start(*at))
        .collect();
    let last_end = {
        let end = servers.span.end.min(text.len());
        let upto = text[..end].trim_end().len();
        text[upto..]
            .find('\n')
            .map_or(text.len(), |more| upto + more + 1)
    };
    let mut out = text[..begin].to_owned();
    let put: Vec<&String> = change.put.iter().map(|(name, _)| name).collect();
    for (name, value) in change.put {
        out += &if is_list {
            format!("{lead}{value}\n")
        } else {
            format!("{lead}{}\n", entry(name, value))
        };
    }
    for (index, (start, name)) in starts.iter().enumerate() {
        let end = ends.get(index).copied().unwrap_or(last_end);
        if !change.take.contains(name) && !put.contains(&name) {
            out += &text[line_start(*start)..end];
        }
    }
    out += &text[last_end..];
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nexus_config::read::{Dialect, read};
    use std::{fs, path::Path};

    fn names(text: &str, name: &str) -> Vec<String> {
        let dialect = Dialect {
            lenient: true,
            ..Dialect::default()
        };
        let document = read(&Source::new(name, Layer::User, text), dialect);
        assert!(
            document
                .diagnoses
                .iter()
                .all(|d| d.code != "config::syntax"),
            "{text}\n{:?}",
            document.diagnoses
        );
        document
            .servers
            .into_iter()
            .map(|server| server.name)
            .collect()
    }

    #[test]
    fn an_entry_is_put_into_the_file_of_every_agent_and_nothing_else_is_lost() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config/tests/files/agents");
        for file in fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            let text = fs::read_to_string(&path).unwrap();
            let shape = match name {
                name if name.starts_with("opencode") => Shape::Opencode,
                name if name.starts_with("goose") => Shape::Goose,
                name if name.starts_with("continue") || name.starts_with("vibe") => Shape::Named,
                _ => Shape::Plain,
            };
            let put = [(
                "nexus".to_owned(),
                shape.entry("nexus", "/usr/bin/nexusctl", &["mcp"]),
            )];
            let change = Change {
                root: &["mcpServers"],
                put: &put,
                take: &[],
            };
            let with = apply(&text, Format::of(&path), &change).unwrap();
            let mut expected = names(&text, name);
            let mut found = names(&with, name);
            expected.push("nexus".to_owned());
            expected.sort();
            found.sort();
            assert_eq!(found, expected, "{name}:\n{with}");
            // Comments and all that is not a server are still there.
            for line in text
                .lines()
                .filter(|line| line.trim_start().starts_with(['/', '#']))
            {
                assert!(with.contains(line), "{name}: {line}");
            }
            let first = expected
                .iter()
                .find(|name| *name != "nexus")
                .unwrap()
                .clone();
            let change = Change {
                root: &["mcpServers"],
                put: &put,
                take: std::slice::from_ref(&first),
            };
            let without = apply(&text, Format::of(&path), &change).unwrap();
            assert!(
                !names(&without, name).contains(&first),
                "{name}:\n{without}"
            );
            assert_eq!(
                names(&without, name).len(),
                expected.len() - 1,
                "{name}:\n{without}"
            );
        }
    }

    #[test]
    fn a_file_that_is_not_there_yet_is_begun() {
        let put = [(
            "nexus".to_owned(),
            Shape::Plain.entry("nexus", "nexusctl", &["mcp"]),
        )];
        for (format, name, root) in [
            (Format::Json, "a.json", "mcpServers"),
            (Format::Toml, "a.toml", "mcp_servers"),
            (Format::Yaml, "a.yaml", "extensions"),
        ] {
            let change = Change {
                root: &[root],
                put: &put,
                take: &[],
            };
            let text = apply("", format, &change).unwrap();
            assert_eq!(names(&text, name), ["nexus"], "{text}");
            // Once more is the same.
            assert_eq!(apply(&text, format, &change).unwrap(), text);
        }
    }

    #[test]
    fn a_mark_at_the_beginning_stays_there() {
        let put = [("nexus".to_owned(), json!({"command": "nexusctl"}))];
        let change = Change {
            root: &["mcpServers"],
            put: &put,
            take: &[],
        };
        let text = apply("\u{feff}{\"a\": 1}", Format::Json, &change).unwrap();
        assert!(
            text.starts_with("\u{feff}{") && text.contains("nexusctl"),
            "{text}"
        );
        assert_eq!(text.matches(MARK).count(), 1);
    }

    #[test]
    fn what_cannot_be_read_is_not_written() {
        let change = Change {
            root: &["mcpServers"],
            put: &[],
            take: &[],
        };
        assert!(apply("{", Format::Json, &change).is_err());
        assert!(apply("a = ", Format::Toml, &change).is_err());
        assert!(apply("a: [", Format::Yaml, &change).is_err());
    }
}
