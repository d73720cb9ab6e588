//! A server as we write it ourselves, with all that it has. Pure.

use crate::{
    layers::workspace_of,
    model::{Http, HttpKind, Server, Setting, Start, Text, Tls, TlsVersion, Transport},
};
use serde_json::{Map, Value, json};
use std::{path::Path, time::Duration};

/// The entry of a server for a file elsewhere. What may be secret is in it.
pub fn entry(server: &Server) -> Value {
    let mut map = Map::new();
    let mut put = |key: &str, value: Value| {
        map.insert(key.to_owned(), value);
    };
    let path = &server.origin.source.path;
    let absolute = |text: &Text| {
        let folder = workspace_of(path).unwrap_or(Path::new(""));
        let is_open = text.raw.starts_with(['$', '{', '~']);
        if is_open {
            text.raw.clone()
        } else {
            folder.join(&text.raw).display().to_string()
        }
    };
    match &server.transport {
        Some(Transport::Stdio(stdio)) => {
            put("command", json!(stdio.command.raw));
            if !stdio.args.is_empty() {
                put("args", json!(raw(&stdio.args)));
            }
            if !stdio.env.is_empty() {
                put("env", settings(&stdio.env));
            }
            if !stdio.env_passthrough.is_empty() {
                put("env_passthrough", json!(stdio.env_passthrough));
            }
            if !stdio.env_files.is_empty() {
                put(
                    "env_file",
                    json!(stdio.env_files.iter().map(absolute).collect::<Vec<_>>()),
                );
            }
            if let Some(cwd) = &stdio.cwd {
                put("cwd", json!(absolute(cwd)));
            }
        }
        Some(Transport::Http(http)) => {
            match http.kind {
                HttpKind::Any => {}
                HttpKind::Streamable => put("type", json!("streamable-http")),
                HttpKind::Sse => put("type", json!("sse")),
            }
            put("url", json!(http.url.raw));
            if !http.headers.is_empty() {
                put("headers", settings(&http.headers));
            }
            if let Some(token) = &http.bearer_token {
                put("bearer_token", setting(token));
            }
            if http.forward_auth {
                put("forward_auth", json!(true));
            }
            let tls = tls(&http.tls, absolute);
            if !tls.is_empty() {
                put("tls", Value::Object(tls));
            }
            if let Some(proxy) = &http.proxy {
                put("proxy", json!(proxy.raw));
            }
            if let Some(time) = http.connect_timeout {
                put("connect_timeout", seconds(time));
            }
        }
        None => {}
    }
    if let Some(timeout) = server.timeout {
        put("timeout", seconds(timeout));
    }
    if let Some(timeout) = server.start_timeout {
        put("start_timeout", seconds(timeout));
    }
    if server.start == Some(Start::Lazy) {
        put("start", json!("lazy"));
    }
    if !server.tools.include.is_empty() && server.tools.include != ["*"] {
        put("include_tools", json!(server.tools.include));
    }
    if !server.tools.exclude.is_empty() {
        put("exclude_tools", json!(server.tools.exclude));
    }
    if !server.enabled {
        put("disabled", json!(true));
    }
    Value::Object(map)
}

fn raw(texts: &[Text]) -> Vec<&str> {
    texts.iter().map(|text| text.raw.as_str()).collect()
}

fn settings(settings: &[(String, Setting)]) -> Value {
    let map: Map<String, Value> = settings
        .iter()
        .map(|(name, value)| (name.clone(), setting(value)))
        .collect();
    Value::Object(map)
}

fn setting(setting: &Setting) -> Value {
    match setting {
        Setting::Text(text) => json!(text.raw),
        Setting::File(path) => json!({ "file": path.raw }),
        Setting::Command(argv) => json!({ "cmd": raw(argv) }),
        Setting::Keyring(entry) => json!({ "keyring": entry.raw }),
    }
}

fn tls(tls: &Tls, absolute: impl Fn(&Text) -> String) -> Map<String, Value> {
    let mut map = Map::new();
    for (key, file) in [("ca", &tls.ca), ("cert", &tls.cert), ("key", &tls.key)] {
        if let Some(file) = file {
            map.insert(key.to_owned(), json!(absolute(file)));
        }
    }
    if tls.min_version != TlsVersion::default() {
        let version = json!(tls.min_version.as_str());
        map.insert("min_version".to_owned(), version);
    }
    if tls.unverified.is_some() {
        map.insert("verify".to_owned(), json!(false));
    }
    map
}

/// Whole seconds look better.
fn seconds(time: Duration) -> Value {
    if time.subsec_nanos() == 0 {
        json!(time.as_secs())
    } else {
        json!(time.as_secs_f64())
    }
}

/// Whether two servers are the same program, or the same address, with the same name or the same secrets: one
/// program with two tokens is two servers.
pub fn is_same(one: &Server, other: &Server) -> bool {
    let namesakes = one.name == other.name;
    let shown = |http: &Http| {
        let token = http.bearer_token.as_ref().map(setting);
        (settings(&http.headers), token)
    };
    match (&one.transport, &other.transport) {
        (Some(Transport::Stdio(one)), Some(Transport::Stdio(other))) => {
            (&one.command.raw, raw(&one.args)) == (&other.command.raw, raw(&other.args))
                && (namesakes || settings(&one.env) == settings(&other.env))
        }
        (Some(Transport::Http(one)), Some(Transport::Http(other))) => {
            one.url.raw == other.url.raw && (namesakes || shown(one) == shown(other))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        read::{Dialect, read},
        show,
        source::{Layer, Source},
    };

    #[test]
    fn what_is_written_is_read_as_the_same() {
        let text = r#"{"mcpServers": {"a": {"command": "x", "args": ["y"], "env": {"A": "b", "C": {"file": "~/d"}},
            "timeout": 1.5, "cwd": "/z", "disabled": true, "include_tools": ["t"]},
            "b": {"type": "sse", "url": "http://x", "headers": {"H": "v"}, "timeout": 30},
            "c": {"url": "https://x", "bearer_token": {"file": "~/t"}, "forward_auth": true, "proxy": "http://p:1",
                "connect_timeout": 2, "tls": {"ca": "/ca", "cert": "/c", "key": "/k", "min_version": "1.3", "verify": false}}
            }}"#;
        let read = |text: &str| {
            read(
                &Source::new("/p/.mcp.json", Layer::User, text),
                Dialect::default(),
            )
            .servers
        };
        let servers = read(text);
        let entries: Map<String, Value> = servers
            .iter()
            .map(|server| (server.name.clone(), entry(server)))
            .collect();
        let again = read(&json!({ "mcpServers": entries }).to_string());
        assert_eq!(again.len(), 3);
        assert!(!is_same(&servers[0], &servers[1]));
        let mut work = servers[0].clone();
        work.name = "work".to_owned();
        assert!(is_same(&servers[0], &work));
        if let Some(Transport::Stdio(stdio)) = &mut work.transport {
            stdio.env.clear();
        }
        assert!(!is_same(&servers[0], &work));
        for (one, other) in servers.iter().zip(&again) {
            assert!(is_same(one, other));
            assert_eq!(entry(one), entry(other));
            assert_eq!(show::server(one, false), show::server(other, false));
        }
    }
}
