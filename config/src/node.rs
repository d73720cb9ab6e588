//! A document as a tree that knows where everything stands. Pure.

use std::ops::Range;

/// A stretch of a text, in bytes.
pub type Span = Range<usize>;

/// No document is nested deeper: whoever walks a tree may do so recursively.
pub const MAX_DEPTH: usize = 64;

/// A value, and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where.
    pub span: Span,
    /// What.
    pub value: Value,
}

/// What JSON, YAML and TOML have in common.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nothing.
    Null,
    /// Yes or no.
    Bool(bool),
    /// A number, as it was written.
    Number(String),
    /// Text.
    Text(String),
    /// Several.
    List(Vec<Node>),
    /// Several with names, in the order in which they were written.
    Map(Vec<Entry>),
}

/// One value with its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The name.
    pub key: String,
    /// Where it stands.
    pub key_span: Span,
    /// The value.
    pub node: Node,
}

impl Node {
    /// Its entries, if it is a map.
    pub fn entries(&self) -> Option<&[Entry]> {
        match &self.value {
            Value::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// The value of that name, if it is a map that has one.
    pub fn get(&self, key: &str) -> Option<&Node> {
        let entry = self.entries()?.iter().find(|entry| entry.key == key)?;
        Some(&entry.node)
    }

    /// Its text, if it is one.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// What it is, for people.
    pub fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::Text(_) => "text",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }
}
