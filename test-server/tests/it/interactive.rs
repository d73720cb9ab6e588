//! The tools `ask`, `log` and `odd` of `--interactive`, in both eras.

use serde_json::{Value, json};

use crate::support::{Peer, initialize_params, modern_meta, text};

const CLIENT: &str = "io.modelcontextprotocol/clientCapabilities";

fn interactive() -> Peer {
    Peer::initialized(&["--interactive"])
}

fn result(peer: &mut Peer, question: &Value, result: Value) {
    peer.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result}));
}

/// The answer as the tool tells it.
fn told(answer: &Value) -> Value {
    serde_json::from_str(text(answer)).unwrap()
}

#[test]
fn ask_puts_each_question_with_its_text_and_tells_the_answer() {
    for (kind, method, place) in [
        (
            "sampling",
            "sampling/createMessage",
            "/params/messages/0/content/text",
        ),
        ("elicitation", "elicitation/create", "/params/message"),
        ("url", "elicitation/create", "/params/message"),
        ("roots", "roots/list", ""),
    ] {
        let mut peer = interactive();
        peer.call(
            1,
            "ask",
            json!({"kind": kind, "text": "grüße \"x\"", "nonce": "n"}),
        );
        let question = peer.read();
        assert_eq!(question["method"], method);
        if !place.is_empty() {
            assert_eq!(question.pointer(place).unwrap(), "grüße \"x\"", "{kind}");
        }
        result(&mut peer, &question, json!({"mine": kind}));
        assert_eq!(told(&peer.read()), json!({"mine": kind}));
    }
}

#[test]
fn ask_tells_a_refusal() {
    let mut peer = interactive();
    peer.call(1, "ask", json!({"kind": "sampling", "text": "t"}));
    let question = peer.read();
    let error = json!({"code": -1, "message": "no"});
    peer.send(&json!({"jsonrpc": "2.0", "id": question["id"], "error": error}));
    assert_eq!(told(&peer.read()), json!({"error": error}));
}

#[test]
fn several_calls_can_ask_at_once() {
    let mut peer = interactive();
    let mut questions = Vec::new();
    for id in 1..=3 {
        peer.call(
            id,
            "ask",
            json!({"kind": "elicitation", "text": format!("q{id}")}),
        );
        questions.push(peer.read());
    }
    for question in questions.iter().rev() {
        let content = json!({"answer": question["params"]["message"]});
        result(
            &mut peer,
            question,
            json!({"action": "accept", "content": content}),
        );
        let answer = peer.read();
        let asked = format!("q{}", answer["id"]);
        assert_eq!(told(&answer)["content"]["answer"], asked);
    }
}

#[test]
fn ask_can_ask_again_and_for_two_things_at_once() {
    let mut peer = interactive();
    peer.call(1, "ask", json!({"kind": "both", "text": "t", "rounds": 2}));
    for round in 1..=2 {
        let (form, roots) = (peer.read(), peer.read());
        assert_eq!(roots["method"], "roots/list");
        result(&mut peer, &roots, json!({"roots": [], "round": round}));
        result(
            &mut peer,
            &form,
            json!({"action": "decline", "round": round}),
        );
    }
    let both = |round| {
        json!({
            "elicitation": {"action": "decline", "round": round},
            "roots": {"roots": [], "round": round},
        })
    };
    assert_eq!(told(&peer.read()), json!([both(1), both(2)]));
}

#[test]
fn an_elicitation_by_url_is_said_to_be_complete_once_it_is_accepted() {
    let mut peer = interactive();
    for (action, completed) in [("accept", true), ("decline", false)] {
        peer.call(1, "ask", json!({"kind": "url", "text": "t"}));
        let question = peer.read();
        let params = &question["params"];
        assert_eq!(params["mode"], "url");
        assert!(params["url"].as_str().unwrap().starts_with("https://"));
        result(&mut peer, &question, json!({"action": action}));
        if completed {
            let complete = peer.read();
            assert_eq!(complete["method"], "notifications/elicitation/complete");
            assert_eq!(complete["params"]["elicitationId"], params["elicitationId"]);
        }
        assert_eq!(told(&peer.read()), json!({"action": action}));
    }
}

#[test]
fn what_a_revision_does_not_have_is_not_asked_in_it() {
    for (revision, kind, allowed) in [
        ("2024-11-05", "sampling", true),
        ("2025-03-26", "elicitation", false),
        ("2025-06-18", "elicitation", true),
        ("2025-06-18", "url", false),
    ] {
        let mut peer = Peer::start(&["--interactive", "--revision", revision]);
        peer.ask(1, "initialize", initialize_params("2025-11-25"));
        peer.call(2, "ask", json!({"kind": kind}));
        let next = peer.read();
        assert_eq!(next["method"].is_string(), allowed, "{next}");
        assert_eq!(next["result"]["isError"] == true, !allowed, "{next}");
    }
}

#[test]
fn a_cancelled_ask_is_not_answered() {
    let mut peer = interactive();
    peer.call(1, "ask", json!({"kind": "roots"}));
    let question = peer.read();
    let params = json!({"requestId": 1});
    peer.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
    result(&mut peer, &question, json!({"roots": []}));
    assert!(peer.rest().is_empty());
}

/// A modern call of `ask` with these capabilities.
fn ask_with(peer: &mut Peer, arguments: Value, capabilities: Value) -> Value {
    let mut meta = modern_meta();
    meta[CLIENT] = capabilities;
    let params = json!({"name": "ask", "arguments": arguments, "_meta": meta});
    peer.ask(1, "tools/call", params)
}

#[test]
fn a_modern_ask_is_input_required_and_is_told_at_the_retry() {
    // Each round is another process: there is nothing to remember.
    let another = || Peer::start(&["--era", "modern", "--interactive"]);
    let arguments = json!({"kind": "both", "text": "grüße", "rounds": 2});
    let mut params = json!({"name": "ask", "arguments": arguments});
    let mut states = Vec::new();
    for round in 1..=2 {
        let asked = another().ask_modern(round, "tools/call", params.clone())["result"].clone();
        assert_eq!(asked["resultType"], "input_required");
        let asks = &asked["inputRequests"];
        assert_eq!(asks["elicitation"]["params"]["message"], "grüße");
        assert_eq!(asks["roots"]["method"], "roots/list");
        states.push(asked["requestState"].clone());
        params["requestState"] = asked["requestState"].clone();
        params["inputResponses"] =
            json!({"elicitation": {"action": "cancel", "round": round}, "roots": {"roots": []}});
    }
    assert_ne!(states[0], states[1]);
    for odd in ['"', '\\', 'ü', '\u{1F600}'] {
        assert!(states[0].as_str().unwrap().contains(odd), "{odd}");
    }
    let both = |round| json!({"elicitation": {"action": "cancel", "round": round}, "roots": {"roots": []}});
    let answer = another().ask_modern(3, "tools/call", params.clone());
    assert_eq!(answer["result"]["resultType"], "complete");
    assert_eq!(told(&answer), json!([both(1), both(2)]));

    let mut peer = another();
    for (member, wrong) in [
        ("requestState", json!("forged")),
        ("inputResponses", json!({"roots": {"roots": []}})),
        (
            "arguments",
            json!({"kind": "both", "text": "another", "rounds": 2}),
        ),
    ] {
        let mut params = params.clone();
        params[member] = wrong;
        let refused = peer.ask_modern(4, "tools/call", params);
        assert_eq!(refused["error"]["code"], -32602, "{member}");
    }
}

#[test]
fn a_modern_ask_needs_the_capability() {
    let mut peer = Peer::start(&["--interactive"]);
    for (kind, declared, required) in [
        ("sampling", json!({"roots": {}}), json!({"sampling": {}})),
        ("roots", json!({"sampling": {}}), json!({"roots": {}})),
        ("elicitation", json!({}), json!({"elicitation": {}})),
        (
            "elicitation",
            json!({"elicitation": {"url": {}}}),
            json!({"elicitation": {}}),
        ),
        (
            "url",
            json!({"elicitation": {}}),
            json!({"elicitation": {"url": {}}}),
        ),
        (
            "both",
            json!({"roots": {}}),
            json!({"elicitation": {}, "roots": {}}),
        ),
    ] {
        let refused = ask_with(&mut peer, json!({"kind": kind}), declared);
        assert_eq!(refused["error"]["code"], -32021, "{kind}");
        assert_eq!(refused["error"]["data"]["requiredCapabilities"], required);
    }
    for (kind, declared) in [
        ("elicitation", json!({"elicitation": {}})),
        ("elicitation", json!({"elicitation": {"form": {}}})),
        ("url", json!({"elicitation": {"url": {}}})),
        ("sampling", json!({"sampling": {}})),
    ] {
        let asked = ask_with(&mut peer, json!({"kind": kind}), declared);
        assert_eq!(asked["result"]["resultType"], "input_required", "{kind}");
        assert!(asked["result"]["inputRequests"][kind].is_object());
    }
}

#[test]
fn a_modern_ask_is_journaled_once_it_is_executed() {
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("journal");
    let mut peer = Peer::start(&["--interactive", "--journal", journal.to_str().unwrap()]);
    let mut params = json!({"name": "ask", "arguments": {"kind": "roots", "nonce": "n"}});
    let lines = || std::fs::read_to_string(&journal).unwrap().lines().count();
    let asked = peer.ask_modern(1, "tools/call", params.clone());
    assert_eq!(lines(), 0);
    params["requestState"] = asked["result"]["requestState"].clone();
    params["inputResponses"] = json!({"roots": {"roots": []}});
    peer.ask_modern(2, "tools/call", params);
    assert_eq!(lines(), 1);
}

/// Calls `log`, and returns the messages before the answer, and the answer's text.
fn log(peer: &mut Peer, params: Value) -> (Vec<Value>, String) {
    peer.request("log", "tools/call", params);
    let mut messages = Vec::new();
    loop {
        let next = peer.read();
        if next["id"] == "log" {
            return (messages, text(&next).to_owned());
        }
        assert_eq!(next["method"], "notifications/message");
        messages.push(next["params"]["data"].clone());
    }
}

#[test]
fn log_sends_what_the_level_of_the_session_allows() {
    let mut peer = interactive();
    let call = |level: &str| json!({"name": "log", "arguments": {"level": level, "message": "m"}});
    assert_eq!(
        log(&mut peer, call("debug")),
        (vec![json!("m")], "1".to_owned())
    );
    peer.ask(1, "logging/setLevel", json!({"level": "error"}));
    assert_eq!(log(&mut peer, call("warning")), (vec![], "0".to_owned()));
    assert_eq!(log(&mut peer, call("critical")).0, [json!("m")]);
    let many = json!({"name": "log", "arguments": {"level": "error", "message": "m", "count": 3}});
    assert_eq!(log(&mut peer, many).0, ["m 1", "m 2", "m 3"]);
}

#[test]
fn a_modern_log_sends_what_the_call_asks_for() {
    let mut peer = Peer::start(&["--interactive"]);
    let mut params = json!({"name": "log", "arguments": {"level": "warning", "message": "m"}});
    params["_meta"] = modern_meta();
    assert_eq!(log(&mut peer, params.clone()), (vec![], "0".to_owned()));
    for (level, count) in [("debug", 1), ("warning", 1), ("error", 0)] {
        params["_meta"]["io.modelcontextprotocol/logLevel"] = json!(level);
        assert_eq!(log(&mut peer, params.clone()).0.len(), count, "{level}");
    }
}

#[test]
fn odd_results_come_byte_for_byte_in_both_eras() {
    let mut peer = interactive();
    for (n, result) in nexus_test_server::odd_results().into_iter().enumerate() {
        let mut params = json!({"name": "odd", "arguments": {"n": n}});
        let expected = [br#"{"jsonrpc":"2.0","id":7,"result":"#, &*result, b"}\n"].concat();
        for meta in [json!({}), modern_meta()] {
            params["_meta"] = meta;
            peer.request(7, "tools/call", params.clone());
            assert!(peer.line().unwrap() == expected, "{n}");
        }
    }
    peer.call(8, "odd", json!({"n": 1000}));
    assert_eq!(peer.read()["result"]["isError"], true);
}

#[test]
fn the_tools_are_there_only_if_asked_for() {
    for tool in ["ask", "log", "touch", "grow", "odd"] {
        let mut plain = Peer::initialized(&[]);
        plain.call(1, tool, json!({}));
        assert_eq!(plain.read()["error"]["code"], -32602, "{tool}");
    }
}
