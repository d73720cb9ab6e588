//! YAML: the first document of a file. Pure.

use super::{empty, too_deep};
use crate::{
    diagnosis::Diagnosis,
    node::{Entry, MAX_DEPTH, Node, Span, Value},
    source::Source,
};
use saphyr_parser::{Event, Parser, ScalarStyle, Span as Mark};
use std::{collections::HashMap, sync::Arc};

/// A few lines of YAML can stand for billions of values.
const MAX_NODES: usize = 200_000;

/// A list or a map that has no end yet.
struct Open {
    start: usize,
    anchor: usize,
    is_map: bool,
    nodes: Vec<Node>,
}

pub(super) fn parse(source: &Arc<Source>) -> Result<Node, Box<Diagnosis>> {
    let bytes = Bytes::new(&source.text);
    let mut open: Vec<Open> = Vec::new();
    let mut anchors: HashMap<usize, (Node, usize)> = HashMap::new();
    let mut count = 0;
    let mut parser = Parser::new_from_str(&source.text);
    while let Some(event) = parser.next_event() {
        let (event, mark) = event.map_err(|error| {
            let at = bytes.at(error.marker().index());
            let (line, column) = source.place(at);
            Box::new(
                Diagnosis::error("config::syntax", format!("invalid YAML at line {line}, column {column}"))
                    .in_file(source)
                    .at(source.clip(&(at..at + 1)), error.info())
                    .fix("the usual mistakes: tabs for indentation, lines that are not indented alike, a `:` without a space after it, text with `: ` or ` #` in it that is not in quotes"),
            )
        })?;
        let span = bytes.span(&mark);
        let (node, anchor) = match event {
            Event::Scalar(text, style, anchor, _) => {
                let value = scalar(&text, style);
                (Node { span, value }, anchor)
            }
            Event::SequenceStart(anchor, _) | Event::MappingStart(anchor, _) => {
                if open.len() >= MAX_DEPTH {
                    return Err(too_deep(source, span.start));
                }
                open.push(Open {
                    start: span.start,
                    anchor,
                    is_map: matches!(event, Event::MappingStart(..)),
                    nodes: Vec::new(),
                });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(done) = open.pop() else { continue };
                let anchor = done.anchor;
                (close(source, done, span.end)?, anchor)
            }
            Event::Alias(anchor) => {
                let Some((node, size)) = anchors.get(&anchor) else {
                    return Err(Box::new(
                        Diagnosis::error("config::syntax", "this refers to itself, or to nothing")
                            .in_file(source)
                            .at(span, "what is this?"),
                    ));
                };
                count += size;
                if depth(node) + open.len() > MAX_DEPTH {
                    return Err(too_deep(source, span.start));
                }
                (
                    Node {
                        span,
                        value: node.value.clone(),
                    },
                    0,
                )
            }
            Event::DocumentEnd | Event::StreamEnd => break,
            Event::Nothing | Event::StreamStart | Event::DocumentStart(_) => continue,
        };
        count += 1;
        if count > MAX_NODES {
            return Err(Box::new(
                Diagnosis::error(
                    "config::too-large",
                    "it stands for more values than any configuration has",
                )
                .in_file(source)
                .at(node.span, "up to here"),
            ));
        }
        if anchor > 0 {
            anchors.insert(anchor, (node.clone(), size(&node)));
        }
        match open.last_mut() {
            Some(parent) => parent.nodes.push(node),
            None => {
                return Ok(if node.value == Value::Null {
                    empty(source)
                } else {
                    node
                });
            }
        }
    }
    Ok(empty(source))
}

fn close(source: &Arc<Source>, done: Open, end: usize) -> Result<Node, Box<Diagnosis>> {
    let span = source.clip(&(done.start..end));
    if !done.is_map {
        return Ok(Node {
            span,
            value: Value::List(done.nodes),
        });
    }
    let mut entries: Vec<Entry> = Vec::new();
    let mut merged = Vec::new();
    let mut nodes = done.nodes.into_iter();
    while let (Some(key), Some(node)) = (nodes.next(), nodes.next()) {
        let name = match &key.value {
            Value::Text(text) | Value::Number(text) => text.clone(),
            Value::Bool(yes) => yes.to_string(),
            Value::Null => "null".to_owned(),
            Value::List(_) | Value::Map(_) => {
                return Err(Box::new(
                    Diagnosis::error("config::syntax", "the name of a value must be text")
                        .in_file(source)
                        .at(key.span.clone(), format!("this is {}", key.kind())),
                ));
            }
        };
        match node.value {
            // What others have written before, to be built upon.
            Value::Map(others) if name == "<<" => merged.extend(others),
            value => entries.push(Entry {
                key: name,
                key_span: key.span,
                node: Node {
                    span: node.span,
                    value,
                },
            }),
        }
    }
    for entry in merged {
        if !entries.iter().any(|own| own.key == entry.key) {
            entries.push(entry);
        }
    }
    Ok(Node {
        span,
        value: Value::Map(entries),
    })
}

fn scalar(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return Value::Text(text.to_owned());
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => {
            let digits = text.trim_start_matches(['-', '+', '.']);
            let is_number =
                digits.starts_with(|c: char| c.is_ascii_digit()) && text.parse::<f64>().is_ok();
            if is_number {
                Value::Number(text.to_owned())
            } else {
                Value::Text(text.to_owned())
            }
        }
    }
}

fn children(node: &Node) -> Box<dyn Iterator<Item = &Node> + '_> {
    match &node.value {
        Value::List(nodes) => Box::new(nodes.iter()),
        Value::Map(entries) => Box::new(entries.iter().map(|entry| &entry.node)),
        _ => Box::new(std::iter::empty()),
    }
}

fn size(node: &Node) -> usize {
    1 + children(node).map(size).sum::<usize>()
}

fn depth(node: &Node) -> usize {
    1 + children(node).map(depth).max().unwrap_or(0)
}

/// The parser counts characters, and we count bytes.
struct Bytes {
    /// `None` where both are the same.
    starts: Option<Vec<usize>>,
    len: usize,
}

impl Bytes {
    fn new(text: &str) -> Self {
        let starts = (!text.is_ascii()).then(|| text.char_indices().map(|(at, _)| at).collect());
        Self {
            starts,
            len: text.len(),
        }
    }

    fn at(&self, index: usize) -> usize {
        match &self.starts {
            Some(starts) => starts.get(index).copied().unwrap_or(self.len),
            None => index.min(self.len),
        }
    }

    fn span(&self, mark: &Mark) -> Span {
        let start = self.at(mark.start.index());
        start..self.at(mark.end.index()).max(start)
    }
}
