//! What a person sees.

use nexus_config::{
    Diagnosis, Layer, Source,
    read::{Dialect, read},
    render::{Look, render},
};

const FANCY: Look = Look::Fancy {
    color: false,
    width: 100,
};

fn of(name: &str, text: &str) -> Vec<Diagnosis> {
    let path = format!("/home/u/.config/nexus/{name}");
    read(&Source::new(path, Layer::User, text), Dialect::default()).diagnoses
}

fn both(name: &str, text: &str) -> String {
    let found = of(name, text);
    assert!(!found.is_empty());
    let shown = |diagnosis: &Diagnosis| {
        format!(
            "{}\n{}",
            render(diagnosis, FANCY),
            render(diagnosis, Look::Plain)
        )
    };
    found.iter().map(shown).collect::<Vec<_>>().join("\n")
}

#[test]
fn invalid_json() {
    // The example of the seed.
    let text = "{\n  // global\n\n  \"servers\": [\n    { \"name\": \"test\" \"command\": [\"echo\"] }\n  ]\n}\n";
    insta::assert_snapshot!(both("mcp.json", text));
}

#[test]
fn wrong_type() {
    let text = "{\n  \"mcpServers\": {\n    \"github\": {\n      \"command\": { \"program\": 5 },\n      \"args\": \"-y\",\n      \"env\": [\"TOKEN\"]\n    }\n  }\n}\n";
    insta::assert_snapshot!(both("mcp.json", text));
}

#[test]
fn no_transport() {
    let text = "{\n  \"mcpServers\": {\n    \"test\": { \"timeout\": 5 }\n  }\n}\n";
    insta::assert_snapshot!(both("mcp.json", text));
}

#[test]
fn unknown_key() {
    let text = "{\n  \"mcpServers\": {\n    \"test\": { \"command\": \"npx\", \"arg\": [\"-y\"], \"env\": { \"TOKEN\": \"hunter2\" } }\n  }\n}\n";
    let shown = both("mcp.json", text);
    assert!(!shown.contains("hunter2"));
    insta::assert_snapshot!(shown);
}

#[test]
fn two_of_one_name() {
    let text = "mcpServers:\n  - name: time\n    command: uvx mcp-server-time\n  - name: time\n    command: [uvx, mcp-server-time]\n";
    insta::assert_snapshot!(both("nexus.yaml", text));
}

#[test]
fn invalid_toml() {
    insta::assert_snapshot!(both("nexus.toml", "[mcp_servers.time]\ncommand = uvx\n"));
}

#[test]
fn invalid_yaml() {
    insta::assert_snapshot!(both(
        "nexus.yaml",
        "mcp:\n  servers:\n    - id: a\n     command: x\n"
    ));
}

#[test]
fn a_rule_for_nobody() {
    insta::assert_snapshot!(both(
        "nexus.toml",
        "[policy.agents.ci]\nlevel = \"sandboxed\"\n\n[mcp_servers.time]\ncommand = \"uvx\"\n"
    ));
}

#[test]
fn colours_are_for_those_who_want_them() {
    let found = of("mcp.json", "{");
    let color = |color| render(&found[0], Look::Fancy { color, width: 80 });
    assert!(color(true).contains('\x1b') && !color(false).contains('\x1b'));
}
