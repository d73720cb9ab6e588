//! Faults of calls.

use serde_json::{Value, json};

use crate::support::{Peer, command, modern_meta, text, wait_until};

fn echo(peer: &mut Peer, id: i64) {
    peer.call(id, "echo", json!({"message": format!("m{id}")}));
}

/// A server on which one call was answered as it should be: the fault is due at the second.
pub(crate) fn second(fault: &str) -> Peer {
    let mut peer = Peer::initialized(&["--fault", &format!("{fault}@2")]);
    echo(&mut peer, 1);
    assert_eq!(text(&peer.read()), "m1", "{fault}");
    echo(&mut peer, 2);
    peer
}

#[test]
fn exit_dies_before_and_exit_after_dies_after_the_execution() {
    for (fault, executed) in [("exit", 1), ("exit-after", 2)] {
        let directory = tempfile::tempdir().unwrap();
        let journal = directory.path().join("journal");
        let fault = format!("{fault}@2");
        let mut peer =
            Peer::initialized(&["--fault", &fault, "--journal", journal.to_str().unwrap()]);
        echo(&mut peer, 1);
        peer.read();
        echo(&mut peer, 2);
        assert_eq!(peer.exit_code(), Some(7));
        assert!(peer.line().is_none());
        assert_eq!(
            std::fs::read_to_string(&journal).unwrap().lines().count(),
            executed,
            "{fault}"
        );
    }
}

#[test]
fn exit_idle_answers_first() {
    let mut peer = second("exit-idle");
    assert_eq!(text(&peer.read()), "m2");
    assert_eq!(peer.exit_code(), Some(0));
}

#[cfg(unix)]
#[test]
fn segv_dies_of_the_signal() {
    use std::os::unix::process::ExitStatusExt as _;
    assert_eq!(second("segv").exit_status().signal(), Some(11));
}

#[cfg(target_os = "linux")]
#[test]
fn alloc_takes_the_memory_and_keeps_it() {
    let mut peer = Peer::initialized(&["--fault", "alloc@64"]);
    let resident = |peer: &Peer| -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", peer.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        line.unwrap()
            .split_whitespace()
            .nth(1)
            .unwrap()
            .parse()
            .unwrap()
    };
    assert!(resident(&peer) < 64 << 10);
    for id in 1..=3 {
        echo(&mut peer, id);
        assert_eq!(text(&peer.read()), format!("m{id}"));
        assert!(
            (64 << 10..128 << 10).contains(&resident(&peer)),
            "call {id}"
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn alloc_dies_of_a_limit_before_the_execution() {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    use std::os::unix::process::ExitStatusExt as _;

    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("journal");
    let mut peer = Peer::initialized(&["--fault", "alloc", "--journal", journal.to_str().unwrap()]);
    // No core file: it aborts.
    for (resource, most) in [(Resource::Core, 0), (Resource::As, 128 << 20)] {
        let limit = Rlimit {
            current: Some(most),
            maximum: Some(most),
        };
        prlimit(Some(Pid::from_child(&peer.child)), resource, limit).unwrap();
    }
    echo(&mut peer, 1);
    assert_eq!(peer.exit_status().signal(), Some(6));
    assert!(peer.line().is_none());
    assert_eq!(std::fs::read_to_string(&journal).unwrap(), "");
}

#[test]
fn hang_holds_back_one_answer_only() {
    let mut peer = second("hang");
    echo(&mut peer, 3);
    assert_eq!(peer.read()["id"], 3);
    assert!(peer.rest().is_empty());
}

#[test]
fn hang_all_answers_the_call_and_then_nothing() {
    let mut peer = second("hang-all");
    assert_eq!(text(&peer.read()), "m2");
    peer.request(3, "ping", json!({}));
    echo(&mut peer, 4);
    assert!(peer.rest().is_empty());
    assert_eq!(
        peer.exit_code(),
        Some(0),
        "it went on reading up to the end"
    );
}

#[test]
fn late_comes_after_its_cancellation() {
    let mut peer = second("late");
    peer.send(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}),
    );
    assert_eq!(peer.ask(3, "ping", json!({}))["id"], 3);
    assert_eq!(text(&peer.read()), "m2");
}

#[cfg(target_os = "linux")]
#[test]
fn stop_reading_handles_that_message_and_lives_on() {
    let mut peer = Peer::start(&["--fault", "stop-reading@2"]);
    assert_eq!(peer.ask(1, "ping", json!({}))["id"], 1);
    assert_eq!(peer.ask(2, "ping", json!({}))["id"], 2);
    peer.wait_until_it_stops_reading();
    peer.close_stdin();
    assert!(peer.is_alive());
}

#[cfg(unix)]
#[test]
fn close_stdin_breaks_the_pipe_and_lives_on() {
    let mut peer = second("close-stdin");
    assert_eq!(text(&peer.read()), "m2");
    let error = loop {
        if let Err(error) = peer.send_line("{}") {
            break error;
        }
    };
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
    assert!(peer.is_alive());
}

#[test]
fn close_stdout_ends_the_answers_and_lives_on() {
    let mut peer = second("close-stdout");
    assert!(peer.line().is_none());
    assert!(peer.is_alive());
    peer.close_stdin();
    assert_eq!(peer.exit_code(), Some(0));
}

#[test]
fn no_newline_exit_leaves_a_whole_message_without_its_end() {
    let mut peer = second("no-newline-exit");
    let line = peer.line().unwrap();
    assert_eq!(line.last(), Some(&b'}'));
    assert_eq!(text(&serde_json::from_slice(&line).unwrap()), "m2");
    assert_eq!(peer.exit_code(), Some(0));
}

#[test]
fn a_trickle_is_a_whole_answer_in_the_end() {
    let mut peer = second("trickle");
    echo(&mut peer, 3);
    assert_eq!(text(&peer.read()), "m2");
    assert_eq!(text(&peer.read()), "m3", "nothing gets in between");
}

#[test]
fn a_trickle_has_begun_long_before_it_ends() {
    use std::io::{Read as _, Write as _};

    let mut server = command(&["--fault", "trickle"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let (mut stdin, mut stdout) = (server.stdin.take().unwrap(), server.stdout.take().unwrap());
    // All of it would take longer than we have patience.
    let arguments = json!({"message": "x".repeat(10_000)});
    let params = json!({"name": "echo", "arguments": arguments, "_meta": modern_meta()});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    stdin.write_all(format!("{call}\n").as_bytes()).unwrap();
    stdout.read_exact(&mut [0]).unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    let mut rest = Vec::new();
    stdout.read_to_end(&mut rest).unwrap();
    assert_ne!(rest.last(), Some(&b'\n'));
}

#[test]
fn partial_lets_nothing_more_out_and_reads_on() {
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("journal");
    let mut peer =
        Peer::initialized(&["--fault", "partial", "--journal", journal.to_str().unwrap()]);
    for id in 1..=3 {
        echo(&mut peer, id);
    }
    wait_until("third execution", || {
        let executed = std::fs::read_to_string(&journal).unwrap().lines().count();
        (executed == 3).then_some(())
    });
    assert!(peer.is_alive());
    peer.close_stdin();
    let half = peer.line().unwrap();
    let whole = br#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"m1"}]}}"#;
    assert_eq!(half, whole[..whole.len() / 2]);
    assert!(peer.line().is_none());
    assert_eq!(peer.exit_code(), Some(0));
}

#[test]
fn nul_and_surrogate_are_inside_a_string() {
    for (fault, bytes) in [
        ("nul", &b"bad \0 byte"[..]),
        ("surrogate", br"bad \ud800 byte"),
    ] {
        let line = second(fault).line().unwrap();
        assert!(
            line.windows(bytes.len()).any(|window| window == bytes),
            "{fault}"
        );
        assert!(serde_json::from_slice::<Value>(&line).is_err(), "{fault}");
    }
}

#[test]
fn bad_utf8_is_inside_a_string() {
    let line = second("bad-utf8").line().unwrap();
    assert_eq!(line.iter().filter(|byte| **byte == 0xff).count(), 1);
    assert!(serde_json::from_slice::<Value>(&line).is_err());
    assert_eq!(
        serde_json::from_str::<Value>(&String::from_utf8_lossy(&line)).unwrap()["id"],
        2
    );
}

#[test]
fn deep_is_a_hundred_thousand_deep() {
    let line = String::from_utf8(second("deep").line().unwrap()).unwrap();
    let (_, nested) = line.split_once(r#""deep":"#).unwrap();
    assert_eq!(nested.find(']'), Some(100_000));
    assert!(nested[100_000..].starts_with(&"]".repeat(100_000)));
}

#[test]
fn huge_is_a_valid_line_of_a_hundred_megabytes() {
    let line = second("huge").line().unwrap();
    assert_eq!(line.len(), 100_000_001);
    let answer: Value = serde_json::from_slice(&line).unwrap();
    assert_eq!(answer["id"], 2);
}

#[test]
fn big_numbers_are_sent_as_they_are() {
    let line = String::from_utf8(second("big-number").line().unwrap()).unwrap();
    assert!(line.contains(
        r#""structuredContent":{"big":123456789012345678901234567890,"overflow":1e400}"#
    ));
}

#[test]
fn wrong_envelopes_are_wrong_in_their_own_way() {
    assert_eq!(second("string-id").read()["id"], "2");
    assert_eq!(second("null-id").read()["id"], Value::Null);
    assert_eq!(second("batch").read()[0]["id"], 2);
    let mut twice = second("dup-response");
    assert_eq!(twice.read(), twice.read());
}

#[test]
fn unknown_id_comes_before_every_answer() {
    let mut peer = Peer::start(&["--fault", "unknown-id"]);
    for id in 1..3 {
        assert_eq!(peer.ask(id, "ping", json!({}))["id"], 999_999_999);
        assert_eq!(peer.read()["id"], id);
    }
}

#[test]
fn notification_flood_comes_before_the_answer() {
    let mut peer = second("notification-flood");
    for _ in 0..50_000 {
        assert!(
            peer.line()
                .unwrap()
                .starts_with(br#"{"jsonrpc":"2.0","method":"notifications/message""#)
        );
    }
    assert_eq!(text(&peer.read()), "m2");
}

#[test]
fn progress_flood_comes_before_the_answer_to_those_who_gave_a_token() {
    assert_eq!(text(&second("progress-flood").read()), "m2");

    let mut peer = Peer::initialized(&["--fault", "progress-flood"]);
    let params =
        json!({"name": "echo", "arguments": {"message": "m"}, "_meta": {"progressToken": "t"}});
    peer.request(1, "tools/call", params);
    for step in 1..=20_000 {
        let progress = peer.read();
        assert_eq!(progress["method"], "notifications/progress");
        assert_eq!(
            (
                &progress["params"]["progressToken"],
                &progress["params"]["progress"]
            ),
            (&json!("t"), &json!(step))
        );
    }
    assert_eq!(text(&peer.read()), "m");
}

#[test]
fn stdout_garbage_comes_once_before_the_answer_to_the_first_call() {
    for (fault, lines) in [("stdout-garbage", 200), ("stdout-garbage@7", 7)] {
        let mut peer = Peer::initialized(&["--fault", fault]);
        assert_eq!(peer.ask(0, "ping", json!({}))["id"], 0);
        echo(&mut peer, 1);
        for _ in 0..lines {
            let line = peer.line().unwrap();
            assert!(serde_json::from_slice::<Value>(&line).is_err());
        }
        assert_eq!(text(&peer.read()), "m1");
        echo(&mut peer, 2);
        assert_eq!(text(&peer.read()), "m2");
    }
}

#[test]
fn list_storm_says_the_same_a_thousand_times_and_is_true() {
    let mut peer = second("list-storm");
    assert_eq!(text(&peer.read()), "m2");
    for _ in 0..1_000 {
        assert_eq!(peer.read()["method"], "notifications/tools/list_changed");
    }
    let list = peer.ask(3, "tools/list", json!({}));
    let tools = list["result"]["tools"].as_array().unwrap();
    assert_eq!(tools.last().unwrap()["name"], "extra_tool");
}

#[test]
fn list_changed_is_told_to_those_who_listen_and_is_true() {
    let mut peer = second("list-changed");
    assert_eq!(text(&peer.read()), "m2");
    assert_eq!(peer.read()["method"], "notifications/tools/list_changed");
    let tools = peer.ask(3, "tools/list", json!({}))["result"]["tools"]
        .as_array()
        .unwrap()
        .clone();
    assert_eq!(tools.last().unwrap()["name"], "extra_tool");

    let mut modern = Peer::start(&["--fault", "list-changed"]);
    let listen = json!({"notifications": {"toolsListChanged": true, "promptsListChanged": true}});
    let acknowledged = modern.ask_modern("listen:0", "subscriptions/listen", listen);
    assert_eq!(
        acknowledged["method"],
        "notifications/subscriptions/acknowledged"
    );
    assert_eq!(
        acknowledged["params"]["notifications"],
        json!({"toolsListChanged": true})
    );
    modern.ask_modern(1, "tools/call", json!({"name": "get_time"}));
    let changed = modern.read();
    assert_eq!(
        changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        "listen:0"
    );
}

#[test]
fn a_cancelled_subscription_hears_nothing() {
    let mut peer = Peer::start(&["--fault", "list-changed"]);
    peer.ask_modern(
        9,
        "subscriptions/listen",
        json!({"notifications": {"toolsListChanged": true}}),
    );
    peer.send(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}}),
    );
    peer.ask_modern(1, "tools/call", json!({"name": "get_time"}));
    assert!(peer.rest().is_empty());
}

#[test]
fn lists_can_loop_and_fail() {
    let mut peer = Peer::initialized(&["--fault", "cursor-loop"]);
    let cursor = peer.ask(1, "tools/list", json!({}))["result"]["nextCursor"].clone();
    assert!(cursor.is_string());
    assert_eq!(
        peer.ask(2, "tools/list", json!({"cursor": cursor}))["result"]["nextCursor"],
        cursor
    );
    let mut peer = Peer::initialized(&["--fault", "list-error@2"]);
    assert!(peer.ask(1, "tools/list", json!({}))["result"].is_object());
    assert_eq!(
        peer.ask(2, "tools/list", json!({}))["error"]["code"],
        -32603
    );
    assert_eq!(
        peer.ask(3, "tools/list", json!({}))["error"]["code"],
        -32603
    );
}

#[test]
fn templates_missing_is_an_unknown_method_among_known_ones() {
    let mut peer = Peer::initialized(&["--fault", "templates-missing"]);
    for (method, code) in [
        ("resources/templates/list", json!(-32601)),
        ("resources/list", Value::Null),
    ] {
        let legacy = peer.ask(1, method, json!({}));
        let modern = peer.ask_modern(2, method, json!({}));
        assert_eq!(legacy["error"]["code"], code, "{method}");
        assert_eq!(modern["error"]["code"], code, "{method}");
    }
}
