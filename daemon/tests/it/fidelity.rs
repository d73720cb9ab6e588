//! What a server says reaches whoever asked byte for byte, and nobody else.

use crate::{
    mcp_client::{ERAS, Mcp},
    support::{Home, servers, start_with, test_server_with},
};
use nexus_client::{CallEvent, Nexus};
use serde_json::json;

#[tokio::test]
async fn odd_results_come_back_byte_for_byte() {
    for era in ["legacy", "modern"] {
        let home = Home::new();
        // One of them is larger than what is allowed unless told.
        let keys = json!({"max_result": "16MB"});
        let server = test_server_with(&["--era", era, "--interactive"], keys);
        home.configure(&servers(&[("t", server)]));
        let daemon = home.start();
        let nexus = daemon.client().await;
        let corpus = nexus_test_server::odd_results();
        assert!(corpus.len() >= 16);
        for (n, expected) in corpus.iter().enumerate() {
            let result = nexus
                .tools()
                .call("t.odd", json!({ "n": n }))
                .await
                .unwrap();
            assert!(
                result.raw().as_str().as_bytes() == expected,
                "{era} {n}: {:.300}",
                result.raw().as_str()
            );
        }
    }
}

/// 200 agents whose requests look all the same, with progress, on one process: 10,000 calls.
#[tokio::test]
async fn nobody_sees_what_is_somebody_elses() {
    const AGENTS: usize = super::support::MANY;
    const CALLS: usize = 50;
    for era in ["legacy", "modern"] {
        let daemon = start_with(&["--era", era]);
        let mut agents = Vec::new();
        for agent in 0..AGENTS {
            let builder = Nexus::builder().socket(daemon.home.socket());
            let nexus = builder.connect().await.unwrap();
            agents.push(tokio::spawn(async move {
                for call in 0..CALLS / 2 {
                    let mine = format!("agent {agent} call {call}");
                    if call % 5 == 4 {
                        // In steps of its own: whoever hears another's progress hears another total.
                        let steps = agent + 1;
                        let slow = json!({"duration": 0.01, "steps": steps});
                        let mut events = nexus
                            .tools()
                            .call("t.slow_operation", slow)
                            .stream()
                            .await
                            .unwrap();
                        let mut last = 0.0;
                        while let Some(event) = events.next().await {
                            match event.unwrap() {
                                CallEvent::Progress(progress) => {
                                    assert_eq!(progress.total, Some(steps as f64));
                                    assert!(progress.progress > last, "out of order");
                                    last = progress.progress;
                                }
                                CallEvent::Result(result) => {
                                    let done = format!("Done: {steps} steps");
                                    assert!(result.text().starts_with(&done), "{}", result.text());
                                }
                                other => panic!("{other:?}"),
                            }
                        }
                    } else {
                        let echo = json!({ "message": mine });
                        let answer = nexus.tools().call("t.echo", echo).await.unwrap();
                        assert_eq!(answer.text(), mine);
                    }
                }
            }));
        }
        for agent in agents {
            agent.await.unwrap();
        }
        let nexus = daemon.client().await;
        let server = nexus.servers().get("t").await.unwrap();
        assert_eq!(server.calls as usize, AGENTS * CALLS / 2);
        assert!(server.warnings.is_empty(), "{:?}", server.warnings);
    }
}

/// The same through the doors that speak MCP: 200 clients that all say id 0 and token 0.
#[tokio::test]
async fn clients_that_use_the_same_ids_get_their_own_answers() {
    const CLIENTS: usize = 200;
    const CALLS: usize = 25;
    for server in ["legacy", "modern"] {
        let daemon = start_with(&["--era", server]);
        let mut clients = Vec::new();
        for client in 0..CLIENTS {
            let era = ERAS[client % 2];
            let mut mcp = Mcp::connect(&daemon, era, "same", json!({})).await;
            clients.push(tokio::spawn(async move {
                for call in 0..CALLS {
                    let mine = format!("client {client} call {call}");
                    // Every fifth call makes progress, in steps of its own.
                    let steps = client + 1;
                    let (name, arguments) = match call % 5 {
                        4 => ("t__slow_operation", json!({"duration": 0.01, "steps": steps})),
                        _ => ("t__echo", json!({ "message": mine })),
                    };
                    let params = json!({"name": name, "arguments": arguments, "_meta": {"progressToken": 0}});
                    let (result, news) = mcp.request_as_zero("tools/call", params).await;
                    let text = result["content"][0]["text"].as_str().unwrap();
                    if call % 5 == 4 {
                        assert!(text.starts_with(&format!("Done: {steps} steps")), "{text}");
                        for progress in &news {
                            assert_eq!(progress["params"]["progressToken"], 0);
                            assert_eq!(progress["params"]["total"].as_f64(), Some(steps as f64));
                        }
                    } else {
                        assert_eq!((text, news.len()), (mine.as_str(), 0));
                    }
                }
            }));
        }
        for client in clients {
            client.await.unwrap();
        }
        let nexus = daemon.client().await;
        let server = nexus.servers().get("t").await.unwrap();
        assert_eq!(server.calls as usize, CLIENTS * CALLS);
        assert!(server.warnings.is_empty(), "{:?}", server.warnings);
    }
}
