//! Broken files: a clear error each, and never a panic or a secret.

use crate::property;
use nexus_config::{
    Diagnosis, Layer, Severity, Source,
    read::{Dialect, Document, read},
    render::{Look, render},
};
use proptest::prelude::*;
use std::{fmt::Write as _, fs, path::Path};

const CANARY: &str = "cAnArY-5f3b9e2a7c1d4086-sEcReT";

fn of(name: &str, text: &str) -> Document {
    read(&Source::new(name, Layer::User, text), Dialect::default())
}

fn shown(diagnosis: &Diagnosis) -> String {
    let fancy = Look::Fancy {
        color: false,
        width: 100,
    };
    format!(
        "{diagnosis}\n{}\n{}\n{}",
        render(diagnosis, Look::Plain),
        render(diagnosis, fancy),
        diagnosis.to_json()
    )
}

const JSON: &str = r#"{
  // the servers
  "mcpServers": {
    "github": {
      "command": "npx", "args": ["-y", "server", "--token", "CANARY"],
      "env": { "GITHUB_TOKEN": "CANARY", "OTHER": "é\n${HOME}" },
      "timeout": 30, "disabled": false,
    },
    "remote": { "url": "https://u:CANARY@example.com/mcp?key=CANARY", "headers": { "Authorization": "Bearer CANARY" }, "bearer_token": "CANARY", "proxy": "http://u:CANARY@proxy:1" }
  }
}"#;

const YAML: &str = "# the servers\nmcp:\n  servers:\n    - id: github\n      command: npx\n      args: [-y, server, --token, CANARY]\n      env: &env\n        GITHUB_TOKEN: CANARY\n        OTHER: \"é ${HOME}\"\n      timeout: 30s\n    - id: remote\n      url: https://example.com/mcp?key=CANARY\n      headers:\n        Authorization: Bearer CANARY\n    - id: third\n      command: x\n      env: *env\n";

const TOML: &str = "# the servers\n[mcp_servers.github]\ncommand = \"npx\"\nargs = [\"-y\", \"server\", \"--token\", \"CANARY\"]\nenv = { GITHUB_TOKEN = \"CANARY\", OTHER = \"é\" }\ntimeout = 30\n\n[mcp_servers.remote]\nurl = \"https://example.com/mcp?key=CANARY\"\n[mcp_servers.remote.headers]\nAuthorization = \"Bearer CANARY\"\n";

fn files() -> [(&'static str, String); 3] {
    [("a.json", JSON), ("a.yaml", YAML), ("a.toml", TOML)]
        .map(|(name, text)| (name, text.replace("CANARY", CANARY)))
}

#[test]
fn a_file_cut_at_any_byte_is_told_of_and_shows_no_secret() {
    for (name, text) in files() {
        let whole = of(name, &text);
        assert_eq!(whole.diagnoses, [], "{name}");
        assert!(whole.servers.len() >= 2, "{name}");
        for cut in 0..text.len() {
            let part = String::from_utf8_lossy(&text.as_bytes()[..cut]).into_owned();
            let document = of(name, &part);
            for diagnosis in &document.diagnoses {
                let shown = shown(diagnosis);
                // A part of a secret is one, too.
                assert!(
                    !shown.contains(&CANARY[..10]),
                    "{name} cut at {cut}: {shown}"
                );
            }
            // JSON that is cut is never good.
            let is_good = document
                .diagnoses
                .iter()
                .all(|d| d.severity == Severity::Warning);
            assert!(
                name != "a.json" || !is_good || part.trim().is_empty(),
                "{cut}"
            );
        }
    }
}

fn inside(text: &str, at: usize) -> bool {
    let mut places = text.match_indices(CANARY);
    places.any(|(start, _)| (start..start + CANARY.len()).contains(&at))
}

#[test]
fn a_byte_that_is_changed_is_no_reason_to_panic() {
    for (name, text) in files() {
        for at in 0..text.len() {
            for (index, byte) in [
                b'"', b'{', b'}', b'[', b']', b',', b':', b'\\', b'\n', b'\t', b'&', b'*', b'#',
                b'0', 0,
            ]
            .into_iter()
            .enumerate()
            {
                // Each of them at every fifth place: all of them everywhere take minutes.
                if (at + index) % 5 != 0 {
                    continue;
                }
                let mut bytes = text.clone().into_bytes();
                bytes[at] = byte;
                // Half a secret in a line of its own looks like anything else.
                if byte == b'\n' && inside(&text, at) {
                    continue;
                }
                let Ok(source) = Source::of_bytes(Path::new(name), Layer::User, &bytes) else {
                    continue;
                };
                let document = read(&source, Dialect::default());
                for diagnosis in document
                    .diagnoses
                    .iter()
                    .filter(|d| d.code == "config::syntax")
                {
                    assert!(diagnosis.place().is_some());
                    let shown = shown(diagnosis);
                    assert!(
                        !shown.contains(&CANARY[8..20]),
                        "{name} at {at} {:?}: {shown}",
                        byte as char
                    );
                }
            }
        }
    }
}

#[test]
fn what_has_the_wrong_type_is_told_by_its_name() {
    let mut told = String::new();
    for value in [
        "null",
        "true",
        "1",
        "-1",
        "1e999",
        "\"x\"",
        "[]",
        "[1]",
        "[[]]",
        "{}",
        "{\"a\": 1}",
    ] {
        for key in nexus_config::keys::SERVER {
            let name = key.name;
            let text =
                format!(r#"{{"mcpServers": {{"x": {{"command": "y", "{name}": {value}}}}}}}"#);
            for diagnosis in of("a.json", &text).diagnoses {
                assert!(
                    diagnosis.message.contains(name)
                        || matches!(
                            name,
                            "command"
                                | "rate_limit"
                                | "type"
                                | "url"
                                | "tools"
                                | "env"
                                | "headers"
                                | "timeout"
                                | "health"
                                | "request_options"
                                | "env_http_headers"
                                | "tls"
                                | "args"
                        ),
                    "{diagnosis}"
                );
                writeln!(told, "{name} = {value}: {diagnosis}").unwrap();
            }
        }
    }
    insta::assert_snapshot!("wrong_types", told);
}

#[test]
fn odd_files_get_a_clear_answer() {
    let deep = format!(
        "{{\"mcpServers\": {}1{}}}",
        "[".repeat(5000),
        "]".repeat(5000)
    );
    let deep_yaml = format!("mcpServers: {}", "[".repeat(5000));
    let deep_toml = format!("a = {}", "[".repeat(5000));
    let laughs = "a: &a [x, x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\ne: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]\nf: &f [*e, *e, *e, *e, *e, *e, *e, *e, *e, *e]\n";
    let mut told = String::new();
    for (name, text) in [
        ("a.json", "[]"),
        ("a.json", "\"x\""),
        ("a.json", "{\"mcpServer\": {}}"),
        ("a.json", "{\"mcpServers\": 5}"),
        (
            "a.json",
            "{\"mcpServers\": {\"a\": {\"command\": \"x\"}, \"a\": {\"command\": \"y\"}}}",
        ),
        ("a.json", "{\"servers\": [{\"command\": \"x\"}]}"),
        ("a.json", "{\"mcpServers\": {\" \": {\"command\": \"x\"}}}"),
        ("a.json", "{\"mcpServers\": {\"a\": \"npx x\"}}"),
        ("a.json", "{'mcpServers': {}}"),
        ("a.json", "{mcpServers: {}}"),
        ("a.json", "{\"mcpServers\": {}} {}"),
        (
            "a.json",
            "{\"mcpServers\": {\"a\": {\"command\": \"C:\\Users\\x\"}}}",
        ),
        ("a.json", "\u{0}"),
        ("a.json", deep.as_str()),
        ("a.yaml", "a: [1"),
        ("a.yaml", "\tmcp: 1"),
        ("a.yaml", "mcp: &x\n  servers: *x\n"),
        ("a.yaml", "a: *nobody"),
        (
            "a.yaml",
            "mcpServers:\n  a:\n    command: x\n  a:\n    command: y\n",
        ),
        ("a.yaml", laughs),
        ("a.yaml", deep_yaml.as_str()),
        ("a.toml", "a = "),
        ("a.toml", "[a]\n[a]\n"),
        ("a.toml", deep_toml.as_str()),
    ] {
        let document = of(name, text);
        let text: String = text.chars().take(60).collect();
        assert!(!document.diagnoses.is_empty(), "{text}");
        writeln!(told, "== {text:?}").unwrap();
        for diagnosis in document.diagnoses {
            writeln!(told, "{}", render(&diagnosis, Look::Plain)).unwrap();
        }
    }
    insta::assert_snapshot!("odd_files", told);
}

#[test]
fn ten_megabytes_are_refused_and_one_is_read() {
    let large = format!("{{\"mcpServers\": {{{}}}}}", " ".repeat(10 * 1024 * 1024));
    let error = Source::of_bytes(Path::new("a.json"), Layer::User, large.as_bytes()).unwrap_err();
    assert_eq!(
        error.message,
        "the file is too large for a configuration (10 MiB)"
    );
    let servers: Vec<String> = (0..10_000).map(|n| format!("\"s{n}\": {{\"command\": \"x\", \"args\": [\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"]}}")).collect();
    let document = of(
        "a.json",
        &format!("{{\"mcpServers\": {{{}}}}}", servers.join(",")),
    );
    assert_eq!(document.servers.len(), 10_000);
}

#[test]
fn the_files_of_agents_can_be_cut_anywhere() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files/agents");
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        for cut in (0..bytes.len()).step_by(31) {
            property::check(&bytes[..cut]);
        }
        property::check(&bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn no_text_is_too_odd(text in "([a-c]|\"|'|\\{|\\}|\\[|\\]|,|:|=|\n| |-|&|\\*|#|\\||>|!|%|\\?|é|\\\\|\\$|mcpServers|command|env|url|timeout|[0-9])*") {
        property::check(text.as_bytes());
    }

    #[test]
    fn no_bytes_are_too_odd(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        property::check(&bytes);
    }
}
