//! The files of every agent, and the examples that people have been given, are read unchanged.

use nexus_config::{
    Layer, Source,
    read::{Dialect, Document, read},
    show,
};
use std::{fmt::Write as _, fs, path::Path};

fn of(folder: &str, name: &str, dialect: Dialect) -> Document {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/files")
        .join(folder)
        .join(name);
    let source = Source::new(name, Layer::User, fs::read_to_string(path).unwrap());
    read(&source, dialect)
}

/// All servers of a file, a line for each.
fn told(document: &Document) -> String {
    let mut text = String::new();
    for diagnosis in &document.diagnoses {
        writeln!(text, "! {diagnosis}").unwrap();
    }
    for server in &document.servers {
        writeln!(text, "{}: {}", server.name, show::server(server, false)).unwrap();
    }
    text
}

fn snapshot(folder: &str, dialect: fn(&str) -> Dialect) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/files")
        .join(folder);
    let mut names: Vec<String> = fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let mut text = String::new();
    for name in names {
        let document = of(folder, &name, dialect(&name));
        writeln!(text, "== {name}\n{}", told(&document)).unwrap();
    }
    text
}

#[test]
fn the_file_of_every_agent_is_read() {
    let text = snapshot("agents", |name| Dialect {
        milliseconds: name.starts_with("gemini") || name.starts_with("opencode"),
        bare_variables: name.starts_with("gemini"),
        lenient: true,
    });
    // What Zed's own documentation has for an address is none.
    assert_eq!(text.matches('!').count(), 1, "{text}");
    insta::assert_snapshot!("agents", text);
}

#[test]
fn the_examples_of_the_seeds_are_read() {
    let text = snapshot("seeds", |_| Dialect::default());
    insta::assert_snapshot!("seeds", text);
}

#[test]
fn the_files_of_agents_are_good_as_files_of_ours() {
    for name in [
        "claude_desktop_config.json",
        "cursor.json",
        "vscode-mcp.json",
        "codex-config.toml",
        "antigravity.json",
        "windsurf.json",
        "cline.json",
        "roo.json",
        "continue-config.yaml",
        "opencode.jsonc",
        "copilot-mcp-config.json",
        "lmstudio.json",
        "kiro.json",
        "vibe-config.toml",
        "amp-settings.json",
        "claude.json",
    ] {
        let document = of("agents", name, Dialect::default());
        let errors: Vec<_> = document.diagnoses.iter().filter(|d| d.is_error()).collect();
        assert!(
            errors.is_empty() && !document.servers.is_empty(),
            "{name}: {errors:?}"
        );
    }
}
