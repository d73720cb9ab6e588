//! The configuration as people may see it: in the shape of `mcp.json`, without secrets. Pure.

use crate::{
    mask,
    model::{Health, HttpKind, Server, Setting, Stdio, Text, Tls, TlsVersion, Transport},
    policy::{Consent, Oversize},
};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// What stands instead of a secret.
pub const HIDDEN: &str = "***";

/// A server, without secrets. With `origin`, also where it came from.
pub fn server(server: &Server, origin: bool) -> Value {
    let mut map = Map::new();
    let mut put = |key: &str, value: Value| {
        let is_empty = match &value {
            Value::Null => true,
            Value::Array(list) => list.is_empty(),
            Value::Object(map) => map.is_empty(),
            _ => false,
        };
        if !is_empty {
            map.insert(key.to_owned(), value);
        }
    };
    match &server.transport {
        Some(Transport::Stdio(stdio)) => {
            put("command", json!(stdio.command.raw));
            put("args", json!(args(&stdio.args)));
            put("env", settings(&stdio.env));
            put("env_passthrough", json!(stdio.env_passthrough));
            put(
                "env_file",
                json!(
                    stdio
                        .env_files
                        .iter()
                        .map(|file| &file.raw)
                        .collect::<Vec<_>>()
                ),
            );
            put("cwd", json!(stdio.cwd.as_ref().map(|cwd| &cwd.raw)));
        }
        Some(Transport::Http(http)) => {
            let kind = match http.kind {
                HttpKind::Any => "http",
                HttpKind::Streamable => "streamable-http",
                HttpKind::Sse => "sse",
            };
            put("type", json!(kind));
            put("url", json!(url(&http.url.raw)));
            put("headers", settings(&http.headers));
            put(
                "bearer_token",
                http.bearer_token.as_ref().map_or(Value::Null, setting),
            );
            if http.forward_auth {
                put("forward_auth", json!(true));
            }
            put("tls", tls(&http.tls));
            put("proxy", json!(http.proxy.as_ref().map(|to| url(&to.raw))));
            put("connect_timeout", json!(http.connect_timeout.map(seconds)));
        }
        None => {}
    }
    if !server.enabled {
        put("disabled", json!(true));
    }
    put("timeout", json!(server.timeout.map(seconds)));
    put("start_timeout", json!(server.start_timeout.map(seconds)));
    put(
        "health",
        match server.health {
            None => Value::Null,
            Some(Health::Off) => json!(false),
            Some(Health::On {
                interval,
                timeout,
                threshold,
            }) => json!({
                "interval": interval.map(seconds), "timeout": timeout.map(seconds), "threshold": threshold,
            }),
        },
    );
    put("start", json!(server.start.map(|start| start.as_str())));
    put("idle_stop", json!(server.idle_stop.map(seconds)));
    if server.sharing != Default::default() {
        put("sharing", json!(server.sharing.as_str()));
    }
    put("replicas", json!(server.replicas));
    put("max_in_flight", json!(server.max_in_flight));
    put("max_queue", json!(server.max_queue));
    for (key, yes) in [
        ("trust_hints", server.trust_hints),
        ("fail_if_no_tools", server.fail_if_no_tools),
    ] {
        if yes {
            put(key, json!(true));
        }
    }
    if !server.shared {
        put("shared", json!(false));
    }
    put("consent", json!(server.consent.map(Consent::as_str)));
    put("rate_limit", rate_limit(server));
    put("max_result", json!(server.max_result));
    put("oversize", json!(server.oversize.map(Oversize::as_str)));
    put("include_tools", json!(server.tools.include));
    put("exclude_tools", json!(server.tools.exclude));
    if origin {
        put(
            "source",
            json!(server.origin.source.path.display().to_string()),
        );
        put("line", json!(server.origin.line()));
        put("layer", json!(server.origin.source.layer.as_str()));
    }
    Value::Object(map)
}

fn rate_limit(server: &Server) -> Value {
    let whole = server.rate_limit.map(|rate| rate.to_string());
    if server.tool_rate_limits.is_empty() {
        return json!(whole);
    }
    let tools = server.tool_rate_limits.iter();
    let tools = tools.map(|(tool, rate)| (tool.clone(), json!(rate.to_string())));
    let mut map = Map::new();
    map.extend(whole.map(|rate| ("server".to_owned(), json!(rate))));
    map.insert("tools".to_owned(), Value::Object(tools.collect()));
    Value::Object(map)
}

/// Arguments, those that may be secrets hidden.
pub fn args(args: &[Text]) -> Vec<String> {
    let mut before = "";
    let mut shown = Vec::new();
    for arg in args {
        let raw = arg.raw.as_str();
        shown.push(match raw.split_once('=') {
            _ if !mask::hides_argument(before, raw) => raw.to_owned(),
            Some((name, _)) if name.starts_with('-') => format!("{name}={HIDDEN}"),
            _ => HIDDEN.to_owned(),
        });
        before = raw;
    }
    shown
}

/// A program and its arguments as one line for a shell, those that may be secrets hidden.
pub fn command_line(stdio: &Stdio) -> String {
    let mut words = vec![stdio.command.raw.clone()];
    words.extend(args(&stdio.args));
    // What is to be filled in is shown as it was written.
    let quoted = |word: &String| match word.contains("${") || word == HIDDEN {
        true => word.clone(),
        false => shlex::try_quote(word).map_or_else(|_| word.clone(), Into::into),
    };
    let words: Vec<String> = words.iter().map(quoted).collect();
    words.join(" ")
}

/// What a server is, in one line without secrets.
pub fn summary(server: &Server) -> String {
    match &server.transport {
        Some(Transport::Stdio(stdio)) => command_line(stdio),
        Some(Transport::Http(http)) => url(&http.url.raw),
        None => "disabled".to_owned(),
    }
}

/// An address, without user, password and query.
pub fn url(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let (rest, query) = match rest.split_once('?') {
        Some((rest, _)) => (rest, "?***"),
        None => (rest, ""),
    };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let hide = |part: &str| {
        if mask::looks_secret(part) {
            HIDDEN.to_owned()
        } else {
            part.to_owned()
        }
    };
    let path: Vec<String> = path.split('/').map(hide).collect();
    format!("{scheme}://{host}{}{query}", path.join("/"))
}

fn settings(settings: &[(String, Setting)]) -> Value {
    let map: Map<String, Value> = settings
        .iter()
        .map(|(name, value)| (name.clone(), setting(value)))
        .collect();
    Value::Object(map)
}

/// A value that may be a secret.
pub fn setting(setting: &Setting) -> Value {
    match setting {
        // What only refers to a secret is none.
        Setting::Text(text) if mask::is_reference(&text.raw) => json!(text.raw),
        Setting::Text(_) => json!(HIDDEN),
        Setting::File(path) => json!({ "file": path.raw }),
        Setting::Command(argv) => json!({ "cmd": args(argv) }),
        Setting::Keyring(entry) => json!({ "keyring": entry.raw }),
    }
}

fn tls(tls: &Tls) -> Value {
    let mut map = Map::new();
    for (key, file) in [("ca", &tls.ca), ("cert", &tls.cert), ("key", &tls.key)] {
        if let Some(file) = file {
            map.insert(key.to_owned(), json!(file.raw));
        }
    }
    if tls.min_version != TlsVersion::default() {
        let version = json!(tls.min_version.as_str());
        map.insert("min_version".to_owned(), version);
    }
    if tls.unverified.is_some() {
        map.insert("verify".to_owned(), json!(false));
    }
    Value::Object(map)
}

fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}
