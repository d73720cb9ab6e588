//! The faults that ask the client something in the middle of a call.

use serde_json::json;

use crate::faults::second;
use crate::support::{Peer, initialize_params, modern_meta, text};

#[test]
fn questions_are_put_during_the_call_and_the_answer_is_its_result() {
    for (fault, method) in [
        ("ask-sampling", "sampling/createMessage"),
        ("ask-roots", "roots/list"),
        ("ask-elicit", "elicitation/create"),
    ] {
        let mut peer = second(fault);
        let question = peer.read();
        assert_eq!(question["method"], method);
        assert_eq!(
            peer.ask(3, "ping", json!({}))["id"],
            3,
            "others are answered meanwhile"
        );
        peer.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"mine": method}}));
        let answer = peer.read();
        assert_eq!(
            (&answer["id"], text(&answer)),
            (&json!(2), &*json!({"result": {"mine": method}}).to_string())
        );
    }
}

#[test]
fn ask_init_waits_for_both_answers_whatever_they_are() {
    let mut discover = json!({});
    discover["_meta"] = modern_meta();
    for (method, params) in [
        ("initialize", initialize_params("2025-11-25")),
        ("server/discover", discover),
    ] {
        let mut peer = Peer::start(&["--fault", "ask-init"]);
        let ping = peer.ask(1, method, params);
        let sampling = peer.read();
        assert_eq!(
            (&ping["method"], &sampling["method"]),
            (&json!("ping"), &json!("sampling/createMessage"))
        );
        peer.send(&json!({"jsonrpc": "2.0", "id": sampling["id"], "error": {"code": -32601, "message": "no"}}));
        assert_eq!(
            peer.ask(2, "ping", json!({}))["id"],
            2,
            "{method}: one is not enough"
        );
        peer.send(&json!({"jsonrpc": "2.0", "id": ping["id"], "result": {}}));
        let answer = peer.read();
        assert_eq!(answer["id"], 1);
        assert!(answer["result"]["capabilities"].is_object(), "{answer}");
        assert!(peer.rest().is_empty());
    }
}

#[test]
fn a_cancelled_question_leaves_nothing_behind() {
    let mut peer = second("ask-roots");
    let question = peer.read();
    peer.send(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}),
    );
    peer.send(&json!({"jsonrpc": "2.0", "id": question["id"], "error": {"code": -32601, "message": "no"}}));
    assert!(peer.rest().is_empty());
}

#[test]
fn modern_questions_come_as_input_required() {
    let mut peer = Peer::start(&["--fault", "ask-elicit"]);
    let asked = peer.ask_modern(1, "tools/call", json!({"name": "get_time"}))["result"].clone();
    assert_eq!(asked["resultType"], "input_required");
    assert_eq!(
        asked["inputRequests"]["answer"]["method"],
        "elicitation/create"
    );
    let responses = json!({"answer": {"action": "decline"}});
    let forged = json!({"name": "get_time", "inputResponses": responses, "requestState": "x"});
    assert_eq!(
        peer.ask_modern(2, "tools/call", forged)["error"]["code"],
        -32602
    );
    let retry = json!({"name": "get_time", "inputResponses": responses, "requestState": asked["requestState"]});
    assert_eq!(
        text(&peer.ask_modern(3, "tools/call", retry)),
        responses.to_string()
    );

    let mut meta = modern_meta();
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let refused = Peer::start(&["--fault", "ask-roots"]).ask(
        1,
        "tools/call",
        json!({"name": "get_time", "_meta": meta}),
    );
    assert_eq!(refused["error"]["code"], -32021);
    assert_eq!(
        refused["error"]["data"]["requiredCapabilities"],
        json!({"roots": {}})
    );
}
