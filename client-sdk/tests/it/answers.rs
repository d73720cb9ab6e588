//! What the daemon tells arrives as it was told.

use crate::support::Fake;
use nexus_client::{CommandOutcome, Error, LogOptions, Reason, ServerEvent, ServerState, Wait};
use std::time::Duration;

#[tokio::test]
async fn tools_are_listed_with_the_servers_that_are_missing() {
    let fake = Fake::running();
    let nexus = fake.client().await;
    let list = nexus.tools().list().await.unwrap();
    assert_eq!(list.tools[0].name, "demo__echo");
    assert_eq!(list.tools[0].dotted(), "Demo.echo");
    assert_eq!(list.tools[0].description().as_deref(), Some("does echo"));
    assert_eq!(list.missing[0].reason, Some(Reason::CommandNotFound));
}

#[tokio::test]
async fn one_tool_is_asked_for_by_its_name() {
    let fake = Fake::running();
    let nexus = fake.client().await;
    assert_eq!(nexus.tools().get("demo.echo").await.unwrap().tool, "echo");
    let error = nexus.tools().get("dmo.echo").await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::ServerNotFound));
    let suggestion = &error.failure().unwrap().details.suggestion;
    assert_eq!(suggestion.as_deref(), Some("Demo"));
}

#[tokio::test]
async fn a_search_takes_its_words_and_its_limit() {
    let fake = Fake::running();
    let found = fake.client().await.tools().search("x", 7).await.unwrap();
    assert_eq!((found[0].tool.tool.as_str(), found[0].score), ("x", 7.0));
}

#[tokio::test]
async fn servers_are_listed_with_their_states() {
    let fake = Fake::running();
    let nexus = fake.client().await;
    let servers = nexus.servers().list().await.unwrap();
    assert_eq!(servers[0].state, ServerState::CrashLoop);
    assert_eq!(servers[0].state.to_string(), "crash loop");
    let failure = servers[0].last_failure.as_ref().unwrap();
    assert_eq!(failure.reason, Some(Reason::ServerExited));
    assert_eq!(nexus.servers().get("x").await.unwrap().name, "x");
    let time = nexus.servers().ping("x").await.unwrap();
    assert_eq!(time, Duration::from_micros(1500));
}

#[tokio::test]
async fn commands_tell_their_outcome() {
    let fake = Fake::running();
    let nexus = fake.client().await;
    let started = nexus.servers().start("x", Wait::Done).await.unwrap();
    assert_eq!(started.outcome, CommandOutcome::Accepted);
    assert_eq!(started.server.state, ServerState::Ready);
    let started = nexus.servers().start("x", Wait::No).await.unwrap();
    assert_eq!(started.server.state, ServerState::Starting);
    let stopped = nexus.servers().stop("x", Wait::Done).await.unwrap();
    assert_eq!(stopped.outcome, CommandOutcome::AlreadyTrue);
}

#[tokio::test]
async fn an_answer_that_lacks_what_it_must_have_is_no_panic() {
    let fake = Fake::running();
    let nexus = fake.client().await;
    let error = nexus.servers().restart("x", Wait::No).await.unwrap_err();
    assert!(matches!(error, Error::Protocol(_)), "{error}");
}

#[tokio::test]
async fn changes_of_servers_and_their_logs_are_streams() {
    let fake = Fake::running();
    let nexus = fake.client().await;
    let mut events = nexus.servers().watch().await.unwrap();
    let event = events.next().await.unwrap().unwrap();
    assert!(matches!(event, ServerEvent::Is(server) if server.name == "Demo"));
    let event = events.next().await.unwrap().unwrap();
    assert!(matches!(event, ServerEvent::Removed { name, .. } if name == "Demo"));
    assert!(events.next().await.is_none());

    let options = LogOptions::default().tail(2);
    let mut lines = nexus.servers().logs("demo", options).await.unwrap();
    let first = lines.next().await.unwrap().unwrap();
    assert_eq!(first.line, "line 0 of demo");
    assert!(lines.next().await.is_some() && lines.next().await.is_none());
}

#[tokio::test]
async fn the_daemon_tells_of_itself() {
    let fake = Fake::running();
    let nexus = fake.client().await;
    let status = nexus.daemon().status().await.unwrap();
    assert_eq!((status.version.as_str(), status.demo), ("1.2.3", true));
    assert_eq!(status.memory_bytes, None);
    let config = nexus.daemon().effective_config().await.unwrap();
    assert_eq!(config.as_str(), r#"{ "mcpServers": {} }"#);
    let error = nexus.daemon().reload().await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::ConfigInvalid));
    nexus.daemon().shutdown(true).await.unwrap();
    assert!(nexus.ping().await.unwrap() < Duration::from_secs(60));
}
