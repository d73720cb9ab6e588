//! Suggestions.

use crate::RawJson;
use serde::Deserialize;

/// What an argument might be.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Completion {
    /// The suggestions, the best first: 100 at the most.
    pub values: Vec<String>,
    /// How many there would be, where the server tells.
    pub total: Option<u64>,
    /// Whether there are more than are told.
    pub has_more: bool,
    /// All of it, as the server wrote it.
    pub raw: RawJson,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Wire {
    values: Vec<String>,
    total: Option<u64>,
    has_more: Option<bool>,
}

impl Completion {
    pub(crate) fn new(raw: RawJson) -> Self {
        let wire: Wire = raw.field("completion").unwrap_or_default();
        Self {
            values: wire.values,
            total: wire.total,
            has_more: wire.has_more.unwrap_or(false),
            raw,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestions_are_read_whatever_is_left_out() {
        let read = |text: &'static str| {
            Completion::new(RawJson::from_wire(text.as_bytes().into(), "x").unwrap())
        };
        let full = read(r#"{"completion":{"values":["a","b"],"total":7,"hasMore":true}}"#);
        assert_eq!(
            (full.values.len(), full.total, full.has_more),
            (2, Some(7), true)
        );
        let bare = read(r#"{"completion":{"values":["a"]}}"#);
        assert_eq!((bare.total, bare.has_more), (None, false));
        assert!(read("5").values.is_empty());
    }
}
