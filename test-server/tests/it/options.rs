//! What the server offers or records only if it is asked for at the start.

use serde_json::{Value, json};

use crate::support::{Peer, text};

/// The definition of a tool as it is listed.
fn listed(peer: &mut Peer, tool: &str) -> Option<Value> {
    let list = peer.ask("list", "tools/list", json!({}));
    let tools = list["result"]["tools"].as_array().unwrap();
    tools.iter().find(|entry| entry["name"] == tool).cloned()
}

fn call(peer: &mut Peer, tool: &str, arguments: Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    peer.ask("call", "tools/call", params)
}

#[test]
fn hints_say_what_may_be_repeated() {
    let hints = |arguments: &[&str], tool: &str| {
        let annotations =
            listed(&mut Peer::initialized(arguments), tool).unwrap()["annotations"].clone();
        (
            annotations["readOnlyHint"].as_bool().unwrap(),
            annotations["idempotentHint"].as_bool().unwrap(),
        )
    };
    for arguments in [&[][..], &["--read-only-hints"]] {
        for tool in ["echo", "add", "get_time"] {
            assert!(hints(arguments, tool).0, "{tool} {arguments:?}");
        }
    }
    assert_eq!(hints(&[], "slow_operation"), (false, false));
    assert_eq!(
        hints(&["--read-only-hints"], "slow_operation"),
        (false, true)
    );
}

#[test]
fn a_process_remembers_what_the_call_before_gave() {
    let mut peers = [0, 1].map(|_| Peer::initialized(&["--state"]));
    for peer in &mut peers {
        for (given, returned) in [("a", ""), ("b", "a"), ("c", "b")] {
            let answer = call(peer, "remember", json!({"value": given, "nonce": "n"}));
            assert_eq!(text(&answer), returned);
        }
        let told: Value = serde_json::from_str(text(&call(peer, "whoami", json!({})))).unwrap();
        assert_eq!(told, json!({"pid": peer.child.id()}));
    }
}

#[test]
fn the_tools_with_state_are_there_only_if_asked_for() {
    for tool in ["remember", "whoami"] {
        let mut plain = Peer::initialized(&[]);
        assert!(listed(&mut plain, tool).is_none());
        let refused = call(&mut plain, tool, json!({"value": "a"}));
        assert_eq!(refused["error"]["code"], -32602);
        assert!(listed(&mut Peer::initialized(&["--state"]), tool).is_some());
    }
}
