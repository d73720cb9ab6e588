//! MCP over HTTP: what is refused and how, sessions that outlive the daemon, and the loopback address.

use crate::{
    mcp_client::{Door, Mcp, exchange},
    support::{Daemon, Home, server_until, servers, start_with, test_server},
};
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use rustix::process::Signal;
use serde_json::{Value, json};

type Headers<'a> = &'a [(&'a str, &'a str)];

const JSON: (&str, &str) = ("content-type", "application/json");
const MODERN: (&str, &str) = ("mcp-protocol-version", "2026-07-28");
const LIST: (&str, &str) = ("mcp-method", "tools/list");

async fn ask(
    daemon: &Daemon,
    method: &str,
    path: &str,
    headers: Headers<'_>,
    body: &str,
) -> (StatusCode, Value) {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request
        .body(Full::from(Bytes::copy_from_slice(body.as_bytes())))
        .unwrap();
    let response = exchange(&daemon.home.socket(), request).await;
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8_lossy(&body).into_owned();
    (
        status,
        serde_json::from_str(&text).unwrap_or(Value::String(text)),
    )
}

fn modern(method: &str, version: &str) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta}}).to_string()
}

#[tokio::test]
async fn what_is_wrong_gets_the_status_that_its_era_has_for_it() {
    let daemon = start_with(&[]);
    let list = modern("tools/list", "2026-07-28");
    let future = modern("tools/list", "2099-01-01");
    let other = modern("no/such", "2026-07-28");
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let unknown = ("mcp-session-id", "0123456789abcdef0123456789abcdef-zz-");
    type Case<'a> = (&'a str, &'a str, Headers<'a>, &'a str, u16, Option<i64>);
    let cases: &[Case<'_>] = &[
        ("POST", "/mcp", &[JSON, MODERN, LIST], &list, 200, None),
        ("POST", "/mcp/t", &[JSON, MODERN, LIST], &list, 200, None),
        ("POST", "/mcp", &[MODERN, LIST], &list, 415, None),
        ("POST", "/mcp", &[JSON, LIST], &list, 400, Some(-32020)),
        ("POST", "/mcp", &[JSON, MODERN], &list, 400, Some(-32020)),
        (
            "POST",
            "/mcp",
            &[JSON, ("mcp-protocol-version", "2099-01-01"), LIST],
            &future,
            400,
            Some(-32022),
        ),
        (
            "POST",
            "/mcp",
            &[JSON, MODERN, LIST],
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
            400,
            Some(-32602),
        ),
        (
            "POST",
            "/mcp",
            &[JSON, MODERN, ("mcp-method", "no/such")],
            &other,
            404,
            Some(-32601),
        ),
        ("POST", "/mcp", &[JSON], "{", 400, Some(-32700)),
        ("POST", "/mcp", &[JSON], ping, 400, Some(-32600)),
        ("POST", "/mcp", &[JSON, unknown], ping, 404, Some(-32001)),
        ("GET", "/mcp", &[], "", 400, Some(-32600)),
        (
            "GET",
            "/mcp",
            &[("accept", "application/json")],
            "",
            406,
            None,
        ),
        ("DELETE", "/mcp", &[unknown], "", 404, Some(-32001)),
        ("PUT", "/mcp", &[], "", 405, None),
        ("OPTIONS", "/mcp", &[], "", 405, None),
        ("GET", "/", &[], "", 404, None),
        (
            "POST",
            "/mcp",
            &[JSON, MODERN, LIST, ("origin", "http://evil.example")],
            &list,
            403,
            None,
        ),
    ];
    for (method, path, headers, body, status, code) in cases {
        let (got, answer) = ask(&daemon, method, path, headers, body).await;
        assert_eq!(
            got.as_u16(),
            *status,
            "{method} {path} {headers:?} {body}: {answer}"
        );
        assert_eq!(
            answer["error"]["code"].as_i64(),
            *code,
            "{headers:?} {body}: {answer}"
        );
    }
    // A name that a header cannot carry as it is.
    let call =
        modern("tools/call", "2026-07-28").replace(r#""params":{"#, r#""params":{"name":"t__é","#);
    let coded = ("mcp-name", "=?base64?dF9fw6k=?=");
    let (_, answer) = ask(
        &daemon,
        "POST",
        "/mcp",
        &[JSON, MODERN, ("mcp-method", "tools/call"), coded],
        &call,
    )
    .await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    // Too much of everything, and still there.
    let large = "x".repeat(65 << 20);
    let (status, _) = ask(&daemon, "POST", "/mcp", &[JSON], &large).await;
    assert_eq!(status, 413);
    let (status, _) = ask(&daemon, "POST", "/mcp", &[JSON, MODERN, LIST], &list).await;
    assert_eq!(status, 200);
}

/// The daemon ends as badly as it can, and the client notices nothing: it goes on in its session.
#[tokio::test]
async fn a_session_outlives_the_daemon() {
    let home = Home::new();
    home.configure(&servers(&[("t", test_server(&["--interactive"]))]));
    let mut daemon = home.start();
    let mut mcp = Mcp::come_in(Door::Http, &daemon, "legacy", "ann", json!({})).await;
    assert_eq!(
        mcp.text("t__echo", json!({"message": "before"})).await,
        "before"
    );
    daemon.signal(Signal::KILL);
    daemon.ended();
    let home = std::mem::replace(&mut daemon.home, Home::new());
    let daemon = home.start();
    assert_eq!(
        mcp.text("t__echo", json!({"message": "after"})).await,
        "after"
    );
    // It can be asked as before.
    let asked = mcp
        .text("t__ask", json!({"kind": "sampling", "text": "why"}))
        .await;
    assert!(asked.contains("ann was asked why"), "{asked}");
    let agents = daemon.client().await.agents().list().await.unwrap();
    assert!(
        agents
            .iter()
            .any(|agent| agent.name.as_deref() == Some("ann")),
        "{agents:?}"
    );
    // What its client has ended does not come back.
    let session = mcp.session().clone().unwrap();
    mcp.leave().await;
    let headers = [JSON, ("mcp-session-id", session.as_str())];
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let (status, _) = ask(&daemon, "POST", "/mcp", &headers, ping).await;
    assert_eq!(status, 404);
}

/// What belongs to a session ends when it should, and only those are in it whose it is.
#[tokio::test]
async fn nothing_of_a_session_stays_open_and_nobody_else_is_in_it() {
    let daemon = start_with(&[]);
    let nexus = daemon.client().await;
    let mut mcp = Mcp::come_in(Door::Http, &daemon, "legacy", "ann", json!({})).await;
    let session = mcp.session().clone().unwrap();
    let own = [JSON, ("mcp-session-id", session.as_str())];
    let slow = r#"{"jsonrpc":"2.0","id":"s","method":"tools/call","params":{"name":"t__slow_operation","arguments":{"duration":60,"steps":1}}}"#;
    let cancel =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"s"}}"#;
    // A request that is cancelled has no answer, and its response an end.
    let waiting = ask(&daemon, "POST", "/mcp", &own, slow);
    let giving_up = async {
        server_until(&nexus, "t", |server| server.in_flight == 1).await;
        ask(&daemon, "POST", "/mcp", &own, cancel).await
    };
    let ((status, body), _) = tokio::join!(waiting, giving_up);
    assert_eq!((status.as_u16(), body), (202, Value::String(String::new())));
    // Whoever shows another token has no part in it, and cannot end it either.
    let other = [own[0], own[1], ("authorization", "Bearer other")];
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for (verb, body) in [("POST", ping), ("DELETE", "")] {
        assert_eq!(
            ask(&daemon, verb, "/mcp", &other, body).await.0,
            404,
            "{verb}"
        );
    }
    assert_eq!(ask(&daemon, "POST", "/mcp", &own, ping).await.0, 200);
    // Its end is the end of whoever listens to it.
    assert_eq!(ask(&daemon, "DELETE", "/mcp", &own, "").await.0, 204);
    mcp.listened().await;
    assert_eq!(nexus.agents().list().await.unwrap().len(), 1);
}

/// On a loopback address, only who has the token is served, and by the names of this machine.
#[tokio::test]
async fn the_loopback_address_is_for_those_who_have_the_token() {
    let home = Home::new();
    home.configure(&servers(&[("t", test_server(&[]))]));
    let mut command = home.nexusd();
    command.args(["--http", "127.0.0.1:0"]);
    let daemon = home.start_as(command);
    let status = daemon.client().await.daemon().status().await.unwrap();
    let door = status.http.unwrap();
    let token = std::fs::read_to_string(&door.token_file).unwrap();
    let bearer = format!("Bearer {}", token.trim());
    let list = modern("tools/list", "2026-07-28");
    let send = async |host: &str, authorization: &str| {
        let stream = tokio::net::TcpStream::connect(&door.address).await.unwrap();
        let io = hyper_util::rt::TokioIo::new(stream);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
        tokio::spawn(connection);
        let request = Request::post("/mcp")
            .header("host", host)
            .header("authorization", authorization)
            .header(JSON.0, JSON.1)
            .header(MODERN.0, MODERN.1)
            .header(LIST.0, LIST.1)
            .body(Full::<Bytes>::from(list.clone()))
            .unwrap();
        sender
            .send_request(request)
            .await
            .unwrap()
            .status()
            .as_u16()
    };
    assert_eq!(send(&door.address, &bearer).await, 200);
    assert_eq!(send("localhost", &bearer).await, 200);
    assert_eq!(send(&door.address, "Bearer guess").await, 401);
    assert_eq!(send("evil.example", &bearer).await, 403);
    let home = daemon.end();
    // Other machines are not served at all.
    let mut command = home.nexusd();
    let ended = command.args(["--http", "0.0.0.0:0"]).output().unwrap();
    assert!(!ended.status.success());
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(
        said.contains("not an address of this machine alone"),
        "{said}"
    );
}
