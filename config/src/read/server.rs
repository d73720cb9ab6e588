//! One server. Pure.

use super::{Fields, head, http};
use crate::{
    diagnosis::Diagnosis,
    keys::{self, Key},
    model::{
        Health, Http, HttpKind, Origin, Server, Setting, Sharing, Start, Stdio, Text, ToolFilter,
        Transport,
    },
    node::{Entry, Node, Span, Value},
    policy::{Consent, Oversize},
    scope::Scope,
};
use std::{sync::Arc, time::Duration};

/// More processes of one server would not make it faster.
const MAX_REPLICAS: usize = 16;

/// What is being found out about a server.
#[derive(Default)]
struct Parts {
    command: Vec<Text>,
    has_command: bool,
    stdio: Stdio,
    url: Option<Text>,
    /// Gemini and others: which key was used says what it is.
    url_kind: Option<HttpKind>,
    http: Http,
    kind: Option<(Kind, Span)>,
    enabled: bool,
    start: Option<Start>,
    auto_start: Option<bool>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Stdio,
    Http(HttpKind),
    /// Something that another program has built in.
    Elsewhere,
}

pub(super) fn read(
    fields: &mut Fields<'_>,
    name: &str,
    span: &Span,
    node: &Node,
) -> Option<Server> {
    let errors = |fields: &Fields<'_>| fields.diagnoses.iter().filter(|d| d.is_error()).count();
    let before = errors(fields);
    if name.trim().is_empty() {
        fields.tell(
            Diagnosis::error("config::no-name", "a server has no name")
                .at(span.clone(), "give it one"),
        );
        return None;
    }
    let Some(entries) = node.entries() else {
        if !fields.dialect.lenient {
            fields.wrong(
                name,
                node,
                "a server, with a \"command\" or a \"url\"",
                &format!(
                    "\"{name}\": {{\"command\": \"npx\", \"args\": [\"-y\", \"some-server\"]}}"
                ),
            );
        }
        return None;
    };
    let mut parts = Parts {
        enabled: true,
        ..Parts::default()
    };
    let mut server = Server {
        name: name.to_owned(),
        title: None,
        origin: Origin {
            source: Arc::clone(fields.source),
            span: span.clone(),
        },
        scope: Scope::of(fields.source.project()),
        enabled: true,
        transport: None,
        timeout: None,
        start_timeout: None,
        health: None,
        start: None,
        idle_stop: None,
        sharing: Sharing::default(),
        replicas: None,
        max_in_flight: None,
        max_queue: None,
        trust_hints: false,
        fail_if_no_tools: false,
        tools: ToolFilter::default(),
        shared: true,
        consent: None,
        rate_limit: None,
        tool_rate_limits: Vec::new(),
        max_result: None,
        oversize: None,
    };
    for entry in entries {
        field(fields, &mut server, &mut parts, entry);
    }
    server.enabled = parts.enabled;
    server.start = parts.start.or(match parts.auto_start {
        Some(false) => Some(Start::Lazy),
        _ => None,
    });
    let connect_timeout = parts.http.connect_timeout;
    server.transport = transport(fields, &server, parts, span);
    if matches!(server.transport, Some(Transport::Stdio(_))) {
        // Others call it so.
        server.start_timeout = server.start_timeout.or(connect_timeout);
    }
    let is_good = errors(fields) == before && (server.transport.is_some() || !server.enabled);
    is_good.then_some(server)
}

fn field(fields: &mut Fields<'_>, server: &mut Server, parts: &mut Parts, entry: &Entry) {
    let Some(key) = keys::find(&entry.key) else {
        unknown(fields, keys::SERVER, entry);
        return;
    };
    let node = &entry.node;
    match key.name {
        "command" => command(fields, parts, entry),
        "args" => parts.stdio.args = fields.texts(entry),
        "env" => parts.stdio.env = fields.settings(entry),
        "env_passthrough" => parts.stdio.env_passthrough.extend(fields.names(entry)),
        "env_file" => parts.stdio.env_files = fields.texts(entry),
        "cwd" => parts.stdio.cwd = fields.text(entry),
        "type" => parts.kind = kind(fields, entry).map(|kind| (kind, node.span.clone())),
        "url" => {
            if entry.key == "httpUrl" {
                parts.url_kind = Some(HttpKind::Streamable);
            }
            // Gemini has both, and prefers the newer.
            if parts.url.is_none() || entry.key == "httpUrl" {
                parts.url = fields.text(entry);
            }
        }
        "headers" => parts.http.headers.extend(fields.settings(entry)),
        "bearer_token" => parts.http.bearer_token = fields.setting(entry),
        "bearer_token_env_var" => {
            if let Some(text) = fields.text(entry) {
                parts.http.bearer_token = Some(http::variable(text));
            }
        }
        "env_http_headers" => {
            for (name, setting) in fields.settings(entry) {
                if let Setting::Text(text) = setting {
                    parts.http.headers.push((name, http::variable(text)));
                }
            }
        }
        "forward_auth" => parts.http.forward_auth = fields.bool(entry).unwrap_or(false),
        "tls" => http::tls(fields, &mut parts.http.tls, entry),
        "proxy" => parts.http.proxy = fields.text(entry),
        "connect_timeout" => parts.http.connect_timeout = fields.time(entry, false),
        "request_options" => http::request_options(fields, &mut parts.http, node),
        "timeout" => timeout(fields, server, entry),
        "start_timeout" => {
            // Here the unit is in the name.
            let milliseconds = fields.dialect.milliseconds;
            fields.dialect.milliseconds = milliseconds && !entry.key.ends_with("_sec");
            server.start_timeout = fields.time(entry, false);
            fields.dialect.milliseconds = milliseconds;
        }
        "startup_timeout_ms" => {
            let number = fields.count(entry, 1..=usize::MAX);
            server.start_timeout = number.map(|ms| Duration::from_millis(ms as u64));
        }
        "disabled" => parts.enabled &= !fields.bool(entry).unwrap_or(false),
        "enabled" => parts.enabled &= fields.bool(entry).unwrap_or(true),
        "start" => parts.start = fields.word(entry, Start::ALL, Start::as_str),
        "auto_start" => parts.auto_start = fields.bool(entry),
        "idle_stop" => server.idle_stop = fields.time(entry, true),
        "sharing" => {
            server.sharing = fields
                .word(entry, Sharing::ALL, Sharing::as_str)
                .unwrap_or_default()
        }
        "replicas" => server.replicas = fields.count(entry, 1..=MAX_REPLICAS),
        "max_in_flight" => server.max_in_flight = fields.count(entry, 1..=usize::MAX),
        "max_queue" => server.max_queue = fields.count(entry, 0..=usize::MAX),
        "trust_hints" => server.trust_hints = fields.bool(entry).unwrap_or(false),
        "fail_if_no_tools" => server.fail_if_no_tools = fields.bool(entry).unwrap_or(false),
        "health" => server.health = health(fields, entry),
        "include_tools" => server.tools.include = fields.names(entry),
        "exclude_tools" => server.tools.exclude = fields.names(entry),
        "tools" => tools(fields, server, entry),
        "shared" => server.shared = fields.bool(entry).unwrap_or(true),
        "consent" => server.consent = fields.word(entry, Consent::ALL, Consent::as_str),
        "rate_limit" => rate_limit(fields, server, entry),
        "max_result" => server.max_result = fields.size(entry),
        "oversize" => server.oversize = fields.word(entry, Oversize::ALL, Oversize::as_str),
        "name" | "title" => {
            server.title = node
                .text()
                .filter(|text| *text != server.name)
                .map(str::to_owned)
        }
        _ => {}
    }
}

pub(super) fn unknown(fields: &mut Fields<'_>, known: &'static [Key], entry: &Entry) {
    if keys::is_foreign(&entry.key) || fields.dialect.lenient {
        return;
    }
    let diagnosis = Diagnosis::warning(
        "config::unknown-key",
        format!("unknown key {:?}", entry.key),
    );
    fields.tell(match keys::nearest(known, &entry.key) {
        Some(near) => diagnosis.at(entry.key_span.clone(), format!("did you mean {near:?}?")),
        None => diagnosis.at(entry.key_span.clone(), "it means nothing here"),
    });
}

fn command(fields: &mut Fields<'_>, parts: &mut Parts, entry: &Entry) {
    parts.has_command = entry.node.value != Value::Null;
    match &entry.node.value {
        Value::List(_) => parts.command = fields.texts(entry),
        // Zed had it so once.
        Value::Map(inner) => {
            for entry in inner {
                match entry.key.as_str() {
                    "path" | "command" => parts.command = fields.texts(entry),
                    "args" => parts.stdio.args = fields.texts(entry),
                    "env" => parts.stdio.env = fields.settings(entry),
                    _ => unknown(fields, keys::SERVER, entry),
                }
            }
        }
        Value::Null => {}
        _ => parts.command = fields.text(entry).into_iter().collect(),
    }
}

fn kind(fields: &mut Fields<'_>, entry: &Entry) -> Option<Kind> {
    let written = entry
        .node
        .text()
        .unwrap_or_default()
        .to_lowercase()
        .replace('_', "-");
    Some(match written.as_str() {
        "stdio" | "local" | "command" => Kind::Stdio,
        // So does VS Code: the older way, where the newer is not known.
        "http" | "remote" | "url" => Kind::Http(HttpKind::Any),
        "streamable-http" | "streamablehttp" | "http-stream" => Kind::Http(HttpKind::Streamable),
        "sse" | "http+sse" => Kind::Http(HttpKind::Sse),
        "builtin" | "platform" | "frontend" | "inline-python" if fields.dialect.lenient => {
            Kind::Elsewhere
        }
        _ => {
            let words = ["stdio", "http", "streamable-http", "sse"];
            let near = crate::nearest::nearest(&written, words).unwrap_or("stdio");
            let expected = format!("one of {}", words.join(", "));
            let example = format!("\"{}\": {near:?}", entry.key);
            fields.wrong(&entry.key, &entry.node, &expected, &example);
            return None;
        }
    })
}

fn timeout(fields: &mut Fields<'_>, server: &mut Server, entry: &Entry) {
    // opencode: one for the start, one for requests.
    if let Some(inner) = entry.node.entries() {
        for entry in inner {
            match entry.key.as_str() {
                "startup" | "start" | "connect" => server.start_timeout = fields.time(entry, false),
                "request" | "call" | "tool" => server.timeout = fields.time(entry, false),
                _ => unknown(fields, keys::SERVER, entry),
            }
        }
        return;
    }
    let milliseconds = fields.dialect.milliseconds;
    fields.dialect.milliseconds = milliseconds && !entry.key.ends_with("_sec");
    server.timeout = fields.time(entry, false);
    fields.dialect.milliseconds = milliseconds;
}

fn health(fields: &mut Fields<'_>, entry: &Entry) -> Option<Health> {
    let on = |interval, timeout, threshold| Health::On {
        interval,
        timeout,
        threshold,
    };
    let Some(inner) = entry.node.entries() else {
        return fields.bool(entry).map(|yes| {
            if yes {
                on(None, None, None)
            } else {
                Health::Off
            }
        });
    };
    let (mut interval, mut timeout, mut threshold) = (None, None, None);
    for entry in inner {
        match entry.key.as_str() {
            "interval" => interval = fields.time(entry, false),
            "timeout" => timeout = fields.time(entry, false),
            "threshold" => threshold = fields.count(entry, 0..=1000).map(|n| n.max(1) as u32),
            _ => unknown(fields, keys::SERVER, entry),
        }
    }
    Some(on(interval, timeout, threshold))
}

fn tools(fields: &mut Fields<'_>, server: &mut Server, entry: &Entry) {
    match &entry.node.value {
        Value::Map(inner) => {
            for entry in inner {
                match entry.key.as_str() {
                    "include" | "allow" | "allowed" => server.tools.include = fields.names(entry),
                    "exclude" | "deny" | "blocked" => server.tools.exclude = fields.names(entry),
                    // Codex: what to ask about each tool.
                    _ => {}
                }
            }
        }
        _ => server.tools.include = fields.names(entry),
    }
}

/// One rate, or one for the server and some for its tools.
fn rate_limit(fields: &mut Fields<'_>, server: &mut Server, entry: &Entry) {
    let Some(inner) = entry.node.entries() else {
        server.rate_limit = fields.rate(entry);
        return;
    };
    for entry in inner {
        match (entry.key.as_str(), entry.node.entries()) {
            ("server", _) => server.rate_limit = fields.rate(entry),
            ("tools", Some(tools)) => {
                for tool in tools {
                    let rate = fields.rate(tool).map(|rate| (tool.key.clone(), rate));
                    server.tool_rate_limits.extend(rate);
                }
            }
            ("tools", None) => {
                let example = "\"tools\": { \"search_*\": \"10/min\" }";
                fields.wrong("tools", &entry.node, "a map of rates", example);
            }
            _ => unknown(fields, keys::SERVER, entry),
        }
    }
}

fn transport(
    fields: &mut Fields<'_>,
    server: &Server,
    mut parts: Parts,
    span: &Span,
) -> Option<Transport> {
    let kind = parts.kind.as_ref().map(|(kind, _)| *kind);
    if kind == Some(Kind::Elsewhere) {
        return None;
    }
    let is_blank = |text: &Text| text.raw.trim().is_empty();
    if parts.command.first().is_some_and(is_blank) {
        let place = parts.command[0].span.clone();
        fields.tell(
            Diagnosis::error("config::no-command", "its command is empty")
                .at(place, "here")
                .fix("write \"command\": \"npx\", \"args\": [\"-y\", \"some-server\"]"),
        );
        return None;
    }
    let has_command = !parts.command.is_empty();
    let wants_http = matches!(kind, Some(Kind::Http(_)));
    if has_command && parts.url.is_some() && !wants_http {
        fields.tell(
            Diagnosis::warning(
                "config::both",
                "it has both a command and a url: the command is what counts",
            )
            .at(head(fields.source, span), "this server")
            .fix("remove the \"url\", or set \"type\": \"http\""),
        );
    }
    match (
        has_command && !(wants_http && parts.url.is_some()),
        parts.url,
    ) {
        (true, _) if wants_http => {
            let place = parts.kind.map_or(span.clone(), |(_, span)| span);
            fields.tell(
                Diagnosis::error(
                    "config::transport",
                    "it is said to be reached over HTTP, but has no url",
                )
                .at(place, "this says HTTP")
                .note("it has a command, which is run and talked to over stdin and stdout")
                .fix("remove \"type\", or write \"url\" instead of \"command\""),
            );
            None
        }
        (true, _) => {
            let command = parts.command.remove(0);
            parts.command.append(&mut parts.stdio.args);
            Some(Transport::Stdio(Stdio {
                command,
                args: parts.command,
                ..parts.stdio
            }))
        }
        (false, Some(url)) if kind != Some(Kind::Stdio) => {
            let kind = match kind {
                Some(Kind::Http(kind)) => kind,
                _ => parts.url_kind.unwrap_or(HttpKind::Any),
            };
            http::check_url(fields, &url);
            Some(Transport::Http(Http {
                url,
                kind,
                ..parts.http
            }))
        }
        _ if !server.enabled || fields.dialect.lenient => None,
        _ => {
            nothing_to_reach(fields, span, parts.has_command);
            None
        }
    }
}

fn nothing_to_reach(fields: &mut Fields<'_>, span: &Span, is_empty: bool) {
    let message = if is_empty {
        "its command is empty"
    } else {
        "it has no command and no url"
    };
    fields.tell(
        Diagnosis::error("config::no-command", message)
            .at(head(fields.source, span), "this server")
            .note("a server has exactly one of: \"command\", which is run and talked to over stdin and stdout; \"url\", which is connected to over HTTP")
            .fix("write \"command\": \"npx\", \"args\": [\"-y\", \"some-server\"]")
            .fix("or \"url\": \"http://localhost:3000/mcp\""),
    );
}
