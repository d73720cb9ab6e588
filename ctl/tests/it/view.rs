//! Looking at a daemon.

use crate::support::Daemon;
use serde_json::json;
use std::{
    io::{BufRead as _, BufReader},
    process::Stdio,
};

#[test]
fn the_status_tells_what_runs() {
    let daemon = Daemon::demo();
    // A server that starts is waited for.
    daemon.run(&["tools"]).ok();
    let status = daemon.run(&["status"]).ok();
    assert!(status.contains("config       built-in demo"), "{status}");
    assert!(status.contains("servers      1 of 1 ready"), "{status}");
    let status = daemon.run(&["status", "--json"]).json();
    assert_eq!(status["demo"], true);
    assert_eq!(status["endpoint"], daemon.socket().to_str().unwrap());
}

#[test]
fn servers_are_a_table_or_json() {
    let daemon = Daemon::demo();
    daemon.run(&["tools"]).ok();
    let table = daemon.run(&["servers"]).ok();
    let mut lines = table.lines();
    let head: Vec<_> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(
        head,
        [
            "NAME",
            "STATE",
            "TOOLS",
            "PID",
            "UPTIME",
            "RESTARTS",
            "IN-FLIGHT",
            "P50",
            "P99",
            "MEMORY"
        ]
    );
    let row: Vec<_> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(row[..3], ["demo", "ready", "4"]);
    assert_eq!(
        daemon.run(&["ls"]).ok().lines().next(),
        table.lines().next()
    );

    let servers = daemon.run(&["--json", "servers"]).json();
    assert_eq!(servers[0]["state"], "ready");
    let server = daemon.run(&["server", "demo", "--json"]).json();
    assert_eq!(server["info"]["name"], "nexus-test-server");
    let server = daemon.run(&["servers", "demo"]).ok();
    assert!(server.contains("prefix       demo__"), "{server}");
}

#[test]
fn tools_are_listed_in_full_into_a_pipe() {
    let daemon = Daemon::demo();
    let table = daemon.run(&["tools"]).ok();
    for name in [
        "demo.echo",
        "demo.get_time",
        "demo.add",
        "demo.slow_operation",
    ] {
        assert!(table.contains(name), "{table}");
    }
    assert!(!table.contains('…'), "{table}");
    assert_eq!(daemon.run(&["tools", "demo"]).ok(), table);
    assert_eq!(daemon.run(&["tools", "--server", "demo"]).ok(), table);

    let list = daemon.run(&["tools", "--json"]).json();
    assert_eq!(list["tools"][2]["name"], "demo__add");
    assert_eq!(list["tools"][2]["definition"]["name"], "add");
}

#[test]
fn a_tool_is_shown_with_its_arguments() {
    let daemon = Daemon::demo();
    for name in ["demo.add", "demo__add", "add"] {
        let tool = daemon.run(&["tools", name]).ok();
        assert!(tool.starts_with("demo.add\n"), "{tool}");
        let row = tool.lines().find(|line| line.starts_with("  a ")).unwrap();
        let row: Vec<_> = row.split_whitespace().take(3).collect();
        assert_eq!(row, ["a", "number", "yes"]);
    }
    let error = daemon.run(&["tools", "demo.ad"]).error(1);
    assert!(error.contains("did you mean `demo.add`?"), "{error}");
}

#[test]
fn tools_are_found_by_words() {
    let daemon = Daemon::demo();
    let found = daemon.run(&["search", "add", "numbers"]).ok();
    let row: Vec<_> = found
        .lines()
        .nth(1)
        .unwrap()
        .split_whitespace()
        .take(3)
        .collect();
    assert_eq!((row[0], row[2]), ("demo.add", "Adds"), "{found}");
    assert!(row[1].parse::<f32>().unwrap() < 1.0, "{found}");
    let exact = daemon.run(&["search", "demo.add", "-n", "1"]).ok();
    assert_eq!(exact.lines().count(), 2, "{exact}");
    assert!(exact.contains(" 1.00 "), "{exact}");
    let json = daemon.run(&["--json", "search", "current", "tim"]).json();
    assert_eq!(json[0]["name"], "demo__get_time");
    assert!(json[0]["score"].as_f64().unwrap() > 0.0);
    assert!(json[0]["definition"]["inputSchema"].is_object());
    let nothing = daemon.run(&["search", "xyzzy"]);
    assert!(nothing.stderr.contains("no tool fits"), "{nothing:?}");
    assert!(nothing.stderr.contains("hint: "), "{nothing:?}");
    assert_eq!(nothing.ok(), "");
}

#[test]
fn a_server_that_fails_says_why_without_hiding_the_others() {
    let daemon = Daemon::serving(&json!({"mcpServers": {
        "broken": {"command": "/nonexistent/server"},
        "dying": {"command": "sh", "args": ["-c", "echo last words >&2; exit 7"]},
    }}));
    let tools = daemon.run(&["tools"]);
    assert!(tools.stderr.contains("warning: broken: "), "{tools:?}");
    assert_eq!(tools.ok(), "");
    let table = daemon.run(&["servers"]).ok();
    assert!(table.contains("\nbroken: "), "{table}");
    let server = daemon.run(&["servers", "dying"]).ok();
    assert!(server.contains("last failure"), "{server}");
    assert!(server.contains("    last words\n"), "{server}");
    let logs = daemon.run(&["logs", "dying", "-n", "1"]).ok();
    assert_eq!(logs, "last words\n");
    let error = daemon.run(&["call", "dying.x"]).error(1);
    assert!(error.contains("last words"), "{error}");
}

#[test]
fn changes_are_told_as_they_happen() {
    let daemon = Daemon::demo();
    daemon.run(&["tools"]).ok();
    let mut watch = daemon
        .ctl(&["servers", "--watch", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut states = lines.map(|line| {
        let event: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        event["server"]["state"].as_str().unwrap().to_owned()
    });
    assert_eq!(states.next().as_deref(), Some("ready"));
    daemon.run(&["stop", "demo"]).ok();
    assert!(states.any(|state| state == "stopped"));
    watch.kill().unwrap();
    watch.wait().unwrap();
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let daemon = Daemon::demo();
    let mut child = daemon
        .ctl(&["tools"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), said.as_str()), (Some(0), ""));
}

#[test]
fn the_daemon_and_a_server_can_be_pinged() {
    let daemon = Daemon::demo();
    daemon.run(&["tools"]).ok();
    assert!(daemon.run(&["ping"]).ok().starts_with("nexusd: "));
    let pings = daemon.run(&["ping", "demo", "-c", "3", "-i", "1ms"]).ok();
    assert_eq!(pings.lines().count(), 4);
    assert!(pings.lines().last().unwrap().starts_with("min "), "{pings}");
    let pings = daemon.run(&["ping", "--json"]).json();
    assert_eq!(pings["times_ms"].as_array().unwrap().len(), 1);
}
