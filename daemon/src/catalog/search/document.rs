//! What of a tool is searched, and where it counts how much. Pure.

use super::{super::Tool, words};
use crate::catalog::Item as _;
use serde_json::{Map, Value};
use tantivy::{
    TantivyDocument,
    schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions},
};

/// As much of a description is read. The first sentences say what a tool does.
const MAX_TEXT: usize = 8 * 1024;

/// So many names of parameters of one tool, and no deeper than this.
const MAX_PARAMETERS: usize = 128;
const MAX_DEPTH: usize = 4;

/// Where words may stand. All of these hold stems.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Name,
    Title,
    Server,
    Description,
    Parameters,
}

impl Place {
    pub(super) const ALL: [Self; 5] = [
        Self::Name,
        Self::Title,
        Self::Server,
        Self::Description,
        Self::Parameters,
    ];

    /// How much it says of a tool that a word stands here, between 0 and 1: `times` among `length` words.
    pub(super) fn weight(self, times: u32, length: u32) -> f32 {
        let (times, length) = (times as f32, length.max(1) as f32);
        match self {
            // The fewer words a name has, the more each of them says.
            Self::Name => 0.45 + 0.45 / length,
            Self::Title => 0.3 + 0.3 / length,
            Self::Server => 0.4,
            Self::Description => 0.45 * times / (times + 0.5 + 0.5 * length / 20.0),
            Self::Parameters => 0.1 + 0.2 / length,
        }
    }
}

/// The fields of an index.
#[derive(Debug, Clone)]
pub(super) struct Fields {
    pub(super) schema: Schema,
    places: [Field; Place::ALL.len()],
    /// All words as they were written: what begins like this, what is almost this.
    pub(super) spelling: Field,
    /// All names of a tool, whole.
    pub(super) whole: Field,
    /// Its own name without what stands between the words.
    pub(super) squashed: Field,
}

impl Fields {
    pub(super) fn new() -> Self {
        let mut schema = Schema::builder();
        let mut field = |name: &str, tokenizer: &str, counted: IndexRecordOption| {
            let indexing = TextFieldIndexing::default()
                .set_tokenizer(tokenizer)
                .set_index_option(counted)
                .set_fieldnorms(counted == IndexRecordOption::WithFreqs);
            schema.add_text_field(name, TextOptions::default().set_indexing_options(indexing))
        };
        // The words are taken apart before they come here.
        let mut stems = |name| field(name, "whitespace", IndexRecordOption::WithFreqs);
        let places = [
            stems("name"),
            stems("title"),
            stems("server"),
            stems("description"),
            stems("parameters"),
        ];
        let spelling = field("spelling", "whitespace", IndexRecordOption::Basic);
        let whole = field("whole", "raw", IndexRecordOption::Basic);
        let squashed = field("squashed", "raw", IndexRecordOption::Basic);
        Self {
            schema: schema.build(),
            places,
            spelling,
            whole,
            squashed,
        }
    }

    pub(super) fn of(&self, place: Place) -> Field {
        self.places[place as usize]
    }

    /// A tool as the index takes it. `slug` is how its server is called in names.
    pub(super) fn document(&self, tool: &Tool, slug: &str) -> TantivyDocument {
        let definition: Map<String, Value> =
            serde_json::from_slice(&tool.definition).unwrap_or_default();
        let text = |key: &str| definition.get(key).and_then(Value::as_str);
        let annotations = definition.get("annotations");
        let titles = [
            text("title"),
            annotations.and_then(|a| a.get("title")?.as_str()),
        ];
        let title = titles.into_iter().flatten().next().unwrap_or_default();
        let mut parameters = Vec::new();
        if let Some(schema) = definition.get("inputSchema") {
            collect_parameters(schema, 0, &mut parameters);
        }
        let server = match tool.server.eq_ignore_ascii_case(slug) {
            true => slug.to_owned(),
            false => format!("{} {slug}", tool.server),
        };
        let mut document = TantivyDocument::default();
        let mut spelling: Vec<String> = Vec::new();
        for (place, text) in [
            (Place::Name, tool.tool.as_str()),
            (Place::Title, head(title)),
            (Place::Server, &server),
            (
                Place::Description,
                head(text("description").unwrap_or_default()),
            ),
            (Place::Parameters, &parameters.join(" ")),
        ] {
            let mut found = words::split(text);
            if place == Place::Server {
                found.sort_unstable();
                found.dedup();
            }
            let stems: Vec<_> = found.iter().map(|word| words::stem(word)).collect();
            document.add_text(self.of(place), stems.join(" "));
            spelling.extend(found);
        }
        spelling.sort_unstable();
        spelling.dedup();
        document.add_text(self.spelling, spelling.join(" "));
        let own = &tool.tool;
        let mut whole = [
            own.clone(),
            tool.name.clone(),
            tool.dotted(),
            format!("{slug}.{own}"),
        ]
        .map(|name| name.to_lowercase());
        whole.sort_unstable();
        for (n, name) in whole.iter().enumerate() {
            if n == 0 || whole[n - 1] != *name {
                document.add_text(self.whole, name);
            }
        }
        document.add_text(self.squashed, words::squash(own));
        document
    }
}

/// The names of parameters, and of what is inside them.
fn collect_parameters(schema: &Value, depth: usize, names: &mut Vec<String>) {
    if depth >= MAX_DEPTH {
        return;
    }
    if let Some(Value::Object(properties)) = schema.get("properties") {
        for (name, inner) in properties {
            if names.len() >= MAX_PARAMETERS {
                return;
            }
            names.push(head(name).to_owned());
            collect_parameters(inner, depth + 1, names);
        }
    }
    if let Some(items) = schema.get("items") {
        collect_parameters(items, depth + 1, names);
    }
}

/// As much of a text as is read.
fn head(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parameters_are_found_to_a_depth() {
        let mut deep = json!({"properties": {"bottom": {}}});
        for _ in 0..MAX_DEPTH {
            deep = json!({"properties": {"level": deep}});
        }
        let mut names = Vec::new();
        collect_parameters(&deep, 0, &mut names);
        assert_eq!(names, ["level"; MAX_DEPTH]);

        let list = json!({"properties": {"rows": {"type": "array", "items": {"properties": {"cell": {}}}}}});
        names.clear();
        collect_parameters(&list, 0, &mut names);
        assert_eq!(names, ["rows", "cell"]);

        let many: Map<_, _> = (0..500).map(|n| (format!("p{n}"), json!({}))).collect();
        names.clear();
        collect_parameters(&json!({"properties": many}), 0, &mut names);
        assert_eq!(names.len(), MAX_PARAMETERS);
    }

    #[test]
    fn a_word_says_most_in_a_short_name() {
        let name = |length| Place::Name.weight(1, length);
        assert!(name(1) > name(2) && name(2) > name(5));
        assert!(name(5) > Place::Description.weight(3, 10));
        for place in Place::ALL {
            for length in [0, 1, 10, 1000] {
                let weight = place.weight(100, length);
                assert!((0.0..1.0).contains(&weight), "{place:?}: {weight}");
            }
        }
    }
}
