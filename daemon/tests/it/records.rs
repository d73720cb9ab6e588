//! The records of what servers are told, and that the check of them can fail.

use crate::support::{
    Home,
    schema::{MODERN, check, check_record, read},
    server_when, start_with,
};
use nexus_client::ServerState;
use std::fs;

const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

fn message(rest: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0",{rest}}}"#)
}

/// A stream that has agreed on a revision.
fn legacy(revision: &str) -> String {
    let client = r#""clientInfo":{"name":"n","version":"1"},"capabilities":{}"#;
    let params = format!(r#"{{"protocolVersion":"{revision}",{client}}}"#);
    let initialize = message(&format!(
        r#""id":0,"method":"initialize","params":{params}"#
    ));
    let initialized = message(r#""method":"notifications/initialized""#);
    format!("{initialize}\n# negotiated {revision}\n{initialized}\n")
}

/// A modern request; `params` is what it has beside the metadata.
fn modern(method: &str, params: &str) -> String {
    let prefix = "io.modelcontextprotocol";
    let meta = format!(
        r#""_meta":{{"{prefix}/protocolVersion":"{MODERN}","{prefix}/clientCapabilities":{{}}}}"#
    );
    let request = format!(r#""id":1,"method":"{method}","params":{{{meta}{params}}}"#);
    message(&request) + "\n"
}

#[test]
fn what_is_mcp_passes() {
    for revision in LEGACY {
        let call = r#""id":1,"method":"tools/call","params":{"name":"t","arguments":{"n":1e400,"s":"\ud800"}}"#;
        let roots = r#""id":5,"result":{"roots":[{"uri":"file:///a"}]}"#;
        let refusal = r#""id":6,"error":{"code":-1,"message":"no"}"#;
        let record = [
            &message(r#""id":"a","method":"ping""#),
            &message(call),
            "# asked 5 roots/list",
            &message(roots),
            "# asked 6 sampling/createMessage",
            &message(refusal),
            &message(r#""method":"notifications/cancelled","params":{"requestId":1}"#),
        ];
        let record = legacy(revision) + &record.join("\n") + "\n{ half a line";
        assert_eq!(check_record(&record), Ok(()), "{revision}");
    }
    let cancelled = message(r#""method":"notifications/cancelled","params":{"requestId":1}"#);
    let record = [
        modern("server/discover", ""),
        modern("tools/call", r#","name":"t""#),
        modern("subscriptions/listen", r#","notifications":{}"#),
        cancelled + "\n",
        // A legacy stream may have modern requests too.
        legacy("2025-06-18"),
        modern("tools/list", ""),
        message(r#""id":2,"method":"ping""#) + "\n",
    ];
    assert_eq!(check_record(&record.concat()), Ok(()));
}

#[test]
fn what_is_not_mcp_is_refused() {
    let after = |revision: &str, rest: &str| legacy(revision) + &message(rest) + "\n";
    let answer = |question: &str, rest: &str| {
        let asked = format!("# asked 5 {question}\n");
        legacy("2025-11-25") + &asked + &message(rest) + "\n"
    };
    for (record, reason) in [
        // wrong messages
        (
            after("2025-11-25", r#""id":1,"method":"tools/call","params":{}"#),
            "name",
        ),
        (after("2024-11-05", r#""id":null,"method":"ping""#), "null"),
        (
            after(
                "2025-06-18",
                r#""method":"notifications/cancelled","params":{"requestId":{}}"#,
            ),
            "requestId",
        ),
        (
            after(
                "2025-03-26",
                r#""id":1,"method":"resources/read","params":{"uri":7}"#,
            ),
            "7 is not",
        ),
        (
            legacy("2025-11-25") + "{\"id\":1,\"method\":\"ping\"}\n",
            "jsonrpc",
        ),
        (legacy("2025-11-25") + "[]\n", "not one message"),
        (legacy("2025-11-25") + "hello\n", "not JSON"),
        (
            legacy("2025-11-25").replace("clientInfo", "client"),
            "clientInfo",
        ),
        // messages of another revision
        (
            after(
                "2025-11-25",
                r#""id":1,"method":"server/discover","params":{}"#,
            ),
            "no method",
        ),
        (modern("ping", ""), "no method `ping`"),
        (
            modern("resources/subscribe", r#","uri":"file:///a""#),
            "no method",
        ),
        (
            modern("tools/call", r#","name":"t""#).replace("clientCapabilities", "x"),
            "clientCapabilities",
        ),
        (
            modern("tools/list", "") + &message(r#""method":"notifications/initialized""#) + "\n",
            "no method",
        ),
        (
            after("2025-06-18", r#""id":1,"method":"tasks/list""#),
            "no method",
        ),
        (
            legacy("2025-06-18").replace("2025-06-18", "2031-01-01"),
            "2031-01-01",
        ),
        // messages before there is a revision, or that nobody knows
        (
            message(r#""id":1,"method":"tools/list""#) + "\n",
            "in no revision",
        ),
        (
            message(r#""method":"notifications/initialized""#) + "\n",
            "in no revision",
        ),
        (
            after("2025-11-25", r#""id":1,"method":"no/such""#),
            "no method `no/such`",
        ),
        // what only a server may send
        (
            after("2025-11-25", r#""id":1,"method":"roots/list""#),
            "ClientRequest",
        ),
        (
            after(
                "2025-11-25",
                r#""method":"notifications/tools/list_changed""#,
            ),
            "ClientNotification",
        ),
        // answers
        (
            after("2025-11-25", r#""id":5,"result":{}"#),
            "to no question",
        ),
        (
            answer("roots/list", r#""id":5,"result":{}"#),
            "ListRootsResult",
        ),
        (
            answer(
                "elicitation/create",
                r#""id":5,"result":{"action":"maybe"}"#,
            ),
            "ElicitResult",
        ),
        (
            answer("ping", r#""id":5,"error":{"code":"x"}"#),
            "JSONRPCErrorResponse",
        ),
        (
            modern("tools/list", "") + &message(r#""id":5,"result":{}"#) + "\n",
            "only the legacy era",
        ),
    ] {
        let refused = check_record(&record).unwrap_err();
        assert!(refused.contains(reason), "{reason:?} is not in {refused}");
    }
}

#[test]
fn the_odd_results_of_the_test_server_are_valid() {
    for (n, result) in nexus_test_server::odd_results().into_iter().enumerate() {
        let result = read(str::from_utf8(&result).unwrap()).unwrap();
        for revision in ["2025-06-18", "2025-11-25", MODERN] {
            assert_eq!(check(revision, "CallToolResult", &result), Ok(()), "{n}");
        }
    }
}

#[tokio::test]
async fn every_test_server_is_on_record() {
    let daemon = start_with(&[]);
    let nexus = daemon.client().await;
    server_when(&nexus, "t", |s| s.state == ServerState::Ready).await;
    let entry = fs::read_dir(daemon.home.wire()).unwrap().next().unwrap();
    let record = fs::read_to_string(entry.unwrap().path()).unwrap();
    assert!(record.contains(r#""method":"tools/list""#), "{record}");
}

#[test]
fn a_record_with_a_wrong_message_fails_the_test_it_is_of() {
    let home = Home::new();
    fs::create_dir(home.wire()).unwrap();
    let record = legacy("2025-11-25") + &message(r#""id":1,"method":"no/such""#) + "\n";
    fs::write(home.wire().join("1-1.jsonl"), record).unwrap();
    let failed = std::panic::catch_unwind(|| drop(home)).unwrap_err();
    let why = failed.downcast_ref::<String>().unwrap();
    assert!(why.contains("no/such"), "{why}");
}
