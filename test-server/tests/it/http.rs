//! Streamable HTTP, in both eras.

use std::io::Write as _;
use std::net::TcpStream;

use serde_json::json;

use crate::site::{Exchange, Site};
use crate::support::{modern_meta, text};

fn error_code(exchange: Exchange) -> (u16, i64) {
    (
        exchange.status,
        exchange.json()["error"]["code"].as_i64().unwrap(),
    )
}

#[test]
fn a_legacy_session_begins_is_needed_and_ends() {
    let site = Site::start(&[]);
    let session = site.initialize();
    let echo = site.ask(
        &session,
        "tools/call",
        json!({"name": "echo", "arguments": {"message": "m"}}),
    );
    assert_eq!(
        (echo.status, echo.header("content-type")),
        (200, Some("application/json"))
    );
    assert_eq!(text(&echo.json()), "m");
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(
        site.post(&[("Mcp-Session-Id", &session)], &notification)
            .status,
        202
    );

    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    assert_eq!(site.post(&[], &ping).status, 400);
    assert_eq!(site.post(&[], &notification).status, 400);
    assert_eq!(site.post(&[("Mcp-Session-Id", "nope")], &ping).status, 404);
    assert_eq!(
        site.open("DELETE", &[("Mcp-Session-Id", &session)], "")
            .status,
        200
    );
    assert_eq!(
        site.post(&[("Mcp-Session-Id", &session)], &ping).status,
        404
    );
}

#[test]
fn progress_turns_the_answer_into_a_stream() {
    let site = Site::start(&[]);
    let session = site.initialize();
    let arguments = json!({"duration": 0, "steps": 2});
    let params =
        json!({"name": "slow_operation", "arguments": arguments, "_meta": {"progressToken": "t"}});
    let mut exchange = site.ask(&session, "tools/call", params);
    assert_eq!(exchange.event().unwrap()["params"]["progress"], 1);
    assert_eq!(exchange.event().unwrap()["params"]["progressToken"], "t");
    assert!(text(&exchange.event().unwrap()).starts_with("Done"));
    assert!(exchange.event().is_none());
}

#[test]
fn the_stream_of_a_session_hears_of_changes_and_ends_with_it() {
    let site = Site::start(&["--fault", "list-changed"]);
    let session = site.initialize();
    let headers = [
        ("Accept", "text/event-stream"),
        ("Mcp-Session-Id", &session),
    ];
    let mut stream = site.open("GET", &headers, "");
    site.ask(&session, "tools/call", json!({"name": "get_time"}))
        .json();
    assert_eq!(
        stream.event().unwrap()["method"],
        "notifications/tools/list_changed"
    );
    site.open("DELETE", &[("Mcp-Session-Id", &session)], "");
    assert!(stream.event().is_none());
    assert_eq!(site.open("GET", &headers, "").status, 404);
}

#[test]
fn a_legacy_question_rides_on_the_stream_of_its_call() {
    let site = Site::start(&["--fault", "ask-roots"]);
    let session = site.initialize();
    let mut exchange = site.ask(&session, "tools/call", json!({"name": "get_time"}));
    let question = exchange.event().unwrap();
    assert_eq!(question["method"], "roots/list");
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}});
    assert_eq!(
        site.post(&[("Mcp-Session-Id", &session)], &answer).status,
        202
    );
    assert_eq!(
        text(&exchange.event().unwrap()),
        r#"{"result":{"roots":[]}}"#
    );
}

#[test]
fn modern_requests_need_no_session() {
    let site = Site::start(&[]);
    let discovered = site.modern("server/discover", json!({}));
    assert!(discovered.header("mcp-session-id").is_none());
    assert_eq!(
        discovered.json()["result"]["supportedVersions"][0],
        "2026-07-28"
    );
    let echo = site.modern(
        "tools/call",
        json!({"name": "echo", "arguments": {"message": "m"}}),
    );
    assert_eq!(text(&echo.json()), "m");
    let read = site.modern("resources/read", json!({"uri": "file:///readme.txt"}));
    assert_eq!(read.json()["result"]["resultType"], "complete");
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    assert_eq!(
        site.post(&[("MCP-Protocol-Version", "2026-07-28")], &cancelled)
            .status,
        202
    );
}

#[test]
fn modern_refusals_have_their_status_and_code() {
    let site = Site::start(&[]);
    assert_eq!(error_code(site.modern("nope", json!({}))), (404, -32601));
    let mut request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": modern_meta()}});
    let version = ("MCP-Protocol-Version", "2026-07-28");
    assert_eq!(error_code(site.post(&[version], &request)), (400, -32020));
    assert_eq!(
        error_code(site.post(&[version, ("Mcp-Method", "tools/call")], &request)),
        (400, -32020)
    );
    request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2030-01-01");
    assert_eq!(
        error_code(site.post(&[version, ("Mcp-Method", "tools/list")], &request)),
        (400, -32020),
        "header and body name two versions"
    );
    let other = ("MCP-Protocol-Version", "2030-01-01");
    assert_eq!(
        error_code(site.post(&[other, ("Mcp-Method", "tools/list")], &request)),
        (400, -32022)
    );
    request["params"] = json!({});
    assert_eq!(
        error_code(site.post(&[version, ("Mcp-Method", "tools/list")], &request)),
        (400, -32602)
    );
}

#[test]
fn a_modern_subscription_is_a_stream() {
    let site = Site::start(&["--era", "modern", "--fault", "list-changed"]);
    let mut stream = site.modern(
        "subscriptions/listen",
        json!({"notifications": {"toolsListChanged": true}}),
    );
    assert_eq!(
        stream.event().unwrap()["method"],
        "notifications/subscriptions/acknowledged"
    );
    site.modern("tools/call", json!({"name": "get_time"}))
        .json();
    assert_eq!(
        stream.event().unwrap()["method"],
        "notifications/tools/list_changed"
    );
    assert_eq!(
        site.open("GET", &[("Accept", "text/event-stream")], "")
            .status,
        405
    );
    assert_eq!(site.open("DELETE", &[], "").status, 405);
}

#[cfg(target_os = "linux")]
#[test]
fn closing_the_response_cancels_a_modern_call() {
    use crate::support::wait_until;
    let site = Site::start(&[]);
    let tasks = format!("/proc/{}/task", site.child.id());
    let calls = || {
        let tasks = std::fs::read_dir(&tasks)
            .unwrap()
            .map(|task| task.unwrap().path().join("comm"));
        tasks
            .filter(|path| std::fs::read_to_string(path).is_ok_and(|name| name == "call\n"))
            .count()
    };
    let arguments = json!({"duration": 600, "steps": 1000});
    let mut exchange = site.modern(
        "tools/call",
        json!({"name": "slow_operation", "arguments": arguments}),
    );
    assert_eq!(exchange.event().unwrap()["params"]["progress"], 1);
    assert_eq!(calls(), 1);
    drop(exchange);
    wait_until("end of the call", || (calls() == 0).then_some(()));
}

#[test]
fn requests_that_are_no_messages_are_refused_by_status() {
    let site = Site::start(&[]);
    let json_type = ("Content-Type", "application/json");
    let both = ("Accept", "application/json, text/event-stream");
    assert_eq!(
        site.open("POST", &[json_type, ("Accept", "application/json")], "{}")
            .status,
        406
    );
    assert_eq!(
        site.open("POST", &[both, ("Content-Type", "text/plain")], "{}")
            .status,
        415
    );
    assert_eq!(
        site.open(
            "POST",
            &[both, json_type, ("Origin", "http://evil.example")],
            "{}"
        )
        .status,
        403
    );
    assert_eq!(
        error_code(site.open("POST", &[both, json_type], "nonsense")),
        (400, -32700)
    );
    assert_eq!(
        error_code(site.open("POST", &[both, json_type], "[]")),
        (400, -32600)
    );
    assert_eq!(site.open("PUT", &[], "").status, 405);
}

#[test]
fn an_unanswered_call_holds_its_response_back() {
    let site = Site::start(&["--fault", "hang"]);
    let session = site.initialize();
    let call = |_| {
        let mut stream = TcpStream::connect(("127.0.0.1", site.port)).unwrap();
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_time"}}"#;
        let head =
            "POST /mcp HTTP/1.1\r\nHost: x\r\nAccept: */*\r\nContent-Type: application/json\r\n";
        let length = body.len();
        let request =
            format!("{head}Mcp-Session-Id: {session}\r\nContent-Length: {length}\r\n\r\n{body}");
        stream.write_all(request.as_bytes()).unwrap();
        stream.set_nonblocking(true).unwrap();
        stream
    };
    // Whichever arrives first is the one that hangs.
    let streams = [0, 1].map(call);
    let answered = |stream: &TcpStream| stream.peek(&mut [0]).is_ok();
    crate::support::wait_until("answer", || streams.iter().any(answered).then_some(()));
    assert_eq!(streams.iter().filter(|stream| answered(stream)).count(), 1);
}

#[test]
fn a_session_cannot_be_in_a_revision_that_is_not_spoken() {
    let site = Site::start(&["--revision", "2025-11-25"]);
    let session = site.initialize();
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    for (version, status) in [("2025-11-25", 200), ("2025-06-18", 400)] {
        let headers = [
            ("Mcp-Session-Id", &*session),
            ("MCP-Protocol-Version", version),
        ];
        assert_eq!(site.post(&headers, &ping).status, status, "{version}");
    }
}

#[test]
fn the_record_is_of_stdio_alone() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("wire");
    Site::start(&["--wire", folder.to_str().unwrap()]).initialize();
    assert!(!folder.exists());
}

#[test]
fn a_question_of_the_tool_rides_on_the_stream_of_its_call_too() {
    let site = Site::start(&["--interactive"]);
    let session = site.initialize();
    let arguments = json!({"kind": "elicitation", "text": "t"});
    let params = json!({"name": "ask", "arguments": arguments});
    let mut exchange = site.ask(&session, "tools/call", params);
    let question = exchange.event().unwrap();
    assert_eq!(question["params"]["message"], "t");
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}});
    site.post(&[("Mcp-Session-Id", &session)], &answer);
    assert_eq!(text(&exchange.event().unwrap()), r#"{"action":"decline"}"#);
}

#[test]
fn a_session_can_be_over_after_a_few_requests() {
    let site = Site::start(&["--fault", "http-session@2"]);
    let session = site.initialize();
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let statuses = [(); 3].map(|()| site.post(&[("Mcp-Session-Id", &session)], &ping).status);
    assert_eq!(statuses, [200, 200, 404]);
}

#[test]
fn calls_can_be_refused_by_the_transport() {
    for (fault, status) in [
        ("http-429@2", 429),
        ("http-503@2", 503),
        ("http-401@2", 401),
        ("http-html@2", 200),
    ] {
        let site = Site::start(&["--fault", fault]);
        let echo = json!({"name": "echo", "arguments": {"message": "m"}});
        assert_eq!(site.modern("tools/call", echo.clone()).status, 200);
        let refused = site.modern("tools/call", echo.clone());
        assert_eq!(refused.status, status, "{fault}");
        let is_page = refused.header("content-type") == Some("text/html");
        assert_eq!(is_page, status == 200);
        assert_eq!(refused.header("retry-after").is_some(), status == 429);
        let after = site.modern("tools/call", echo).status;
        assert_eq!(after, if status == 401 { 401 } else { 200 }, "{fault}");
    }
}

#[test]
fn a_stream_that_is_cut_can_be_had_to_its_end() {
    let site = Site::start(&["--fault", "http-cut"]);
    let session = site.initialize();
    let echo = json!({"name": "echo", "arguments": {"message": "m"}});
    let cut = site.ask(&session, "tools/call", echo).rest();
    assert!(
        cut.contains("id: cut-1\n") && !cut.contains("result"),
        "{cut}"
    );
    let headers = [
        ("Mcp-Session-Id", &*session),
        ("Accept", "text/event-stream"),
        ("Last-Event-ID", "cut-1"),
    ];
    let rest = site.open("GET", &headers, "").rest();
    assert!(rest.contains("result"), "{rest}");
}
