//! JSON, as people write it: with comments and trailing commas. Pure.

use super::{empty, too_deep};
use crate::{
    diagnosis::Diagnosis,
    node::{Entry, MAX_DEPTH, Node, Value},
    source::Source,
};
use jsonc_parser::{
    CollectOptions, ParseOptions,
    ast::{ObjectPropName, Value as Ast},
    common::Ranged as _,
    errors::{ParseError, ParseErrorKind},
    parse_to_ast,
};
use std::sync::Arc;

/// What agents accept, and no more: what only we could read would be of no use elsewhere.
pub(crate) fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

pub(super) fn parse(source: &Arc<Source>) -> Result<Node, Box<Diagnosis>> {
    let parsed = parse_to_ast(&source.text, &CollectOptions::default(), &options());
    let ast = parsed.map_err(|error| explain(source, &error))?;
    match ast.value {
        Some(value) => node(source, value, 0),
        None => Ok(empty(source)),
    }
}

fn node(source: &Arc<Source>, ast: Ast<'_>, depth: usize) -> Result<Node, Box<Diagnosis>> {
    let range = ast.range();
    let span = range.start..range.end;
    if depth > MAX_DEPTH {
        return Err(too_deep(source, span.start));
    }
    let value = match ast {
        Ast::NullKeyword(_) => Value::Null,
        Ast::BooleanLit(literal) => Value::Bool(literal.value),
        Ast::NumberLit(literal) => Value::Number(literal.value.to_owned()),
        Ast::StringLit(literal) => Value::Text(literal.value.into_owned()),
        Ast::Array(array) => {
            let elements = array.elements.into_iter();
            let nodes: Result<_, _> = elements.map(|one| node(source, one, depth + 1)).collect();
            Value::List(nodes?)
        }
        Ast::Object(object) => {
            let mut entries = Vec::with_capacity(object.properties.len());
            for property in object.properties {
                let range = match &property.name {
                    ObjectPropName::String(literal) => literal.range,
                    ObjectPropName::Word(literal) => literal.range,
                };
                entries.push(Entry {
                    key: property.name.into_string(),
                    key_span: range.start..range.end,
                    node: node(source, property.value, depth + 1)?,
                });
            }
            Value::Map(entries)
        }
    };
    Ok(Node { span, value })
}

/// Says it as somebody would who looks over your shoulder.
fn explain(source: &Arc<Source>, error: &ParseError) -> Box<Diagnosis> {
    use ParseErrorKind as K;
    let range = error.range();
    let text = source.text.as_str();
    let at = text.floor_char_boundary(range.start.min(text.len()));
    let next = text[at..].chars().next();
    let (what, cause) = match error.kind() {
        K::ExpectedComma => (
            "expected `,` or the end before this",
            "a comma is missing after what stands before",
        ),
        K::ExpectedColonAfterObjectKey => (
            "expected `:` here",
            "a name and its value are written as \"name\": value",
        ),
        K::ExpectedObjectValue => ("expected a value here", "after `:` there is nothing"),
        K::SingleQuotedStringsNotAllowed => (
            "expected a double quote",
            "text stands in double quotes: \"npx\", not 'npx'",
        ),
        K::ExpectedStringObjectProperty | K::UnexpectedTokenInObject => (
            "expected a name in double quotes",
            "names stand in quotes, and there is one comma between two entries",
        ),
        K::UnexpectedWord => (
            "this is not a value",
            "text stands in double quotes; without them only true, false, null and numbers are known",
        ),
        K::UnexpectedComma => (
            "this comma is one too many",
            "there is one comma between two entries",
        ),
        K::UnterminatedArray => ("this list has no end", "a `]` is missing"),
        K::UnterminatedObject => ("this has no end", "a `}` is missing"),
        K::UnterminatedCommentBlock => ("this comment has no end", "a `*/` is missing"),
        K::UnexpectedCloseBrace | K::UnexpectedCloseBracket => (
            "nothing is open that this could close",
            "there is one bracket too many, or one is missing before",
        ),
        K::MultipleRootJsonValues => (
            "the document has ended before this",
            "there is one bracket too many before this, or two documents in one file",
        ),
        K::NestingDepthExceeded => return too_deep(source, at),
        K::String(_) if next == Some('\'') => (
            "expected a double quote",
            "text stands in double quotes: \"npx\", not 'npx'",
        ),
        K::String(_) => (
            "this text is not good",
            "its closing quote is missing, or a \\ in it is not doubled: write \"C:\\\\Users\"",
        ),
        _ => (
            "this is not JSON",
            "look for a missing comma, single quotes, or a name without quotes",
        ),
    };
    let (line, column) = source.place(at);
    Box::new(
        Diagnosis::error("config::syntax", format!("invalid JSON at line {line}, column {column}"))
            .in_file(source)
            .at(pointer(text, at, range.end), what)
            .note(cause)
            .fix("the usual mistakes: a missing comma, single quotes, a name without quotes, a backslash that is not doubled"),
    )
}

/// Something to point at, and not more than a line of it.
fn pointer(text: &str, start: usize, end: usize) -> std::ops::Range<usize> {
    let rest = &text[start..];
    let line = rest.find('\n').unwrap_or(rest.len());
    let end = end.clamp(start, start + line);
    start
        ..end.max(
            start
                + rest
                    .chars()
                    .next()
                    .filter(|c| *c != '\n')
                    .map_or(0, char::len_utf8),
        )
}
