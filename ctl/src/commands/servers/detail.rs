//! One server in full.

use super::{next_try, uptime};
use crate::output::{Output, safe, style, time};
use nexus_client::{RateLimit, Server, ServerState};
use nexus_config::policy::Rate;
use std::time::SystemTime;

pub(super) fn text(output: &Output, server: &Server, now: SystemTime) -> String {
    let mut text = String::new();
    let mut row = |name: &str, value: &str| {
        let name = output.paint(&format!("{name:12}"), style::BOLD);
        text += &format!("{name} {value}\n");
    };
    let state = style::of_state(server.state);
    let state = output.paint(server.state.as_str(), state);
    let state = match uptime(server, now).map(|up| format!("for {up}")) {
        Some(since) => format!("{state} {since}"),
        None => match next_try(server, now) {
            Some(wait) => format!("{state}, {wait}"),
            None => state,
        },
    };
    row("name", &safe::line(&server.name));
    row("prefix", &format!("{}__", server.slug));
    row("state", &state);
    if server.state == ServerState::Stopped {
        row("wanted", "no, until `nexusctl start`");
    }
    if !server.cause.is_empty() {
        row("because", &safe::line(&server.cause));
    }
    if let Some(pid) = server.pid {
        row("pid", &pid.to_string());
    }
    if let Some(memory) = server.memory {
        row("memory", &time::bytes(memory));
    }
    let lane = if server.asks {
        ", one agent at a time"
    } else {
        ""
    };
    row(
        "runs",
        &format!("{}, {}{lane}", server.start, server.sharing),
    );
    row("restarts", &server.restarts.to_string());
    if let Some(latency) = server.latency {
        row("health", &format!("answered in {}", time::short(latency)));
    }
    let mut calls = format!("{} ({} under way", server.calls, server.in_flight);
    if server.waiting > 0 {
        calls += &format!(", {} waiting", server.waiting);
    }
    row("calls", &(calls + ")"));
    if let (Some(half), Some(most)) = (server.call_p50, server.call_p99) {
        let times = format!(
            "half within {}, 99 % within {}",
            time::short(half),
            time::short(most)
        );
        row("answered", &times);
    }
    for limit in &server.rate_limits {
        row("rate limit", &rate_limit(limit));
    }
    row("tools", &server.tools.to_string());
    match (server.resources, server.resource_templates) {
        (0, 0) => {}
        (resources, 0) => row("resources", &resources.to_string()),
        (resources, 1) => row("resources", &format!("{resources}, and a template")),
        (resources, more) => row("resources", &format!("{resources}, and {more} templates")),
    }
    if server.prompts > 0 {
        row("prompts", &server.prompts.to_string());
    }
    row("transport", &server.transport);
    match &server.url {
        Some(url) => row("url", &safe::line(url)),
        None => row("command", &safe::line(&server.command)),
    }
    let source = server.source.as_deref().unwrap_or("built-in demo");
    row("configured", &safe::line(source));
    if let Some(info) = &server.info {
        let title = info.title.as_ref().map(|title| format!("{title}: "));
        let about = format!(
            "{}{} {}",
            title.unwrap_or_default(),
            info.name,
            info.version
        );
        row("server", &safe::line(&about));
        row("mcp", &safe::line(&info.protocol_version));
        if let Some(instructions) = &info.instructions {
            row("says", &safe::line(instructions));
        }
    }
    if server.instances.len() > 1 {
        for instance in &server.instances {
            let pid = instance
                .pid
                .map(|pid| format!(", pid {pid}"))
                .unwrap_or_default();
            let state = output.paint(instance.state.as_str(), style::of_state(instance.state));
            let about = format!("{}: {state}{pid}", safe::line(&instance.key));
            row(&format!("instance {}", instance.number), &about);
        }
    }
    for warning in &server.warnings {
        row("warning", &safe::line(warning));
    }
    if let Some(failure) = &server.last_failure {
        let ago = time::since(failure.at, now).map(|ago| format!(" ({} ago)", time::long(ago)));
        let message = safe::line(&failure.message);
        row("last failure", &(message + &ago.unwrap_or_default()));
        for line in &failure.stderr {
            let line = format!("    {}", safe::line(line));
            text += &output.paint(&line, style::DIM);
            text.push('\n');
        }
        for cause in &failure.causes {
            text += &format!("    likely: {}\n", safe::line(cause));
        }
        for fix in &failure.fixes {
            text += &format!(
                "    {} {}\n",
                output.paint("hint:", style::HINT),
                safe::line(fix)
            );
        }
    }
    text
}

/// `server: 60/min, burst 10, 3 refused`.
fn rate_limit(limit: &RateLimit) -> String {
    let rate = Rate {
        count: limit.count,
        per: limit.per,
        burst: limit.burst,
    };
    let what = safe::line(&limit.what);
    format!("{what}: {rate}, {} refused", limit.refused)
}
