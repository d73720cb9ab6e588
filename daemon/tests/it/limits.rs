//! How often servers, tools and agents may be called.

use crate::{
    mcp_client::Mcp,
    support::{Daemon, Home, PATIENCE, executions, servers, test_server_with},
};
use nexus_client::{Error, Nexus, Reason};
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

const AGENTS: usize = 50;
const CALLS: usize = 20_000;

async fn agent(daemon: &Daemon, name: &str) -> Nexus {
    let builder = Nexus::builder().socket(daemon.home.socket());
    builder.as_agent(name).connect().await.unwrap()
}

/// Calls as fast as it can. Returns how many were let through, and how long it took.
async fn hammer(nexus: &Nexus, tool: &str, calls: usize) -> (usize, Duration) {
    let began = Instant::now();
    let mut through = 0;
    for _ in 0..calls {
        match nexus.tools().call(tool, json!({"a": 1, "b": 2})).await {
            Ok(_) => through += 1,
            Err(error) => assert_eq!(error.reason(), Some(Reason::RateLimited), "{error}"),
        }
    }
    (through, began.elapsed())
}

fn allowed(rate: f64, burst: f64, time: Duration) -> f64 {
    (burst + rate * time.as_secs_f64()).floor()
}

/// Never more than a hundredth above. On a machine that is busy with other tests, agents that are not asked to run do
/// not take all that they may.
fn assert_close(through: usize, allowed: f64) {
    let ratio = through as f64 / allowed;
    let is_close = (0.95..=1.01).contains(&ratio);
    assert!(is_close, "{through} were let through, {allowed} may be");
}

#[tokio::test]
async fn fifty_agents_get_what_the_limits_allow_and_no_more() {
    let home = Home::new();
    let journal = |name: &str| home.path().join(name);
    let server = |name: &str, keys| {
        let path = journal(name);
        let args = ["--journal", path.to_str().unwrap()];
        (name.to_owned(), test_server_with(&args, keys))
    };
    let all = [
        server("limited", json!({"rate_limit": "100/s burst 50"})),
        server("free", json!({})),
    ];
    let all: Vec<_> = all.iter().map(|(n, s)| (n.as_str(), s.clone())).collect();
    let mut config = servers(&all);
    config["policy"] = json!({"rate_limit": "10/s burst 5"});
    home.configure(&config);
    let (limited, free) = (journal("limited"), journal("free"));
    let daemon = home.start();
    let mut agents = Vec::new();
    for n in 0..AGENTS {
        agents.push(Arc::new(agent(&daemon, &format!("agent-{n}")).await));
    }
    agents[0].tools().list().await.unwrap();

    // All together are held to what the server allows…
    let each = CALLS / 2 / AGENTS;
    let began = Instant::now();
    let tasks = agents
        .iter()
        .cloned()
        .map(|agent| tokio::spawn(async move { hammer(&agent, "limited.add", each).await.0 }));
    let tasks: Vec<_> = tasks.collect();
    let mut through = 0;
    for task in tasks {
        through += task.await.unwrap();
    }
    assert_close(through, allowed(100.0, 50.0, began.elapsed()));
    assert_eq!(executions(&limited).len(), through);
    let operator = daemon.client().await;
    let server = operator.servers().get("limited").await.unwrap();
    let [limit] = &server.rate_limits[..] else {
        panic!("{server:?}");
    };
    assert_eq!(
        (limit.what.as_str(), limit.count, limit.burst),
        ("server", 100, 50)
    );
    assert!(limit.refused > 0 && server.calls == through as u64);

    // …and each of them to what it may itself, from a full bucket on.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let tasks: Vec<_> = agents
        .iter()
        .cloned()
        .map(|agent| tokio::spawn(async move { hammer(&agent, "free.add", each).await }))
        .collect();
    let (mut through, mut may) = (0, 0.0);
    for task in tasks {
        let (calls, time) = task.await.unwrap();
        assert!(
            calls as f64 <= allowed(10.0, 5.0, time) + 0.5,
            "{calls} in {time:?}"
        );
        through += calls;
        may += allowed(10.0, 5.0, time);
    }
    assert_close(through, may);
    assert_eq!(executions(&free).len(), through);
    let list = operator.agents().list().await.unwrap();
    let limits = list.iter().filter_map(|agent| agent.rate_limit.as_ref());
    let refused: u64 = limits.map(|limit| limit.refused).sum();
    assert!(refused >= (CALLS / 2 - through) as u64, "{refused}");
    // The operator is not held to what agents are.
    let (through, _) = hammer(&operator, "free.add", 30).await;
    assert_eq!(through, 30);
}

#[tokio::test]
async fn a_limit_says_what_it_is_and_when_to_come_again() {
    let home = Home::new();
    let limits = json!({"rate_limit": {"server": "6/h", "tools": {"ad*": "2/h"}}});
    home.configure(&servers(&[("t", test_server_with(&[], limits))]));
    let daemon = home.start();
    let nexus = daemon.client().await;
    let add = || nexus.tools().call("t.add", json!({"a": 1, "b": 2}));
    add().await.unwrap();
    // What never comes to a call is not counted.
    nexus.tools().call("t.add", json!({})).await.unwrap_err();
    add().await.unwrap();
    let error = add().await.unwrap_err();
    let Error::Failed(failure) = &error else {
        panic!("{error:?}");
    };
    assert_eq!(failure.reason, Reason::RateLimited);
    let message = &failure.message;
    assert!(
        message.starts_with("\"ad*\" of \"t\" together may be called 2/h: try again in 30 min"),
        "{message}"
    );
    let after = failure.details.retry_after.unwrap();
    assert!(after <= Duration::from_secs(1800) && after > Duration::from_secs(1800) - PATIENCE);
    assert_eq!(failure.details.server.as_deref(), Some("t"));
    assert!(
        error.hint().unwrap().contains("rate_limit.tools"),
        "{error:?}"
    );

    // Reads and prompts are the server's, and not a tool's.
    nexus.resources().read("file:///readme.txt").await.unwrap();
    nexus
        .prompts()
        .get("t.code_review")
        .arg("language", "c")
        .arg("code", "x")
        .await
        .unwrap();
    for _ in 0..2 {
        let echo = nexus.tools().call("t.echo", json!({"message": "x"}));
        echo.await.unwrap();
    }
    let mut mcp = Mcp::connect(&daemon, "modern", "ann", json!({})).await;
    let uri = json!({"uri": "file:///readme.txt"});
    let error = mcp.request("resources/read", uri).await.unwrap_err();
    assert_eq!(error["data"]["reason"], "RATE_LIMITED", "{error}");
    let wait = error["data"]["retryAfterMs"].as_u64().unwrap();
    assert!(wait <= 600_000 && wait > 500_000, "{error}");
    let server = nexus.servers().get("t").await.unwrap();
    let told = server
        .rate_limits
        .iter()
        .map(|l| (l.what.as_str(), l.refused));
    assert_eq!(told.collect::<Vec<_>>(), [("server", 1), ("tool ad*", 1)]);

    // Another limit counts as soon as it is read.
    daemon.home.configure(&servers(&[(
        "t",
        test_server_with(&[], json!({"rate_limit": "1000/s"})),
    )]));
    nexus.daemon().reload().await.unwrap();
    if let Err(error) = add().await {
        // It was used up: the next one comes a millisecond later.
        assert!(error.to_string().contains("1000/s"), "{error}");
        tokio::time::sleep(Duration::from_millis(2)).await;
        add().await.unwrap();
    }
}
