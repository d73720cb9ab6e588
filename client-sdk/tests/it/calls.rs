//! Tool calls.

use crate::support::Fake;
use nexus_client::{Arguments, CallEvent, Error, Reason};
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tokio::sync::Barrier;

#[tokio::test]
async fn arguments_and_results_pass_verbatim() {
    let fake = Fake::running();
    let nexus = fake.client().await;
    let text = r#"{ "b" : 1.10,"a":123456789012345678901234567890, "e":1e400 }"#;
    let result = nexus
        .tools()
        .call("demo.echo", Arguments::from_raw(text))
        .await
        .unwrap();
    assert_eq!(
        result.raw().as_str(),
        format!(r#"{{"content":[],"echo":{text} }}"#)
    );
    assert_eq!(fake.world.executed.lock().unwrap()[0].1, text);
}

#[tokio::test]
async fn what_the_daemon_tells_of_a_failure_is_all_there() {
    let fake = Fake::running();
    let nexus = fake.client().await;
    let error = nexus.tools().call("demo.exit", ()).await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::ServerExited));
    assert_eq!(error.to_string(), "demo ended");
    assert_eq!(error.hint(), Some("look at the log"));
    assert!(error.maybe_executed());
    let details = &error.failure().unwrap().details;
    assert_eq!(details.exit.as_deref(), Some("exit code 7"));
    assert_eq!(details.stderr, ["boom"]);
    assert_eq!(details.retry_after, Some(Duration::from_secs(2)));

    let error = nexus.tools().call("demo.strict", ()).await.unwrap_err();
    assert!(!error.maybe_executed());
    assert_eq!(error.failure().unwrap().details.violations[0].field, "/a");
}

#[tokio::test]
async fn a_status_of_somebody_else_is_not_taken_for_a_reason() {
    let fake = Fake::running();
    let error = fake.client().await.tools().call("demo.panic", ()).await;
    let error = error.unwrap_err();
    assert!(matches!(error, Error::Protocol(_)), "{error}");
    assert!(error.to_string().contains("something else"), "{error}");
}

#[tokio::test]
async fn progress_comes_before_the_result() {
    let fake = Fake::running();
    let nexus = fake.client().await;
    let mut call = nexus
        .tools()
        .call_stream("demo.echo", json!({"a": 1}))
        .await
        .unwrap();
    let mut seen = Vec::new();
    while let Some(event) = call.next().await {
        seen.push(match event.unwrap() {
            CallEvent::Progress(progress) => {
                assert_eq!(progress.total, Some(3.0));
                progress.progress.to_string()
            }
            CallEvent::Result(result) => result.raw().to_string(),
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(seen, ["1", "2", r#"{"content":[],"echo":{"a":1} }"#]);
}

#[tokio::test]
async fn a_stream_can_end_in_an_error_and_then_ends() {
    let fake = Fake::running();
    let nexus = fake.client().await;
    let mut call = nexus.tools().call_stream("demo.exit", ()).await.unwrap();
    assert!(call.next().await.unwrap().is_ok());
    assert!(call.next().await.unwrap().is_ok());
    let error = call.next().await.unwrap().unwrap_err();
    assert_eq!(error.reason(), Some(Reason::ServerExited));
    assert!(call.next().await.is_none());
}

#[tokio::test]
async fn dropping_a_stream_cancels_the_call() {
    let fake = Fake::running();
    let nexus = fake.client().await;
    let mut call = nexus.tools().call_stream("demo.hang", ()).await.unwrap();
    assert!(call.next().await.is_some());
    drop(call);
    fake.world.cancelled.notified().await;
}

#[tokio::test]
async fn a_call_has_only_the_time_that_it_is_given() {
    let fake = Fake::running();
    let nexus = fake.client().await;
    let minute = Duration::from_secs(60);
    let told = nexus.tools().call("demo.time", ()).timeout(minute).await;
    assert_eq!(told.unwrap().raw().as_str(), r#"{"time":"60000000u"}"#);

    let short = Duration::from_millis(30);
    let error = nexus.tools().call("demo.hang", ()).timeout(short).await;
    let error = error.unwrap_err();
    assert!(error.is_timeout() && error.maybe_executed(), "{error:?}");

    // A stream is ended by the client when the daemon does not.
    let call = nexus.tools().call("demo.hang", ()).timeout(short);
    let error = call.stream().await.unwrap().result().await.unwrap_err();
    assert!(matches!(error, Error::Timeout { after, .. } if after == short));
}

#[tokio::test]
async fn eight_mebibytes_go_both_ways() {
    let fake = Fake::running();
    let nexus = fake.client().await;
    let text = json!({"x": "é".repeat(4 << 20)}).to_string();
    let result = nexus
        .tools()
        .call("demo.echo", Arguments::from_raw(text.clone()))
        .await
        .unwrap();
    assert!(result.raw().as_str().contains(&text));
}

#[tokio::test]
async fn what_is_too_large_is_said_to_be() {
    let fake = Fake::running();
    let nexus = fake.client().await;
    let text = json!({"x": "x".repeat(21 << 20)}).to_string();
    let error = nexus.tools().call("demo.echo", Arguments::from_raw(text));
    let error = error.await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::TooLarge));
    assert!(!error.maybe_executed());
    assert_eq!(fake.world.executions(), 0);

    let error = nexus.tools().call("demo.huge", ()).await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::TooLarge));
    assert!(error.maybe_executed());
    // The connection has survived both.
    assert!(nexus.tools().list().await.is_ok());
}

#[tokio::test]
async fn sixty_four_calls_run_side_by_side_on_one_connection() {
    let fake = Fake::running();
    *fake.world.meeting.lock().unwrap() = Some(Arc::new(Barrier::new(64)));
    let nexus = fake.client().await;
    let calls = (0..64).map(|_| {
        let nexus = nexus.clone();
        tokio::spawn(async move { nexus.tools().call("demo.meet", ()).await })
    });
    for call in calls.collect::<Vec<_>>() {
        assert_eq!(call.await.unwrap().unwrap().text(), "met");
    }
    let connections = &fake.world.connections;
    assert_eq!(connections.load(std::sync::atomic::Ordering::SeqCst), 1);
}
