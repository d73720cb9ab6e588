//! The reference server of the protocol, over both ways of HTTP. It is a package for Node: the test runs where
//! `NEXUS_EVERYTHING` names the folder that it was installed in, and says so where not.

use super::ready;
use crate::support::{Ends, PATIENCE, server_when};
use nexus_client::{CallEvent, LogLevel, ServerState};
use serde_json::json;
use std::{
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

/// A port that was free a moment ago.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

async fn serve(folder: &str, way: &str) -> (Ends, u16) {
    let program = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";
    let port = free_port();
    let mut command = Command::new("node");
    command.arg(Path::new(folder).join(program)).arg(way);
    command.env("PORT", port.to_string());
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let server = Ends(command.spawn().unwrap());
    let started = tokio::time::Instant::now();
    while tokio::net::TcpStream::connect(("localhost", port))
        .await
        .is_err()
    {
        assert!(started.elapsed() < PATIENCE, "it does not listen");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    (server, port)
}

#[tokio::test]
async fn the_reference_server_serves_everything_over_both_ways() {
    let Ok(folder) = std::env::var("NEXUS_EVERYTHING") else {
        eprintln!(
            "skipped: NEXUS_EVERYTHING does not name a folder with @modelcontextprotocol/server-everything"
        );
        return;
    };
    let ways = [
        ("streamableHttp", "mcp", json!({})),
        ("sse", "sse", json!({})),
        ("sse", "sse", json!({"type": "sse"})),
    ];
    for (way, path, keys) in ways {
        let (_server, port) = serve(&folder, way).await;
        let (daemon, _) = ready(&format!("http://localhost:{port}/{path}"), keys).await;
        let nexus = daemon.agent("ann").await;
        let call = |tool: &'static str, arguments| nexus.tools().call(tool, arguments);
        let sum = call("t.get-sum", json!({"a": 2, "b": 3})).await.unwrap();
        assert!(sum.text().contains('5'), "{way}: {}", sum.text());
        let resources = nexus.resources().list().await.unwrap().resources;
        assert!(!resources.is_empty(), "{way}");
        let read = nexus
            .resources()
            .read_from("t", &resources[0].uri)
            .await
            .unwrap();
        assert!(!read.text().is_empty(), "{way}");
        let prompt = nexus
            .prompts()
            .get("t.args-prompt")
            .arg("city", "Ghent")
            .await
            .unwrap();
        assert!(prompt.text().contains("Ghent"), "{way}: {}", prompt.text());
        let long = call(
            "t.trigger-long-running-operation",
            json!({"duration": 1, "steps": 4}),
        );
        let mut events = long.stream().await.unwrap();
        let mut steps = 0;
        while let Some(event) = events.next().await {
            match event.unwrap() {
                CallEvent::Progress(_) => steps += 1,
                CallEvent::Result(result) => {
                    assert!(result.text().contains("completed"), "{}", result.text())
                }
                _ => {}
            }
        }
        assert!(steps >= 3, "{way}: {steps}");
        let sampled = call(
            "t.trigger-sampling-request",
            json!({"prompt": "say", "maxTokens": 9}),
        )
        .await
        .unwrap();
        assert!(
            sampled.text().contains("ann was asked"),
            "{way}: {}",
            sampled.text()
        );
        let asked = call("t.trigger-elicitation-request", json!({}))
            .await
            .unwrap();
        assert!(
            asked.text().contains("ann was asked"),
            "{way}: {}",
            asked.text()
        );
        nexus
            .servers()
            .set_log_level("t", LogLevel::Debug)
            .await
            .unwrap();
        call("t.toggle-simulated-logging", json!({})).await.unwrap();
        let logs = || async {
            let mut lines = nexus
                .servers()
                .logs("t", nexus_client::LogOptions::default())
                .await
                .unwrap();
            let mut text = String::new();
            while let Some(line) = lines.next().await {
                text += &line.unwrap().line;
            }
            text
        };
        let started = tokio::time::Instant::now();
        while !logs().await.contains("level message") {
            assert!(started.elapsed() < PATIENCE, "{way}: nothing is logged");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let server = server_when(&nexus, "t", |server| server.state == ServerState::Ready).await;
        assert_eq!(server.restarts, 0, "{way}: {:?}", server.last_failure);
        eprintln!(
            "{way}: {} tools, {} resources, {} prompts",
            server.tools, server.resources, server.prompts
        );
    }
}
