//! A well-behaved server over stdio.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::support::{Peer, text};

#[test]
fn the_four_tools_do_what_they_say() {
    let mut peer = Peer::initialized(&[]);
    let list = peer.ask(1, "tools/list", json!({}));
    let names: Vec<_> = list["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].clone())
        .collect();
    assert_eq!(names, ["echo", "get_time", "add", "slow_operation"]);

    let mut call = |tool: &str, arguments: Value| {
        peer.ask(
            7,
            "tools/call",
            json!({"name": tool, "arguments": arguments}),
        )
    };
    assert_eq!(
        text(&call("echo", json!({"message": "grüße \"x\""}))),
        "grüße \"x\""
    );
    let sum = call("add", json!({"a": 2, "b": 3}));
    assert_eq!(text(&sum), "5");
    assert_eq!(sum["result"]["structuredContent"], json!({"sum": 5}));
    assert_eq!(
        text(&call("get_time", json!({}))).len(),
        "2025-11-16T00:41:00.000Z".len()
    );
    assert!(text(&call("slow_operation", json!({"duration": 0, "steps": 2}))).contains("2 steps"));
}

#[test]
fn wrong_arguments_are_a_result_and_an_unknown_tool_is_an_error() {
    let mut peer = Peer::initialized(&[]);
    let wrong = peer.ask(
        1,
        "tools/call",
        json!({"name": "echo", "arguments": {"mesage": "x"}}),
    );
    assert_eq!(wrong["result"]["isError"], true);
    assert!(text(&wrong).contains("mesage"));
    let unknown = peer.ask(2, "tools/call", json!({"name": "nope"}));
    assert_eq!(unknown["error"]["code"], -32602);
    assert!(
        unknown["error"]["message"]
            .as_str()
            .unwrap()
            .contains("nope")
    );
}

#[test]
fn progress_comes_with_the_token_of_the_caller_and_before_the_result() {
    let mut peer = Peer::initialized(&[]);
    let params = json!({"name": "slow_operation", "arguments": {"duration": 0, "steps": 3}, "_meta": {"progressToken": "t"}});
    peer.request(1, "tools/call", params);
    for step in 1..=3 {
        let progress = peer.read();
        assert_eq!(progress["method"], "notifications/progress");
        assert_eq!(progress["params"]["progressToken"], "t");
        assert_eq!(
            (
                &progress["params"]["progress"],
                &progress["params"]["total"]
            ),
            (&json!(step), &json!(3))
        );
    }
    assert_eq!(peer.read()["id"], 1);
}

#[test]
fn a_slow_call_does_not_hold_up_others_and_can_be_cancelled() {
    let mut peer = Peer::initialized(&[]);
    peer.call(5, "slow_operation", json!({"duration": 600, "steps": 1}));
    assert_eq!(peer.ask(6, "ping", json!({}))["result"], json!({}));
    peer.call(
        5,
        "echo",
        json!({"message": "quick calls need no id of their own"}),
    );
    assert!(text(&peer.read()).contains("quick"));
    peer.call(5, "slow_operation", json!({"duration": 0}));
    assert_eq!(peer.read()["error"]["code"], -32600, "the id is in use");
    peer.send(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}),
    );
    peer.call(5, "slow_operation", json!({"duration": 0}));
    assert!(
        text(&peer.read()).starts_with("Done"),
        "the id is free again"
    );
    assert_eq!(
        peer.rest(),
        Vec::<Value>::new(),
        "the cancelled call is not answered"
    );
}

#[test]
fn resources_prompts_and_completions_are_served() {
    let mut peer = Peer::initialized(&[]);
    for (method, member, count) in [
        ("resources/list", "resources", 3),
        ("resources/templates/list", "resourceTemplates", 1),
        ("prompts/list", "prompts", 3),
    ] {
        assert_eq!(
            peer.ask(1, method, json!({}))["result"][member]
                .as_array()
                .unwrap()
                .len(),
            count,
            "{method}"
        );
    }
    let read = peer.ask(
        2,
        "resources/read",
        json!({"uri": "file:///data/users.csv"}),
    );
    assert_eq!(read["result"]["contents"][0]["mimeType"], "text/csv");
    assert_eq!(
        peer.ask(3, "resources/read", json!({"uri": "file:///no"}))["error"]["code"],
        -32002
    );
    assert_eq!(
        peer.ask(
            4,
            "resources/subscribe",
            json!({"uri": "file:///readme.txt"})
        )["result"],
        json!({})
    );
    assert_eq!(
        peer.ask(5, "logging/setLevel", json!({"level": "debug"}))["result"],
        json!({})
    );
    let prompt = peer.ask(
        6,
        "prompts/get",
        json!({"name": "greeting", "arguments": {"name": "Ada"}}),
    );
    assert!(
        prompt["result"]["messages"][0]["content"]["text"]
            .as_str()
            .unwrap()
            .contains("Ada")
    );
    let reference = json!({"type": "ref/prompt", "name": "code_review"});
    let params = json!({"ref": reference, "argument": {"name": "language", "value": "py"}});
    assert_eq!(
        peer.ask(7, "completion/complete", params)["result"]["completion"]["values"],
        json!(["python"])
    );
}

#[test]
fn what_is_not_understood_is_answered_with_the_right_code() {
    let mut peer = Peer::initialized(&[]);
    for (line, code, id) in [
        ("this is not JSON", -32700, Value::Null),
        (
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]"#,
            -32600,
            Value::Null,
        ),
        (
            r#"{"jsonrpc":"2.0","id":"a","method":"nope"}"#,
            -32601,
            json!("a"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{}}"#,
            -32602,
            json!(3),
        ),
    ] {
        peer.send_line(line).unwrap();
        let answer = peer.read();
        assert_eq!(
            (&answer["error"]["code"], &answer["id"]),
            (&json!(code), &id),
            "{line}"
        );
    }
    peer.send_line("\r\n \n").unwrap();
    peer.send_line("{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"ping\"}\r")
        .unwrap();
    assert_eq!(peer.read()["id"], 4, "blank lines and CRLF are fine");
}

#[test]
fn pages_of_generated_tools_add_up() {
    let mut peer = Peer::initialized(&["--tools", "25", "--page-size", "10"]);
    let (mut names, mut params) = (HashSet::new(), json!({}));
    for expected in [10, 10, 9] {
        let page = peer.ask(1, "tools/list", params)["result"].clone();
        let tools = page["tools"].as_array().unwrap();
        assert_eq!(tools.len(), expected);
        names.extend(
            tools
                .iter()
                .map(|tool| tool["name"].as_str().unwrap().to_owned()),
        );
        params = json!({"cursor": page["nextCursor"]});
    }
    assert_eq!((names.len(), params), (29, json!({"cursor": null})));
    let call = json!({"name": "tool_0025", "arguments": {"input": "x"}});
    assert_eq!(text(&peer.ask(2, "tools/call", call)), "tool_0025: x");
}

#[test]
fn the_journal_has_a_line_for_every_execution_and_none_for_refusals() {
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("journal");
    let mut peer = Peer::initialized(&["--journal", journal.to_str().unwrap()]);
    peer.ask(
        1,
        "tools/call",
        json!({"name": "echo", "arguments": {"message": "m", "nonce": "a"}}),
    );
    let params = json!({"name": "add", "arguments": {"a": 1, "b": 1, "nonce": "b"}, "_meta": {"nexus.test/nonce": "c"}});
    peer.ask(2, "tools/call", params);
    peer.ask(3, "tools/call", json!({"name": "get_time"}));
    peer.ask(4, "tools/call", json!({"name": "echo", "arguments": {}}));
    peer.ask(5, "tools/call", json!({"name": "nope"}));
    let text = std::fs::read_to_string(journal).unwrap();
    let pid = peer.child.id().to_string();
    let lines: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split('\t').skip(1).collect())
        .collect();
    assert_eq!(
        lines,
        [
            [&*pid, "echo", "a"],
            [&*pid, "add", "c"],
            [&*pid, "get_time", "-"]
        ]
    );
}

#[test]
fn the_environment_is_told_only_if_asked_for_at_the_start() {
    let call = json!({"name": "env"});
    assert_eq!(
        Peer::initialized(&[]).ask(1, "tools/call", call.clone())["error"]["code"],
        -32602
    );
    let answer = Peer::initialized(&["--env-tool"]).ask(1, "tools/call", call);
    let told = &answer["result"]["structuredContent"];
    assert_eq!(told["argv"][1], "--env-tool");
    assert_eq!(
        told["cwd"],
        std::env::current_dir().unwrap().to_str().unwrap()
    );
    assert!(told["env"]["PATH"].is_string());
}

#[test]
fn the_end_of_stdin_is_the_end_of_the_server() {
    let mut peer = Peer::initialized(&[]);
    peer.call(1, "slow_operation", json!({"duration": 600}));
    peer.close_stdin();
    assert_eq!(peer.exit_code(), Some(0));
}

#[test]
fn two_servers_can_share_a_journal() {
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("journal");
    let mut peers = [0, 1].map(|_| Peer::initialized(&["--journal", journal.to_str().unwrap()]));
    for id in 0..6 {
        peers[id % 2].ask(id, "tools/call", json!({"name": "get_time"}));
    }
    let text = std::fs::read_to_string(journal).unwrap();
    let pids: Vec<_> = text
        .lines()
        .map(|line| line.split('\t').nth(1).unwrap().to_owned())
        .collect();
    let [a, b] = peers.each_ref().map(|peer| peer.child.id().to_string());
    assert_eq!(pids, [&a, &b, &a, &b, &a, &b].map(String::clone));
}
