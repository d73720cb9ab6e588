//! `nexusctl mcp`: what an agent starts.

use crate::support::{Daemon, Run, at_home};
use serde_json::{Value, json};
use std::{
    io::{BufRead as _, BufReader, Lines, Write as _},
    process::{Child, ChildStdin, ChildStdout, Stdio},
};

/// A bridge, and the agent that has started it.
pub(crate) struct Bridge {
    child: Child,
    input: Option<ChildStdin>,
    output: Option<Lines<BufReader<ChildStdout>>>,
}

impl Bridge {
    pub(crate) fn start(daemon: &Daemon) -> Self {
        let mut command = daemon.ctl(&["mcp"]);
        // A daemon that it starts has the same home.
        at_home(&mut command, daemon.home());
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut bridge = Self {
            input: child.stdin.take(),
            output: child.stdout.take().map(|out| BufReader::new(out).lines()),
            child,
        };
        let params = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "agent", "version": "1"},
        });
        bridge.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
        assert_eq!(bridge.answer(0)["result"]["protocolVersion"], "2025-06-18");
        bridge.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        bridge
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    pub(crate) fn call(&mut self, id: u64, tool: &str, arguments: Value) {
        let params = json!({"name": tool, "arguments": arguments});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    }

    /// The answer to a request, and how many changes were told before it.
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        loop {
            let line = self.output.as_mut().unwrap().next().unwrap().unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message;
            }
        }
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn what_is_piped_in_is_answered_to_the_last_question() {
    let daemon = Daemon::demo();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let slow = json!({"name": "demo__slow_operation", "arguments": {"duration": 1, "steps": 1}, "_meta": meta});
    let input = format!(
        "{}\n{}",
        json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": slow}),
    );
    let out = Run::with_input(&mut daemon.ctl(&["mcp"]), &input).ok();
    let answers: Vec<Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(answers[0], json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    assert_eq!(answers[1]["result"]["resultType"], "complete");
}

#[test]
fn an_agent_may_have_a_search_instead_of_all_tools() {
    let daemon = Daemon::demo();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let input =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}});
    let names = |mode: &str| {
        let mut ctl = daemon.ctl(&["mcp", "--tools", mode]);
        let out = Run::with_input(&mut ctl, &format!("{input}\n")).ok();
        let answer: Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
        let tools = answer["result"]["tools"].as_array().unwrap().clone();
        let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
        tools.iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(names("search"), ["search", "execute"]);
    assert_eq!(names("direct").len(), 4);
    assert_eq!(names("both").len(), 6);
}

#[test]
fn a_session_outlives_its_daemon() {
    let mut daemon = Daemon::demo();
    let mut bridge = Bridge::start(&daemon);
    bridge.call(1, "demo__add", json!({"a": 2, "b": 3}));
    assert_eq!(bridge.answer(1)["result"]["content"][0]["text"], "5");
    bridge.call(2, "demo__slow_operation", json!({"duration": 60}));
    // Asked and on its way: the daemon knows of it.
    while daemon.run(&["--json", "status"]).json()["calls_in_flight"] != 1 {}
    daemon.kill();
    let lost = bridge.answer(2);
    assert_eq!(lost["error"]["data"]["maybeExecuted"], true, "{lost}");
    bridge.call(3, "demo__add", json!({"a": 1, "b": 1}));
    assert_eq!(bridge.answer(3)["result"]["content"][0]["text"], "2");
    let agents = daemon.run(&["--json", "agents"]).json();
    assert!(agents.to_string().contains("\"agent\""), "{agents}");
}

#[test]
fn a_bridge_whose_client_is_gone_goes_too() {
    let daemon = Daemon::demo();
    let mut bridge = Bridge::start(&daemon);
    bridge.call(1, "demo__slow_operation", json!({"duration": 60}));
    while daemon.run(&["--json", "status"]).json()["calls_in_flight"] != 1 {}
    bridge.input = None;
    bridge.output = None;
    assert!(bridge.child.wait().unwrap().success());
    while daemon.run(&["--json", "status"]).json()["calls_in_flight"] != 0 {}
}

#[test]
fn without_a_daemon_and_not_allowed_to_start_one_it_says_so() {
    let home = tempfile::tempdir().unwrap();
    let mut command = crate::support::nexusctl();
    command
        .arg("--socket")
        .arg(home.path().join("no.sock"))
        .args(["mcp", "--no-start"]);
    let error = Run::of(&mut command).error(3);
    assert!(error.contains("no.sock"), "{error}");
}
