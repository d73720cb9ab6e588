//! Changes of resources reach those who want to know, whatever becomes of the server.

use super::support::{Home, PATIENCE, kill, server_until, servers, start_with, test_server_with};
use nexus_client::{Nexus, Reason, ResourceEvent, ResourceEvents};
use serde_json::json;
use tokio::time::timeout;

const ERAS: [&str; 2] = ["legacy", "modern"];
const README: &str = "file:///readme.txt";
const CONFIG: &str = "file:///config.json";

async fn next(events: &mut ResourceEvents) -> ResourceEvent {
    let event = timeout(PATIENCE, events.next()).await;
    event.expect("something happens").unwrap().unwrap()
}

async fn subscribed(nexus: &Nexus, uri: &str) -> ResourceEvents {
    let mut events = nexus.resources().subscribe_on("t", uri).await.unwrap();
    let subscribed = ResourceEvent::Subscribed { server: "t".into() };
    assert_eq!(next(&mut events).await, subscribed);
    events
}

async fn touch(nexus: &Nexus, uri: &str) -> String {
    let touched = nexus.tools().call("t.touch", json!({ "uri": uri })).await;
    touched.unwrap().text()
}

fn updated(uri: &str) -> ResourceEvent {
    ResourceEvent::Updated {
        uri: uri.into(),
        maybe: false,
    }
}

#[tokio::test]
async fn only_subscribers_are_told_and_the_server_is_subscribed_to_once() {
    for era in ERAS {
        let daemon = start_with(&["--era", era, "--interactive"]);
        let (ann, bob) = (daemon.client().await, daemon.client().await);
        let mut one = subscribed(&ann, README).await;
        let mut two = subscribed(&bob, README).await;
        let mut other = subscribed(&bob, CONFIG).await;
        let told = touch(&ann, README).await;
        assert!(told.contains('1'), "{era}: {told}");
        assert_eq!(next(&mut one).await, updated(README));
        assert_eq!(next(&mut two).await, updated(README));
        // Nothing came in between: the first event of the other one is its own.
        touch(&ann, CONFIG).await;
        assert_eq!(next(&mut other).await, updated(CONFIG));
        // One of two leaves, and the other one goes on.
        drop(one);
        touch(&bob, README).await;
        assert_eq!(next(&mut two).await, updated(README));
        drop(two);
        let started = tokio::time::Instant::now();
        while !touch(&bob, README).await.contains('0') {
            assert!(started.elapsed() < PATIENCE, "it is still subscribed to");
        }
        touch(&bob, CONFIG).await;
        assert_eq!(next(&mut other).await, updated(CONFIG));
        let server = bob.servers().get("t").await.unwrap();
        assert_eq!(server.in_flight, 0);
    }
}

#[tokio::test]
async fn a_subscription_outlives_the_process_it_was_made_with() {
    for era in ERAS {
        for start in ["eager", "lazy"] {
            let home = Home::new();
            let args = ["--era", era, "--interactive"];
            let server = test_server_with(&args, json!({ "start": start }));
            home.configure(&servers(&[("t", server)]));
            let daemon = home.start();
            let nexus = daemon.client().await;
            let mut events = subscribed(&nexus, README).await;
            let pid = nexus.servers().get("t").await.unwrap().pid.unwrap();
            kill(pid);
            let again = ResourceEvent::Subscribed { server: "t".into() };
            assert_eq!(next(&mut events).await, again, "{era} {start}");
            let maybe = ResourceEvent::Updated {
                uri: README.into(),
                maybe: true,
            };
            assert_eq!(next(&mut events).await, maybe);
            touch(&nexus, README).await;
            assert_eq!(next(&mut events).await, updated(README));
        }
    }
}

#[tokio::test]
async fn a_server_that_is_listened_to_does_not_rest() {
    let home = Home::new();
    let keys = json!({"start": "lazy", "idle_stop": 0.2});
    let server = test_server_with(&["--interactive"], keys);
    home.configure(&servers(&[("t", server)]));
    let daemon = home.start();
    let nexus = daemon.client().await;
    let events = subscribed(&nexus, README).await;
    let pid = nexus.servers().get("t").await.unwrap().pid;
    tokio::time::sleep(std::time::Duration::from_millis(700)).await;
    assert_eq!(nexus.servers().get("t").await.unwrap().pid, pid);
    drop(events);
    server_until(&nexus, "t", |s| s.pid.is_none()).await;
}

#[tokio::test]
async fn what_cannot_be_subscribed_to_says_why() {
    for era in ERAS {
        let daemon = start_with(&["--era", era]);
        let nexus = daemon.client().await;
        let events = nexus.resources().subscribe_on("t", "file:///gone").await;
        let failed = match events {
            Ok(mut events) => timeout(PATIENCE, events.next()).await.unwrap().unwrap(),
            Err(error) => Err(error),
        };
        let error = failed.unwrap_err();
        assert!(
            matches!(
                error.reason(),
                Some(Reason::ServerError | Reason::ResourceNotFound)
            ),
            "{era}: {error}"
        );
        let error = nexus.resources().subscribe("file:///nobody").await;
        let failed = match error {
            Ok(mut events) => timeout(PATIENCE, events.next()).await.unwrap().unwrap(),
            Err(error) => Err(error),
        };
        assert_eq!(failed.unwrap_err().reason(), Some(Reason::ResourceNotFound));
    }
}
