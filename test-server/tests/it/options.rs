//! What the server offers or records only if it is asked for at the start.

use std::path::Path;

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

/// The lines of a journal without their times.
fn lines(journal: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(journal).unwrap();
    let without_time = |line: &str| {
        let (time, rest) = line.split_once('\t').unwrap();
        assert!(time.parse::<u64>().unwrap() > 1_700_000_000_000, "{line}");
        rest.to_owned()
    };
    text.lines().map(without_time).collect()
}

#[test]
fn a_start_is_recorded_before_anything_else() {
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("starts");
    let path = journal.to_str().unwrap();
    let peers = [
        Peer::initialized(&["--start-journal", path]),
        Peer::initialized(&["--start-journal", path]),
    ];
    let mut crashing = Peer::start(&["--start-journal", path, "--fault", "crash-start"]);
    assert_eq!(crashing.exit_code(), Some(1));
    let pids = peers.iter().chain([&crashing]).map(|peer| peer.child.id());
    assert_eq!(
        lines(&journal),
        pids.map(|pid| pid.to_string()).collect::<Vec<_>>()
    );
}

#[test]
fn a_cancel_is_recorded_if_the_call_runs() {
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("cancels");
    let mut peer = Peer::initialized(&["--cancel-journal", journal.to_str().unwrap()]);
    let slow = json!({"name": "slow_operation", "arguments": {"duration": 600, "nonce": "a"}});
    let mut marked = slow.clone();
    marked["_meta"] = json!({"nexus.test/nonce": "b"});
    let nameless = json!({"name": "slow_operation", "arguments": {"duration": 600}});
    for (id, params) in [(1, slow), (2, marked), (3, nameless)] {
        peer.request(id, "tools/call", params);
    }
    peer.call(4, "echo", json!({"message": "m", "nonce": "done"}));
    assert_eq!(peer.read()["id"], 4);
    for id in [2, 1, 3, 1, 4, 9] {
        let params = json!({"requestId": id});
        peer.send(
            &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}),
        );
    }
    assert!(peer.rest().is_empty());
    let expected = ["b", "a", "-"].map(|nonce| format!("{}\tcancelled\t{nonce}", peer.child.id()));
    assert_eq!(lines(&journal), expected);
}

#[cfg(feature = "http")]
#[test]
fn closing_the_response_of_a_modern_call_is_recorded_as_its_cancel() {
    use crate::site::Site;
    use crate::support::wait_until;

    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("cancels");
    let site = Site::start(&["--cancel-journal", journal.to_str().unwrap()]);
    let call = |duration: u32, nonce: &str| {
        let arguments = json!({"duration": duration, "steps": 1000, "nonce": nonce});
        let params = json!({"name": "slow_operation", "arguments": arguments});
        site.modern("tools/call", params)
    };
    let mut finished = call(0, "finished");
    while finished.event().is_some() {}
    let mut running = call(600, "running");
    assert_eq!(running.event().unwrap()["params"]["progress"], 1);
    drop(running);
    wait_until("cancel", || (!lines(&journal).is_empty()).then_some(()));
    assert_eq!(
        lines(&journal),
        [format!("{}\tcancelled\trunning", site.child.id())]
    );
}
