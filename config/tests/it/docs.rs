//! The page about configuration says what there is, and its examples are good.

use nexus_config::{
    Layer, Source, keys,
    keys::Key,
    read::{Dialect, read},
};
use std::{fs, path::Path};

fn page() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/configuration.md"))
        .unwrap()
}

fn row(key: &Key) -> String {
    let aliases: Vec<String> = key
        .aliases
        .iter()
        .map(|alias| format!("`{alias}`"))
        .collect();
    format!(
        "| `{}` | {} | {} | {} |",
        key.name,
        aliases.join(", "),
        key.value,
        key.what
    )
}

#[test]
fn every_key_is_on_the_page_and_nothing_else() {
    let page = page();
    let rows: Vec<String> = keys::SERVER
        .iter()
        .chain(keys::TLS)
        .chain(keys::PROFILE)
        .chain(keys::POLICY)
        .chain(keys::RULE)
        .chain(keys::TOP)
        .map(row)
        .collect();
    for row in &rows {
        assert!(page.contains(row.as_str()), "missing:\n{row}");
    }
    let section = page
        .split("<!-- keys:")
        .nth(1)
        .unwrap()
        .split("## Variables")
        .next()
        .unwrap();
    for line in section.lines().filter(|line| line.starts_with("| `")) {
        assert!(
            rows.iter().any(|row| row == line),
            "no longer true:\n{line}"
        );
    }
}

#[test]
fn its_examples_are_good() {
    let page = page();
    let blocks = page
        .split("```")
        .skip(1)
        .step_by(2)
        .filter_map(|block| block.split_once('\n'));
    let mut seen = 0;
    for (language, text) in blocks {
        let source = Source::new(format!("example.{language}"), Layer::User, text);
        let document = read(&source, Dialect::default());
        assert_eq!(document.diagnoses, [], "{text}");
        assert!(!document.servers.is_empty());
        seen += 1;
    }
    assert_eq!(seen, 5);
}

/// Everything that can be said is in an example somewhere.
#[test]
fn there_is_an_example_of_everything() {
    let page = page();
    let examples: String = page.split("```").skip(1).step_by(2).collect();
    let rare = [
        "bearer_token_env_var",
        "env_http_headers",
        "request_options",
        "startup_timeout_ms",
        "enabled",
        "tools",
        "title",
        "description",
    ];
    for key in keys::SERVER.iter().filter(|key| !rare.contains(&key.name)) {
        let spelled = std::iter::once(&key.name).chain(key.aliases);
        let found = spelled.into_iter().any(|name| {
            examples.contains(&format!("\"{name}\""))
                || examples.contains(&format!("{name}:"))
                || examples.contains(&format!("{name} ="))
        });
        assert!(found || key.name == "env", "{}", key.name);
    }
}
