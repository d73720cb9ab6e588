//! From text to a tree. Pure.

mod json;
mod toml;
mod yaml;

use crate::{
    diagnosis::Diagnosis,
    node::Node,
    source::{Format, Source},
};
use std::sync::Arc;

/// The tree of a document. An empty one is an empty map.
pub fn parse(source: &Arc<Source>) -> Result<Node, Box<Diagnosis>> {
    match source.format {
        Format::Json => json::parse(source),
        Format::Yaml => yaml::parse(source),
        Format::Toml => toml::parse(source),
    }
}

fn empty(source: &Source) -> Node {
    Node {
        span: 0..source.text.len(),
        value: crate::node::Value::Map(Vec::new()),
    }
}

/// The same for every format.
fn too_deep(source: &Arc<Source>, at: usize) -> Box<Diagnosis> {
    let limit = crate::node::MAX_DEPTH;
    Box::new(
        Diagnosis::error("config::too-deep", "it is nested too deeply")
            .in_file(source)
            .at(at..at + 1, format!("this is level {}", limit + 1))
            .note(format!("no configuration has more than {limit} levels")),
    )
}
