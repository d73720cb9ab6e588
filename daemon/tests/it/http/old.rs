//! Servers that speak in the old way: HTTP+SSE, one stream of events for everything.

use super::{
    daemon_with, echo,
    mock::{Answer, Era, Mock},
    ready,
};
use crate::support::server_when;
use nexus_client::ServerState;
use serde_json::json;

#[tokio::test]
async fn an_old_server_is_found_out_or_known_by_its_type() {
    for keys in [json!({}), json!({"type": "sse"}), json!({"type": "http"})] {
        let mock = Mock::start(Era::Old, |_| None).await;
        let (_daemon, nexus) = ready(&mock.url, keys.clone()).await;
        assert_eq!(echo(&nexus, "hi").await.unwrap(), "hi", "{keys}");
        let read = nexus.resources().read_from("t", "x:///a").await.unwrap();
        assert_eq!(read.text(), "a");
        let server = nexus.servers().get("t").await.unwrap();
        assert_eq!(server.info.unwrap().protocol_version, "2025-11-25");
        let expected = if keys["type"] == "sse" { "sse" } else { "http" };
        assert_eq!(server.transport, expected);
        let calls = mock.seen("tools/call");
        assert_eq!(calls[0].path, "/messages?s=1");
        if keys["type"] == "sse" {
            assert!(mock.seen("server/discover").is_empty());
        }
    }
}

#[tokio::test]
async fn an_old_server_that_hangs_up_is_called_again() {
    let mock = Mock::start(Era::Old, |seen| {
        // It takes the call, and says nothing.
        (seen.is("tools/call") && seen.nth == 1).then(|| Answer::status(202))
    })
    .await;
    let (_daemon, nexus) = ready(&mock.url, json!({"type": "sse"})).await;
    let call = {
        let nexus = nexus.clone();
        tokio::spawn(async move { echo(&nexus, "lost").await })
    };
    crate::support::eventually("it is called", || mock.seen("tools/call").len() == 1).await;
    mock.hang_up();
    let error = call.await.unwrap().unwrap_err();
    assert!(error.maybe_executed(), "{error}");
    assert!(
        error.to_string().contains("stream of events is over"),
        "{error}"
    );
    server_when(&nexus, "t", |server| {
        server.state == ServerState::Ready && server.restarts == 1
    })
    .await;
    assert_eq!(echo(&nexus, "again").await.unwrap(), "again");
}

#[tokio::test]
async fn what_is_no_mcp_server_at_all_is_told() {
    let mock = Mock::start(Era::Legacy, |_| {
        let page = super::Part::Text("<html>hello</html>".to_owned());
        Some(
            Answer::status(404)
                .with("content-type", "text/html")
                .part(page),
        )
    })
    .await;
    let daemon = daemon_with(&mock.url, json!({}));
    let nexus = daemon.client().await;
    let server = server_when(&nexus, "t", |server| server.last_failure.is_some()).await;
    let message = server.last_failure.unwrap().message;
    assert!(
        message.contains("initialize") && message.contains("404"),
        "{message}"
    );
}
