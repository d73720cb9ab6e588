//! `nexusctl approvals`: what agents want to do, and what somebody says to it.

use crate::{
    mcp::Bridge,
    support::{Daemon, Run, Terminal, neighbour, nexusctl},
};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
};

/// A server for each consent.
fn config() -> Value {
    let of = |consent: &str| json!({"command": neighbour("nexusd"), "args": ["demo-server"], "consent": consent});
    json!({"mcpServers": {"asks": of("call"), "connects": of("server")}})
}

fn daemon() -> Daemon {
    Daemon::serving(&config())
}

/// Waits until so many questions wait.
fn questions(daemon: &Daemon, count: usize) -> Vec<Value> {
    loop {
        let waiting = daemon.run(&["approvals", "--json"]).json();
        if let Some(waiting) = waiting.as_array().filter(|waiting| waiting.len() == count) {
            return waiting.clone();
        }
    }
}

#[test]
fn questions_are_listed_and_answered() {
    let daemon = daemon();
    let nothing = daemon.run(&["approvals"]);
    assert_eq!(nothing.stderr, "nothing waits for an answer\n");
    let mut bridge = Bridge::start(&daemon);
    bridge.call(1, "asks__add", json!({"a": 2, "b": 3}));
    let asked = questions(&daemon, 1);
    assert_eq!(asked[0]["agent_name"], "agent");
    assert_eq!(asked[0]["target"], "add");
    let table = daemon.run(&["approvals"]);
    let told = table.ok();
    assert!(
        told.starts_with("ID  AGENT  WANTS TO       WITH             LEFT\n 1  agent  call asks.add  {\"a\":2,\"b\":3}  1m"),
        "{told}"
    );
    assert_eq!(
        daemon.run(&["approvals", "allow", "1"]).stderr,
        "1: allowed\n"
    );
    assert_eq!(bridge.answer(1)["result"]["content"][0]["text"], "5");
    let late = daemon.run(&["approvals", "deny", "1"]).error(1);
    assert!(
        late.starts_with("error: no question 1 waits for an answer\n"),
        "{late}"
    );

    bridge.call(2, "connects__add", json!({"a": 2, "b": 3}));
    let asked = questions(&daemon, 1);
    assert_eq!(asked[0]["method"], Value::Null);
    assert_eq!(asked[0]["tools"][0], "echo");
    let id = asked[0]["id"].to_string();
    daemon.run(&["approvals", "deny", &id]).ok();
    let refused = bridge.answer(2);
    assert_eq!(
        refused["error"]["message"],
        "agent may not use \"connects\": somebody was asked, and said no"
    );
    let forgotten = daemon.run(&["approvals", "forget", "--server", "connects"]);
    assert_eq!(forgotten.stderr, "one answer is forgotten\n");
    bridge.call(3, "connects__add", json!({"a": 2, "b": 3}));
    let id = questions(&daemon, 1)[0]["id"].to_string();
    daemon.run(&["approvals", "allow", &id, "--server"]).ok();
    assert_eq!(bridge.answer(3)["result"]["content"][0]["text"], "5");
    bridge.call(4, "connects__add", json!({"a": 2, "b": 3}));
    assert_eq!(bridge.answer(4)["result"]["content"][0]["text"], "5");
}

#[test]
fn changes_are_lines_where_nobody_sits() {
    let daemon = daemon();
    let mut watch = daemon.ctl(&["approvals", "watch", "--json"]);
    let mut watch = watch.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut bridge = Bridge::start(&daemon);
    bridge.call(1, "asks__add", json!({"a": 2, "b": 3}));
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    let asked = next();
    assert_eq!(
        (&asked["event"], &asked["server"]),
        (&json!("asked"), &json!("asks"))
    );
    let id = asked["id"].to_string();
    daemon.run(&["approvals", "deny", &id]).ok();
    assert_eq!(
        next(),
        json!({"event": "closed", "id": asked["id"], "outcome": "denied"})
    );
    assert!(bridge.answer(1)["error"]["message"].is_string());
    watch.kill().unwrap();
    watch.wait().unwrap();
}

/// What an agent starts is the agent's: it neither answers for itself nor steers what others use.
#[cfg(target_os = "linux")]
#[test]
fn what_an_agent_starts_is_not_the_operators() {
    let daemon = Daemon::cautious(&config());
    let folder = tempfile::tempdir().unwrap();
    // A shell by the name of an agent: what counts is the program, not what it was called by.
    let claude = folder.path().join("claude");
    fs::copy(fs::canonicalize("/bin/sh").unwrap(), &claude).unwrap();
    let run = |args: &str| {
        let mut command = Command::new(&claude);
        // Two commands, so that the shell stays.
        command.arg("-c").arg(format!(
            "'{}' --socket '{}' {args}; exit $?",
            nexusctl().get_program().to_str().unwrap(),
            daemon.socket().display()
        ));
        Run::of(&mut command)
    };
    let agents = run("agents --json").json();
    assert_eq!(agents.as_array().unwrap().len(), 1);
    assert_eq!(
        (&agents[0]["level"], &agents[0]["you"]),
        (&json!("trusted"), &json!(true))
    );
    let programs = agents[0]["programs"].as_array().unwrap();
    assert_eq!(programs[..2], [json!("nexusctl"), json!("claude")]);
    for forbidden in [
        "approvals",
        "approvals forget",
        "shutdown",
        "stop asks",
        "logs asks",
    ] {
        let error = run(forbidden).error(1);
        assert!(
            error.starts_with("error: only the operator may do this"),
            "{forbidden}: {error}"
        );
    }
    assert_eq!(run("servers --json").json().as_array().unwrap().len(), 2);
    // One that is named is the operator's whoever started it.
    let daemon = self::daemon();
    let own = daemon.run(&["agents", "--json"]).json();
    assert_eq!(own[0]["level"], "operator");
}

/// In a terminal somebody is asked, as often as it takes.
#[test]
fn in_a_terminal_somebody_is_asked() {
    let daemon = daemon();
    let mut bridge = Bridge::start(&daemon);
    let args = ["--color", "never", "--timeout", "60s", "approvals", "watch"];
    let mut terminal = Terminal::run(&mut daemon.ctl(&args));
    terminal.shows("waiting for questions");
    bridge.call(1, "connects__add", json!({"a": 2, "b": 3}));
    terminal.shows("agent");
    terminal.shows("wants to connect to connects\r\n");
    terminal.shows("  Tools: echo, get_time, add, slow_operation\r\n");
    terminal.shows("  [1] Allow all tools (this session)\r\n");
    terminal.shows("  [2] Require confirmation for each tool\r\n  [3] Deny connection\r\n> ");
    terminal.types("what?\n");
    terminal.shows("1, 2 or 3? ");
    terminal.types("2\n");
    terminal.shows("wants to call connects.add\r\n  Arguments: {\"a\":2,\"b\":3}\r\n");
    terminal.shows("  [1] Allow once\r\n");
    terminal.shows("  [3] Deny\r\n> ");
    terminal.types("1\n");
    assert_eq!(bridge.answer(1)["result"]["content"][0]["text"], "5");
    // Somebody else may be faster.
    bridge.call(2, "connects__add", json!({"a": 2, "b": 3}));
    terminal.shows("wants to call connects.add");
    let id = questions(&daemon, 1)[0]["id"].to_string();
    daemon.run(&["approvals", "deny", &id]).ok();
    terminal.shows("denied\r\n");
    assert!(bridge.answer(2)["error"]["message"].is_string());
    // The end of what is typed is the end.
    terminal.types("\u{4}");
    assert_eq!(terminal.ends().0, 0);
}
