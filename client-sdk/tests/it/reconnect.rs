//! The daemon goes away, and comes back.

use crate::support::Fake;
use futures_util::poll;
use nexus_client::{Error, Nexus, Reason};
use serde_json::json;
use std::{
    io::{ErrorKind, Write as _},
    pin::pin,
    sync::atomic::Ordering,
    time::Duration,
};

#[tokio::test]
async fn without_a_daemon_connecting_fails_at_once_and_says_where_it_looked() {
    let fake = Fake::absent();
    let mut connect = pin!(fake.builder().connect());
    // Not even a timer is waited for.
    let std::task::Poll::Ready(Err(error)) = poll!(&mut connect) else {
        panic!("it waits for something");
    };
    match error {
        Error::Unreachable { endpoint, source } => {
            assert_eq!(endpoint, fake.socket());
            assert_eq!(source.kind(), ErrorKind::NotFound);
        }
        other => panic!("{other:?}"),
    }
    // The same for a client that connects at its first use.
    let nexus = fake.builder().connect_lazy().unwrap();
    let error = nexus.tools().call("demo.echo", ()).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    assert!(!error.maybe_executed());
}

#[tokio::test]
async fn a_daemon_that_is_not_there_yet_can_be_waited_for() {
    let mut fake = Fake::absent();
    let builder = fake.builder().wait_for_daemon(Duration::from_secs(60));
    let mut connect = pin!(builder.connect());
    assert!(poll!(&mut connect).is_pending());
    fake.start();
    assert!(connect.await.unwrap().tools().list().await.is_ok());
}

#[tokio::test]
async fn a_call_after_a_restart_is_carried_out_once() {
    let mut fake = Fake::running();
    let nexus = fake.client().await;
    nexus.tools().list().await.unwrap();
    // This thread is the client's whole runtime: it cannot have seen the connection end.
    fake.kill();
    fake.start();
    std::thread::sleep(Duration::from_millis(150)); // longer than a connection counts as fresh
    let result = nexus.tools().call("demo.echo", json!({})).await;
    assert!(result.is_ok(), "{result:?}");
    assert_eq!(fake.world.executions(), 1);
}

#[tokio::test]
async fn a_call_made_while_the_daemon_is_away_waits_for_it() {
    let mut fake = Fake::running();
    let nexus = fake.client().await;
    let mut events = nexus.tools().call_stream("demo.hang", ()).await.unwrap();
    fake.kill();
    while !matches!(events.next().await, Some(Err(_))) {}
    let mut call = pin!(nexus.tools().call("demo.echo", json!({})).into_future());
    assert!(poll!(&mut call).is_pending());
    fake.start();
    assert!(call.await.is_ok());
    assert_eq!(fake.world.executions(), 1);
}

#[tokio::test]
async fn many_who_wait_for_the_daemon_share_one_new_connection() {
    let mut fake = Fake::running();
    let nexus = fake.client().await;
    let mut events = nexus.tools().call_stream("demo.hang", ()).await.unwrap();
    fake.kill();
    while !matches!(events.next().await, Some(Err(_))) {}
    let calls: Vec<_> = (0..64)
        .map(|_| {
            let nexus = nexus.clone();
            tokio::spawn(async move { nexus.tools().call("demo.echo", json!({})).await })
        })
        .collect();
    tokio::task::yield_now().await;
    fake.start();
    for call in calls {
        assert!(call.await.unwrap().is_ok());
    }
    assert_eq!(fake.world.connections.load(Ordering::SeqCst), 2);
    assert_eq!(fake.world.executions(), 64);
}

#[tokio::test]
async fn a_call_that_was_under_way_is_never_made_twice() {
    let mut fake = Fake::running();
    let nexus = fake.client().await;
    let call = tokio::spawn({
        let nexus = nexus.clone();
        async move { nexus.tools().call("demo.hang", json!({})).await }
    });
    fake.world.entered.notified().await;
    fake.kill();
    fake.start();
    let error = call.await.unwrap().unwrap_err();
    assert!(
        matches!(
            error,
            Error::Disconnected {
                maybe_executed: true
            }
        ),
        "{error:?}"
    );
    assert!(nexus.tools().list().await.is_ok());
    assert_eq!(fake.world.executions(), 1);
}

#[tokio::test]
async fn a_stream_that_was_under_way_ends_with_the_connection() {
    let mut fake = Fake::running();
    let nexus = fake.client().await;
    let mut call = nexus.tools().call_stream("demo.hang", ()).await.unwrap();
    assert!(call.next().await.unwrap().is_ok());
    fake.kill();
    let error = loop {
        if let Err(error) = call.next().await.unwrap() {
            break error;
        }
    };
    assert!(matches!(error, Error::Disconnected { .. }), "{error:?}");
    assert!(error.maybe_executed());
}

#[tokio::test]
async fn what_only_reads_is_asked_again() {
    let mut fake = Fake::running();
    let nexus = fake.client().await;
    fake.world.hang_list.store(true, Ordering::SeqCst);
    let list = tokio::spawn({
        let nexus = nexus.clone();
        async move { nexus.tools().list().await }
    });
    fake.world.entered.notified().await;
    fake.kill();
    fake.start();
    assert!(!list.await.unwrap().unwrap().tools.is_empty());
    assert_eq!(fake.world.lists.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_daemon_that_is_stopping_is_asked_again_and_the_call_is_made_once() {
    let fake = Fake::running();
    let nexus = fake.client().await;
    fake.world.refusals.store(3, Ordering::SeqCst);
    assert!(nexus.tools().call("demo.echo", json!({})).await.is_ok());
    assert_eq!(fake.world.executions(), 1);
}

#[tokio::test]
async fn a_client_that_does_not_wait_is_told_at_once() {
    let mut fake = Fake::running();
    let builder = fake.builder().reconnect_for(Duration::ZERO);
    let nexus = builder.connect().await.unwrap();
    nexus.tools().list().await.unwrap();
    fake.world.refusals.store(1, Ordering::SeqCst);
    let error = nexus.tools().call("demo.echo", json!({})).await;
    assert_eq!(error.unwrap_err().reason(), Some(Reason::ShuttingDown));
    fake.kill();
    std::thread::sleep(Duration::from_millis(150)); // longer than a connection counts as fresh
    let error = nexus.tools().list().await.unwrap_err();
    assert!(!error.maybe_executed(), "{error:?}");
    let error = nexus.tools().list().await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
}

/// What comes of asking somebody who speaks another protocol, and hangs up or stays.
async fn ask_a_stranger(hangs_up: bool) -> Error {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("x.sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.9\r\n");
            if !hangs_up {
                kept.push(stream);
            }
        }
    });
    let builder = Nexus::builder()
        .socket(&path)
        .reconnect_for(Duration::from_millis(50));
    // One that hangs up at once can be noticed while connecting, or only when it is asked.
    match builder.connect().await {
        Ok(nexus) => nexus.tools().list().await.unwrap_err(),
        Err(error) => error,
    }
}

#[tokio::test]
async fn somebody_who_is_no_daemon_is_an_error_and_not_a_hang() {
    for hangs_up in [true, false] {
        let error = ask_a_stranger(hangs_up).await;
        assert!(
            matches!(
                error,
                Error::Disconnected { .. } | Error::Unreachable { .. }
            ),
            "{error:?}"
        );
    }
}

#[test]
fn a_client_outlives_the_runtime_it_was_made_in() {
    let fake = Fake::running();
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let nexus = runtime().block_on(fake.client());
    assert!(runtime().block_on(nexus.tools().list()).is_ok());
}
