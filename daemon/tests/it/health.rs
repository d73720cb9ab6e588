//! Servers that live but do not answer.

use crate::support::{Daemon, Home, server_when, servers, test_server};
use nexus_client::{Error, Reason, ServerState};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::time::Duration;

/// A daemon whose one server is asked often, so that tests need not wait.
fn start_watched(args: &[&str]) -> Daemon {
    let home = Home::new();
    let mut server = test_server(args);
    server["health"] = json!({"interval": 0.05, "timeout": 0.2, "threshold": 3});
    home.configure(&servers(&[("t", server)]));
    home.start()
}

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
}

#[tokio::test]
async fn a_server_that_hangs_is_doubted_then_ended_and_started_again() {
    let daemon = start_watched(&[]);
    let nexus = daemon.client().await;
    let server = server_when(&nexus, "t", |s| s.state == ServerState::Ready).await;
    let pid = server.pid.unwrap();
    signal(pid, Signal::STOP);
    server_when(&nexus, "t", |s| s.state == ServerState::Degraded).await;
    let server = server_when(&nexus, "t", |s| {
        s.state == ServerState::Ready && s.pid != Some(pid)
    })
    .await;
    assert_eq!(server.restarts, 1);
    assert_eq!(
        server.last_failure.unwrap().reason,
        Some(Reason::ServerHung)
    );
    crate::support::wait_until_gone(pid);
    nexus
        .tools()
        .call("t.add", json!({"a": 1, "b": 1}))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_server_that_comes_back_to_itself_is_left_alone() {
    let daemon = start_watched(&[]);
    let nexus = daemon.client().await;
    let server = server_when(&nexus, "t", |s| s.state == ServerState::Ready).await;
    let pid = server.pid.unwrap();
    signal(pid, Signal::STOP);
    server_when(&nexus, "t", |s| s.state == ServerState::Degraded).await;
    signal(pid, Signal::CONT);
    let server = server_when(&nexus, "t", |s| s.state == ServerState::Ready).await;
    assert_eq!((server.pid, server.restarts), (Some(pid), 0));
}

#[tokio::test]
async fn a_server_that_answers_nothing_any_more_is_found_out() {
    let daemon = start_watched(&["--fault", "hang-all@1"]);
    let nexus = daemon.client().await;
    nexus
        .tools()
        .call("t.add", json!({"a": 1, "b": 1}))
        .await
        .unwrap();
    server_when(&nexus, "t", |s| {
        s.last_failure.as_ref().and_then(|past| past.reason) == Some(Reason::ServerHung)
    })
    .await;
}

#[tokio::test]
async fn a_server_with_a_call_is_busy_and_not_hung() {
    let daemon = start_watched(&[]);
    let nexus = daemon.client().await;
    let server = server_when(&nexus, "t", |s| s.state == ServerState::Ready).await;
    let pid = server.pid.unwrap();
    let call = tokio::spawn({
        let nexus = nexus.clone();
        let arguments = json!({"duration": 0.5, "steps": 1});
        async move { nexus.tools().call("t.slow_operation", arguments).await }
    });
    while nexus.servers().get("t").await.unwrap().in_flight == 0 {
        tokio::task::yield_now().await;
    }
    // It could answer nothing for several times as long as an idle one is given.
    signal(pid, Signal::STOP);
    tokio::time::sleep(Duration::from_secs(3)).await;
    signal(pid, Signal::CONT);
    call.await.unwrap().unwrap();
    let server = nexus.servers().get("t").await.unwrap();
    assert_eq!((server.pid, server.restarts), (Some(pid), 0));
}

#[tokio::test]
async fn a_server_that_does_not_read_is_ended_and_its_calls_say_so() {
    let daemon = start_watched(&["--fault", "stop-reading@4"]);
    let nexus = daemon.client().await;
    let large = json!({"message": "x".repeat(1 << 20)});
    // The first may be read; what comes after it is not, and does not fit into the pipe.
    let mut outcomes = Vec::new();
    for _ in 0..3 {
        outcomes.push(nexus.tools().call("t.echo", large.clone()).await);
    }
    let hung = |error: &Error| error.reason() == Some(Reason::ServerHung);
    assert!(
        outcomes.iter().any(|o| o.as_ref().is_err_and(hung)),
        "{outcomes:?}"
    );
    let server = server_when(&nexus, "t", |s| s.state == ServerState::Ready).await;
    assert!(server.restarts >= 1);
}

#[tokio::test]
async fn how_fast_a_server_answers_is_known() {
    let daemon = start_watched(&[]);
    let nexus = daemon.client().await;
    while nexus.servers().get("t").await.unwrap().latency.is_none() {
        tokio::task::yield_now().await;
    }
}
