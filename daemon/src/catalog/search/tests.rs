use super::{corpus, index::Index, rank};
use crate::{
    catalog::{Item as _, Tool},
    mcp::lists::Definition,
};
use nexus_proto::name::{Slug, tool_name};
use serde_json::{Value, json};
use std::sync::Arc;

/// Some servers with their tools, and how they are searched.
struct Library {
    tools: Vec<Vec<Arc<Tool>>>,
    indexes: Vec<Index>,
}

impl Library {
    fn new(servers: corpus::Servers) -> Self {
        let tool = |server: &str, definition: &Value| {
            let key = definition["name"].as_str().unwrap().to_owned();
            let name = tool_name(&Slug::of(server), &key);
            let json = definition.to_string().into();
            Arc::new(Tool::new(
                name,
                server.to_owned(),
                &Definition { key, json },
            ))
        };
        let mut library = Self {
            tools: Vec::new(),
            indexes: Vec::new(),
        };
        for (server, definitions) in servers {
            let tools: Vec<_> = definitions.iter().map(|d| tool(&server, d)).collect();
            let index = Index::new(&tools, Slug::of(&server).as_str()).unwrap();
            library.indexes.push(index);
            library.tools.push(tools);
        }
        library
    }

    fn one(server: &str, tools: Vec<Value>) -> Self {
        Self::new(vec![(server.to_owned(), tools)])
    }

    fn find(&self, query: &str) -> Vec<(String, f32)> {
        let indexes: Vec<_> = self.indexes.iter().collect();
        let hits = rank::rank(&indexes, query, 10).unwrap();
        let name = |hit: rank::Hit| {
            let tool = &self.tools[hit.list][hit.tool as usize];
            (tool.dotted(), hit.score)
        };
        hits.into_iter().map(name).collect()
    }

    fn names(&self, query: &str) -> Vec<String> {
        self.find(query).into_iter().map(|(name, _)| name).collect()
    }
}

fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description})
}

#[test]
fn the_right_tool_comes_first_among_ten_thousand() {
    let mut servers = corpus::known();
    let known: usize = servers.iter().map(|(_, tools)| tools.len()).sum();
    servers.extend(corpus::filler(10_000 - known, 50));
    let library = Library::new(servers);
    let queries = corpus::queries();
    assert!(queries.len() >= 30, "{}", queries.len());
    let mut wrong = Vec::new();
    for (query, expected) in queries {
        let found = library.find(query);
        if found.first().is_none_or(|(name, _)| name != expected) {
            wrong.push(format!(
                "{query:?}: not {expected} but {:?}",
                &found[..found.len().min(4)]
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_exact_name_comes_first_and_scores_one() {
    let library = Library::new(vec![
        (
            "Files".into(),
            vec![
                tool("read_many", "read read read"),
                tool("read", "Reads a file"),
            ],
        ),
        (
            "b".into(),
            vec![tool("readMany", ""), tool("Read", "Reads a book")],
        ),
    ]);
    for (query, expected) in [
        ("read", vec!["Files.read", "b.Read"]),
        ("READ", vec!["Files.read", "b.Read"]),
        ("Files.read", vec!["Files.read"]),
        ("files__read", vec!["Files.read"]),
        ("mcp:files.read", vec!["Files.read"]),
        ("b__readMany", vec!["b.readMany"]),
    ] {
        let found = library.find(query);
        let exact: Vec<_> = found.iter().filter(|(_, score)| *score == 1.0).collect();
        let names: Vec<_> = exact.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, expected, "{query}: {found:?}");
        assert_eq!(found[0].1, 1.0);
    }
    let alike = library.find("read many");
    assert_eq!(alike.len(), 4);
    assert!(
        alike[..2]
            .iter()
            .all(|(name, score)| name.to_lowercase().contains("many")
                && *score >= 0.9
                && *score < 1.0)
    );
    assert!(
        alike[2..].iter().all(|(_, score)| *score < 0.9),
        "{alike:?}"
    );
}

#[test]
fn forms_beginnings_and_slips_of_words_are_found_and_count_less() {
    let library = Library::one(
        "s",
        vec![
            tool("list_repositories", "Lists what there is"),
            tool("create_attachment", "Makes a new one"),
            tool("unrelated", "Something else"),
        ],
    );
    let score = |query: &str| {
        let found = library.find(query);
        assert_eq!(found.len(), 1, "{query}: {found:?}");
        (found[0].0.clone(), found[0].1)
    };
    let (name, whole) = score("repository");
    assert_eq!(name, "s.list_repositories");
    let (name, beginning) = score("repos");
    assert_eq!(name, "s.list_repositories");
    assert!(beginning < whole);
    for slip in ["reposiotries", "atachment", "attachmentt", "attachmant"] {
        let (_, score) = score(slip);
        assert!(score < whole, "{slip}");
    }
    // Only the last word may be unfinished, and short words are what they are.
    assert!(library.names("repos somewhere").is_empty());
    assert!(library.names("lisz").is_empty());
}

#[test]
fn parameters_titles_and_the_server_count_too() {
    let library = Library::one(
        "Weather Station",
        vec![
            json!({"name": "a", "inputSchema": {"properties": {"filter": {"properties": {"zipCode": {}}}}}}),
            json!({"name": "b", "title": "Barometer"}),
            json!({"name": "c", "annotations": {"title": "Thermometer"}}),
        ],
    );
    assert_eq!(library.names("zip code"), ["Weather Station.a"]);
    assert_eq!(library.names("barometer"), ["Weather Station.b"]);
    assert_eq!(library.names("thermometer"), ["Weather Station.c"]);
    assert_eq!(library.names("station").len(), 3);
}

#[test]
fn what_says_nothing_finds_nothing_unless_it_is_a_name() {
    let library = Library::one("s", vec![tool("the", ""), tool("read", "Reads the file")]);
    assert_eq!(library.names("the"), ["s.the", "s.read"]);
    assert_eq!(library.names("the read"), ["s.read"]);
    for nothing in ["", "  ", "__", "!?", "\u{0}", "xyzzy"] {
        assert!(library.names(nothing).is_empty(), "{nothing:?}");
    }
    assert!(Library::new(Vec::new()).names("read").is_empty());
    assert!(Library::one("s", Vec::new()).names("read").is_empty());
}

#[test]
fn odd_definitions_and_queries_harm_nobody() {
    let long = "word ".repeat(100_000);
    let library = Library::one(
        "s",
        vec![
            json!({"name": "odd", "description": 7, "title": null, "inputSchema": [1], "annotations": "x"}),
            json!({"name": "long", "description": long, "inputSchema": {"properties": {long.as_str(): {}}}}),
            json!({"name": "日本語のツール", "description": "ファイルを読む"}),
        ],
    );
    assert_eq!(library.names("odd")[0], "s.odd");
    assert_eq!(library.names("word"), ["s.long"]);
    assert_eq!(library.names("日本語のツール")[0], "s.日本語のツール");
    library.find(&"many different words of a long query ".repeat(28));
    library.find(&"é".repeat(512));
}

#[test]
fn what_is_in_other_lists_changes_nothing() {
    let mine = || {
        (
            "mine".to_owned(),
            vec![tool("read_file", "Reads a file"), tool("x", "file")],
        )
    };
    let alone = Library::new(vec![mine()]);
    let both = Library::new(vec![
        mine(),
        ("other".into(), vec![tool("read_files", "file file")]),
    ]);
    let indexes: Vec<_> = both.indexes[..1].iter().collect();
    let hits = rank::rank(&indexes, "read the file", 10).unwrap();
    let scores: Vec<_> = hits.iter().map(|hit| hit.score).collect();
    let expected: Vec<_> = alone
        .find("read the file")
        .iter()
        .map(|(_, score)| *score)
        .collect();
    assert_eq!(scores, expected);
}
