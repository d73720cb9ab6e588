use super::*;
use crate::{
    model::{HttpKind, Setting, Stdio, Text, TlsVersion, Transport},
    source::Layer,
};
use std::time::Duration;

fn of(text: &str) -> Document {
    read(
        &Source::new("/etc/mcp.json", Layer::User, text),
        Dialect::default(),
    )
}

fn good(text: &str) -> Vec<Server> {
    let document = of(text);
    assert_eq!(document.diagnoses, [], "{text}");
    document.servers
}

fn stdio(server: &Server) -> (&Stdio, Vec<&str>) {
    let Some(Transport::Stdio(stdio)) = &server.transport else {
        panic!("{server:?}")
    };
    let words = std::iter::once(&stdio.command).chain(&stdio.args);
    (stdio, words.map(|text| text.raw.as_str()).collect())
}

#[test]
fn both_spellings_of_a_command_are_read() {
    for text in [
        r#"{"mcpServers": {"a": {"command": "npx", "args": ["-y", "x"]}}}"#,
        r#"{"servers": {"a": {"command": ["npx", "-y", "x"], "type": "stdio"}}}"#,
        r#"{"servers": [{"name": "a", "command": ["npx", "-y"], "args": ["x"]}]}"#,
        r#"{"context_servers": {"a": {"command": {"path": "npx", "args": ["-y", "x"]}}}}"#,
        r#"{"a": {"command": "npx", "args": ["-y", "x"]}}"#,
    ] {
        let servers = good(text);
        assert_eq!(
            (servers[0].name.as_str(), stdio(&servers[0]).1),
            ("a", vec!["npx", "-y", "x"]),
            "{text}"
        );
    }
}

#[test]
fn a_time_is_seconds_or_has_a_unit() {
    for (written, milliseconds) in [
        ("1.5", 1500),
        ("\"30s\"", 30_000),
        ("\"500ms\"", 500),
        ("\"2m\"", 120_000),
        ("\"7\"", 7000),
        ("\"1h\"", 3_600_000),
    ] {
        let servers = good(&format!(
            r#"{{"mcpServers": {{"a": {{"command": "x", "timeout": {written}}}}}}}"#
        ));
        assert_eq!(
            servers[0].timeout,
            Some(Duration::from_millis(milliseconds)),
            "{written}"
        );
    }
    let document = of(r#"{"mcpServers": {"a": {"command": "x", "timeout": 30000}}}"#);
    assert_eq!(document.servers[0].timeout, Some(Duration::from_secs(30)));
    assert!(document.diagnoses[0].message.contains("milliseconds"));
    for wrong in ["-1", "\"soon\"", "0", "[]"] {
        let document = of(&format!(
            r#"{{"mcpServers": {{"a": {{"command": "x", "timeout": {wrong}}}}}}}"#
        ));
        assert!(
            document.diagnoses[0].is_error() && document.servers.is_empty(),
            "{wrong}"
        );
    }
}

#[test]
fn a_server_that_is_left_out_needs_no_command() {
    for text in [
        r#"{"mcpServers": {"a": {"disabled": true}}}"#,
        r#"{"mcpServers": {"a": {"command": "x", "enabled": false}}}"#,
        r#"{"mcp": {"enabled": false, "servers": [{"id": "a", "command": "x"}]}}"#,
    ] {
        assert!(!good(text)[0].enabled, "{text}");
    }
}

#[test]
fn http_is_read_with_all_that_belongs_to_it() {
    for (text, kind) in [
        (r#""url": "http://x/mcp""#, HttpKind::Any),
        (r#""httpUrl": "http://x/mcp""#, HttpKind::Streamable),
        (r#""serverUrl": "http://x/mcp""#, HttpKind::Any),
        (r#""type": "sse", "url": "http://x/mcp""#, HttpKind::Sse),
        (
            r#""type": "streamable-http", "url": "http://x/mcp""#,
            HttpKind::Streamable,
        ),
        (
            r#""type": "streamableHttp", "url": "http://x/mcp""#,
            HttpKind::Streamable,
        ),
        (
            r#""transport": "http", "url": "http://x/mcp""#,
            HttpKind::Any,
        ),
    ] {
        let servers = good(&format!(
            r#"{{"mcpServers": {{"a": {{{text}, "headers": {{"X": "y"}}}}}}}}"#
        ));
        let Some(Transport::Http(http)) = &servers[0].transport else {
            panic!("{servers:?}")
        };
        assert_eq!(
            (http.kind, http.headers.len(), http.url.raw.as_str()),
            (kind, 1, "http://x/mcp"),
            "{text}"
        );
    }
}

#[test]
fn what_only_http_has_is_read() {
    let servers = good(
        r#"{"mcpServers": {
        "a": {"url": "https://x/mcp", "bearerToken": {"file": "~/t"}, "forwardAuth": true, "proxy": "http://p:1",
            "tls": {"caFile": "ca.pem", "cert": "c.pem", "key": "k.pem", "minVersion": 1.3, "verify": false},
            "connect_timeout": "2s", "start_timeout": 9},
        "b": {"url": "https://x/mcp", "bearer_token_env_var": "T", "requestOptions": {
            "headers": {"A": "b"}, "verifySsl": false, "caBundlePath": "ca.pem", "proxy": "http://p:2",
            "clientCertificate": {"cert": "c.pem", "key": "k.pem"}}},
        "c": {"command": "x", "connect_timeout": 5}
    }}"#,
    );
    let http = |at: usize| match &servers[at].transport {
        Some(Transport::Http(http)) => http,
        other => panic!("{other:?}"),
    };
    let (a, b) = (http(0), http(1));
    assert!(matches!(&a.bearer_token, Some(Setting::File(file)) if file.raw == "~/t"));
    assert!(a.forward_auth && !b.forward_auth);
    assert_eq!(a.tls.min_version, TlsVersion::V1_3);
    assert_eq!(
        (a.connect_timeout, servers[0].start_timeout),
        (Some(Duration::from_secs(2)), Some(Duration::from_secs(9)))
    );
    assert!(matches!(&b.bearer_token, Some(Setting::Text(text)) if text.raw == "${T}"));
    assert_eq!(
        (b.headers.len(), &*b.proxy.as_ref().unwrap().raw),
        (1, "http://p:2")
    );
    for http in [a, b] {
        let raw = |text: &Option<Text>| text.as_ref().map(|text| text.raw.clone()).unwrap();
        let files = [raw(&http.tls.ca), raw(&http.tls.cert), raw(&http.tls.key)];
        assert_eq!(files, ["ca.pem", "c.pem", "k.pem"]);
        assert!(http.tls.unverified.is_some());
    }
    assert_eq!(servers[2].start_timeout, Some(Duration::from_secs(5)));
    let slip = of(r#"{"mcpServers": {"a": {"url": "https://x", "tls": {"verfy": false}}}}"#);
    assert!(
        slip.diagnoses[0]
            .to_string()
            .contains("did you mean \"verify\"?")
    );
    let old = of(r#"{"mcpServers": {"a": {"url": "https://x", "tls": {"min_version": "1.0"}}}}"#);
    assert!(old.diagnoses[0].is_error() && old.diagnoses[0].to_string().contains("1.2, 1.3"));
}

#[test]
fn what_contradicts_itself_is_told() {
    for (text, code) in [
        (r#""type": "http", "command": "x""#, "config::transport"),
        (
            r#""type": "stdio", "url": "http://x""#,
            "config::no-command",
        ),
        (
            r#""type": "carrier-pigeon", "command": "x""#,
            "config::type",
        ),
        (r#""command": "", "args": []"#, "config::no-command"),
        (r#""command": []"#, "config::no-command"),
        (r#""url": "localhost:3000""#, "config::url"),
        (r#""command": "x", "replicas": 0"#, "config::type"),
        (r#""command": "x", "replicas": 17"#, "config::type"),
        (r#""command": "x", "max_in_flight": 0"#, "config::type"),
        (r#""command": "x", "sharing": "everybody""#, "config::type"),
        (r#""command": "x", "env": {"A": {"b": 1}}"#, "config::type"),
    ] {
        let document = of(&format!(r#"{{"mcpServers": {{"a": {{{text}}}}}}}"#));
        assert_eq!(
            document.diagnoses.first().map(|d| (d.code, d.is_error())),
            Some((code, true)),
            "{text}"
        );
        assert!(document.diagnoses[0].server.as_deref() == Some("a"));
        assert!(document.servers.is_empty(), "{text}");
    }
    let both = of(r#"{"mcpServers": {"a": {"command": "x", "url": "http://y"}}}"#);
    assert!(matches!(
        both.servers[0].transport,
        Some(Transport::Stdio(_))
    ));
    assert_eq!(both.diagnoses[0].code, "config::both");
}

#[test]
fn what_is_wrong_with_one_does_not_hide_the_others() {
    let document = of(
        r#"{"mcpServers": {"a": {}, "b": {"command": "x"}, "c": {"command": "x", "timeout": []}}}"#,
    );
    assert_eq!(document.servers.len(), 1);
    assert_eq!(document.diagnoses.len(), 2);
}

#[test]
fn secrets_may_stand_elsewhere() {
    let servers = good(
        r#"{"mcpServers": {"a": {"command": "x", "env": {
        "A": {"file": "~/a"}, "B": {"cmd": ["pass", "b"]}, "C": {"cmd": "pass 'c d'"}, "D": 5, "E": true, "F": null
    }, "envFile": "x.env"}}}"#,
    );
    let (stdio, _) = stdio(&servers[0]);
    assert_eq!(stdio.env.len(), 5);
    assert_eq!(stdio.env_files.len(), 1);
}

#[test]
fn in_a_file_that_is_only_ours_every_key_is_known() {
    let text =
        "[deamon]\nlog = \"info\"\n[policy]\nlevle = \"yolo\"\n[mcp_servers.a]\ncommand = \"x\"\n";
    let told = |name: &str| {
        let document = read(&Source::new(name, Layer::User, text), Dialect::default());
        document
            .diagnoses
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    let warnings = told("nexus.toml");
    assert!(
        warnings.len() == 2
            && warnings[0].contains("did you mean \"daemon\"")
            && warnings[1].contains("did you mean \"level\""),
        "{warnings:?}"
    );
}

#[test]
fn what_agents_may_do_is_read() {
    use crate::policy::{Consent, Level, Oversize, Pins, Rate};
    let text = r#"
[policy]
level = "sandboxed"
consent = "call"
approval_timeout = "30s"
operators = ["my-dashboard"]
rate_limit = "100/min burst 20"
max_result = "1MB"
oversize = "truncate"
pins = "block"
audit = false
audit_arguments = true

[policy.agents.claude]
executable = "claude"
projects = ["~/work"]
level = "trusted"
consent = "server"
profile = "web"
rate_limit = "10/s"

[policy.agents.nobody]
level = "yolo"

[mcp_servers.a]
command = "x"
shared = false
consent = "server"
rate_limit = { server = "5/s", tools = { "search_*" = "1/s", bad = 7 } }
max_result = "512KiB"
oversize = "refuse"
"#;
    let source = Source::new("nexus.toml", Layer::User, text);
    let document = read(&source, Dialect::default());
    let told: Vec<_> = document.diagnoses.iter().map(ToString::to_string).collect();
    assert!(
        told.len() == 2
            && told[0].contains("\"nobody\" must be a rule for some")
            && told[1].contains("\"bad\" must be a rate"),
        "{told:?}"
    );
    let policy = &document.settings.policy;
    assert_eq!(policy.level, Some(Level::Sandboxed));
    assert_eq!(policy.consent, Some(Consent::Call));
    assert_eq!(policy.rate_limit, Rate::parse("100/min burst 20"));
    assert_eq!(
        (policy.max_result, policy.oversize),
        (Some(1_000_000), Some(Oversize::Truncate))
    );
    assert_eq!(
        (policy.pins, policy.audit),
        (Some(Pins::Block), Some(false))
    );
    let rule = &policy.rules[0];
    assert_eq!(
        (rule.name.as_str(), rule.level),
        ("claude", Some(Level::Trusted))
    );
    assert_eq!(rule.programs, ["claude"]);
    assert!(document.servers.is_empty());
    let good = text.replace(", bad = 7", "");
    let document = read(
        &Source::new("nexus.toml", Layer::User, good),
        Dialect::default(),
    );
    let server = &document.servers[0];
    assert!(!server.shared);
    assert_eq!(server.consent, Some(Consent::Server));
    assert_eq!(server.rate_limit, Rate::parse("5/s"));
    assert_eq!(server.tool_rate_limits[0].0, "search_*");
    assert_eq!(server.max_result, Some(512 * 1024));
}
