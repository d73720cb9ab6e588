//! What one caller shows is never used for another.

use super::{
    daemon_with,
    mock::{Answer, Era, Mock, Seen},
};
use crate::mcp_client::exchange;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use nexus_client::{Nexus, Reason};
use serde_json::json;
use std::collections::{HashMap, HashSet};

fn token(seen: &Seen) -> String {
    seen.header("authorization").unwrap_or_default().to_owned()
}

/// A server that knows whom it speaks to, and has other tools for each.
fn personal(seen: &Seen) -> Option<Answer> {
    let token = token(seen);
    let Some(name) = token.strip_prefix("Bearer ").map(str::to_owned) else {
        return Some(Answer::status(401));
    };
    let result = match seen.method() {
        "tools/list" => {
            let tool = |tool: &str| json!({"name": tool, "inputSchema": {"type": "object"}});
            json!({"tools": [tool("who"), tool(&format!("only_{name}"))], "ttlMs": 600_000})
        }
        "tools/call" => json!({"content": [{"type": "text", "text": name}]}),
        _ => return None,
    };
    Some(Answer::json(&seen.result(result)))
}

async fn client(daemon: &crate::support::Daemon, token: &str) -> Nexus {
    let builder = Nexus::builder().socket(daemon.home.socket());
    let builder = builder.credential(&format!("Bearer {token}")).unwrap();
    builder.connect().await.unwrap()
}

#[tokio::test]
async fn two_tokens_never_share_a_connection_a_list_or_a_result() {
    for era in super::BOTH {
        let mock = Mock::start(era, personal).await;
        let daemon = daemon_with(
            &mock.url,
            json!({"forward_auth": true, "bearer": "configured"}),
        );
        let names = ["ann", "bob"];
        let mut tasks = Vec::new();
        for name in names {
            let nexus = client(&daemon, name).await;
            // Two of each, so that some do share.
            for _ in 0..2 {
                let nexus = nexus.clone();
                tasks.push(tokio::spawn(async move {
                    for n in 0..250 {
                        let answer = nexus.tools().call("t.who", json!({"n": n})).await;
                        assert_eq!(answer.unwrap().text(), name);
                        if n % 50 == 0 {
                            let tools = nexus.tools().list().await.unwrap().tools;
                            let tools: Vec<_> = tools.iter().map(|tool| &*tool.tool).collect();
                            assert_eq!(tools, ["who", &format!("only_{name}")]);
                        }
                    }
                }));
            }
        }
        for task in tasks {
            task.await.unwrap();
        }
        let seen = mock.all();
        let calls = mock.seen("tools/call");
        assert_eq!(calls.len(), 1000);
        let mut owners: HashMap<_, HashSet<String>> = HashMap::new();
        for seen in &seen {
            owners.entry(seen.from).or_default().insert(token(seen));
        }
        assert!(
            owners.values().all(|tokens| tokens.len() == 1),
            "{owners:?}"
        );
        let shown: HashSet<_> = seen.iter().map(token).collect();
        assert_eq!(shown.len(), 2, "{shown:?}");
        // A session, too, is one caller's.
        let mut sessions: HashMap<_, HashSet<String>> = HashMap::new();
        for seen in &seen {
            if let Some(session) = seen.header("mcp-session-id") {
                sessions
                    .entry(session.to_owned())
                    .or_default()
                    .insert(token(seen));
            }
        }
        assert!(
            sessions.values().all(|tokens| tokens.len() == 1),
            "{sessions:?}"
        );
        assert_eq!(sessions.len(), if era == Era::Legacy { 2 } else { 0 });
        let log = daemon.log();
        assert!(!log.contains("ann") && !log.contains("configured"), "{log}");
    }
}

#[tokio::test]
async fn whoever_shows_nothing_is_told_what_to_show_and_a_new_token_is_tried() {
    let mock = Mock::start(Era::Modern, |seen| match token(seen).as_str() {
        "Bearer stale" => Some(Answer::status(401)),
        _ => personal(seen),
    })
    .await;
    let daemon = daemon_with(
        &mock.url,
        json!({"forward_auth": true, "bearer": "configured"}),
    );
    let nobody = daemon.client().await;
    let error = nobody.tools().call("t.who", json!({})).await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::NeedsAuth), "{error}");
    assert!(
        error.hint().unwrap().contains("authorization"),
        "{:?}",
        error.hint()
    );
    let stale = client(&daemon, "stale").await;
    let error = stale.tools().call("t.who", json!({})).await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::NeedsAuth), "{error}");
    let fresh = client(&daemon, "fresh").await;
    let answer = fresh.tools().call("t.who", json!({})).await.unwrap();
    assert_eq!(answer.text(), "fresh");
    assert!(
        !mock
            .all()
            .iter()
            .any(|seen| token(seen).contains("configured"))
    );
}

/// Over HTTP on the endpoint, too, what a client shows is what its server is shown.
#[tokio::test]
async fn what_a_client_shows_over_http_goes_to_the_server() {
    let mock = Mock::start(Era::Modern, personal).await;
    let daemon = daemon_with(&mock.url, json!({"forward_auth": true}));
    for name in ["ann", "bob", "ann"] {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({"name": "t__who", "arguments": {}, "_meta": meta});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let request = http::Request::post("/mcp")
            .header("content-type", "application/json")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", "t__who")
            .header("authorization", format!("Bearer {name}"))
            .body(Full::from(Bytes::from(call.to_string())))
            .unwrap();
        let response = exchange(&daemon.home.socket(), request).await;
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8_lossy(&body);
        assert!(text.contains(&format!("\"text\":\"{name}\"")), "{text}");
    }
}
