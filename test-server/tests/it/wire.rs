//! How the server speaks, and the record of what it is told: `--revision`, `--batch`, `--ttl` and `--wire`.

use std::path::Path;

use serde_json::json;

use crate::support::{Peer, initialize_params, modern_meta, text, wait_until};

#[test]
fn only_the_revisions_that_were_asked_for_are_spoken() {
    for (arguments, asked, given) in [
        (
            &["--revision", "2024-11-05"][..],
            "2025-11-25",
            "2024-11-05",
        ),
        (
            &["--revision", "2024-11-05,2025-06-18"],
            "2025-11-25",
            "2025-06-18",
        ),
        (
            &["--revision", "2025-03-26", "--revision", "2024-11-05"],
            "2024-11-05",
            "2024-11-05",
        ),
        (
            &["--revision", "2025-03-26", "--era", "legacy"],
            "2031-01-01",
            "2025-03-26",
        ),
    ] {
        let answer = Peer::start(arguments).ask(0, "initialize", initialize_params(asked));
        assert_eq!(answer["result"]["protocolVersion"], given, "{arguments:?}");
    }
    let mut dual = Peer::start(&["--revision", "2024-11-05"]);
    let discovered = dual.ask_modern(1, "server/discover", json!({}));
    assert_eq!(
        discovered["result"]["supportedVersions"],
        json!(["2026-07-28", "2024-11-05"])
    );
    let mut wrong = Peer::start(&["--revision", "2026-07-28"]);
    assert_eq!(wrong.exit_code(), Some(2));
}

#[test]
fn a_modern_result_says_how_long_it_may_be_kept() {
    let mut peer = Peer::start(&["--ttl", "5", "--cache-scope", "private"]);
    for (method, params) in [
        ("server/discover", json!({})),
        ("tools/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({"uri": "file:///readme.txt"})),
    ] {
        let answer = peer.ask_modern(1, method, params);
        let result = &answer["result"];
        assert_eq!(
            (&result["ttlMs"], &result["cacheScope"]),
            (&json!(5), &json!("private")),
            "{method}"
        );
    }
    let call = peer.ask_modern(2, "tools/call", json!({"name": "get_time"}));
    assert!(call["result"].get("ttlMs").is_none());
}

#[test]
fn answers_come_in_batches_with_what_belongs_to_them() {
    let mut peer = Peer::start(&["--batch", "--revision", "2025-03-26", "--interactive"]);
    let initialized = peer.ask(0, "initialize", initialize_params("2025-11-25"));
    assert_eq!(initialized[0]["result"]["protocolVersion"], "2025-03-26");
    assert_eq!(initialized.as_array().unwrap().len(), 1);
    let arguments = json!({"duration": 0, "steps": 2});
    let params =
        json!({"name": "slow_operation", "arguments": arguments, "_meta": {"progressToken": 5}});
    let batch = peer.ask(1, "tools/call", params);
    let batch = batch.as_array().unwrap();
    assert_eq!(batch.len(), 3);
    assert!(
        batch[..2]
            .iter()
            .all(|message| message["params"]["progressToken"] == 5)
    );
    assert_eq!(batch[2]["id"], 1);

    peer.call(2, "ask", json!({"kind": "roots"}));
    let question = peer.read();
    assert_eq!(question[0]["method"], "roots/list", "it cannot wait");
    peer.send(&json!({"jsonrpc": "2.0", "id": question[0]["id"], "result": {"roots": []}}));
    assert_eq!(peer.read()[0]["id"], 2);
    peer.call(3, "grow", json!({"what": "tools"}));
    let changed = peer.read();
    assert_eq!(changed[0]["method"], "notifications/tools/list_changed");
    assert_eq!(peer.read()[0]["id"], 3);
    let mut modern = json!({});
    modern["_meta"] = modern_meta();
    assert_eq!(peer.ask(4, "tools/list", modern)[0]["id"], 4);
}

/// The one file of a record.
fn record(folder: &Path) -> String {
    let mut entries = std::fs::read_dir(folder).unwrap();
    let path = entries.next().unwrap().unwrap().path();
    assert!(entries.next().is_none());
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn every_line_is_on_record_before_it_is_handled() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("made/as/needed");
    let arguments = ["--wire", folder.to_str().unwrap(), "--fault", "exit@2"];
    let mut peer = Peer::start(&[&arguments[..], &["--revision", "2025-06-18"]].concat());
    let pid = peer.child.id().to_string();
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": initialize_params("2025-11-25")});
    peer.send(&initialize);
    peer.read();
    let lines = [
        r#"{ "jsonrpc":"2.0", "id":1,"method":"tools/call","params":{"name":"get_time","x":1e400}}"#,
        "not JSON\r",
        "",
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"get_time"}}"#,
    ];
    for line in lines {
        peer.send_line(line).unwrap();
    }
    assert_eq!(peer.exit_code(), Some(7));
    let expected = format!(
        "{initialize}\n# negotiated 2025-06-18\n{}\n",
        lines.join("\n")
    );
    assert_eq!(record(&folder), expected);
    let entry = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap();
    let name = entry.file_name().into_string().unwrap();
    let millis = name
        .strip_prefix(&format!("{pid}-"))
        .and_then(|rest| rest.strip_suffix(".jsonl"));
    assert!(millis.unwrap().parse::<u64>().unwrap() > 1_700_000_000_000);
}

#[test]
fn a_question_is_on_record_before_its_answer() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let mut peer = Peer::initialized(&["--wire", path, "--interactive"]);
    peer.call(1, "ask", json!({"kind": "roots"}));
    let question = peer.read();
    peer.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}}));
    peer.read();
    let record = record(directory.path());
    let lines: Vec<&str> = record.lines().collect();
    assert_eq!(lines[4], format!("# asked {} roots/list", question["id"]));
    assert!(lines[5].contains(r#""result":{"roots":[]}"#));
}

#[test]
fn a_record_that_cannot_be_kept_disturbs_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    let mut peer = Peer::initialized(&["--wire", file.to_str().unwrap()]);
    peer.call(1, "echo", json!({"message": "m"}));
    assert_eq!(text(&peer.read()), "m");
}

#[cfg(unix)]
#[test]
fn a_kill_loses_nothing_that_was_handled() {
    let directory = tempfile::tempdir().unwrap();
    let mut peer = Peer::initialized(&["--wire", directory.path().to_str().unwrap()]);
    peer.call("last", "echo", json!({"message": "m"}));
    peer.read();
    peer.child.kill().unwrap();
    wait_until("the end", || peer.child.try_wait().unwrap());
    assert!(
        record(directory.path())
            .lines()
            .last()
            .unwrap()
            .contains("\"last\"")
    );
}
