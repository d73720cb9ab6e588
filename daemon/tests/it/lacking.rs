//! Servers that lack something: a variable that is not set, a secret that cannot be had.

use crate::support::{Home, server_when, servers, test_server, test_server_with};
use nexus_client::{Reason, ServerState, Wait};
use serde_json::json;
use std::{fs, path::PathBuf};

/// A daemon with a good server and some whose secret is in a file that may not be there.
fn home() -> (Home, PathBuf) {
    let home = Home::new();
    let secret = home.path().join("secret");
    let env = json!({"TOKEN": {"file": secret}});
    home.configure(&servers(&[
        ("good", test_server(&[])),
        ("eager", test_server_with(&[], json!({"env": env}))),
        (
            "lazy",
            test_server_with(&[], json!({"env": env, "start": "lazy"})),
        ),
        (
            "own",
            test_server_with(&[], json!({"env": env, "sharing": "per-agent"})),
        ),
    ]));
    (home, secret)
}

#[tokio::test]
async fn they_are_listed_with_what_they_lack_and_the_others_run() {
    let (home, _) = home();
    let daemon = home.start();
    let nexus = daemon.client().await;
    server_when(&nexus, "good", |s| s.state == ServerState::Ready).await;
    for name in ["eager", "lazy", "own"] {
        let server = server_when(&nexus, name, |s| s.state == ServerState::Failed).await;
        let failure = server.last_failure.unwrap();
        assert_eq!(failure.reason, Some(Reason::ConfigInvalid));
        assert!(
            failure.message.contains("there is no such file"),
            "{failure:?}"
        );
        assert!(failure.fixes[0].contains("ls -l"), "{failure:?}");
        let error = nexus.servers().start(name, Wait::Done).await.unwrap_err();
        assert_eq!(error.reason(), Some(Reason::ConfigInvalid), "{error}");
        let error = nexus.tools().call(&format!("{name}.add"), json!({})).await;
        assert_eq!(error.unwrap_err().reason(), Some(Reason::ConfigInvalid));
    }
    // Nobody waits for them.
    let listed = nexus.tools().list().await.unwrap();
    let mut missing: Vec<_> = listed.missing.iter().map(|m| m.server.as_str()).collect();
    missing.sort_unstable();
    assert_eq!(missing, ["eager", "lazy", "own"]);
    assert!(!listed.tools.is_empty());
}

#[tokio::test]
async fn they_are_healed_by_a_reload() {
    let (home, secret) = home();
    let daemon = home.start();
    let nexus = daemon.client().await;
    server_when(&nexus, "eager", |s| s.state == ServerState::Failed).await;
    fs::write(&secret, "x").unwrap();
    let report = nexus.daemon().reload().await.unwrap();
    assert_eq!(report.changed, ["eager", "lazy", "own"]);
    server_when(&nexus, "eager", |s| s.state == ServerState::Ready).await;
    for name in ["lazy", "own"] {
        let call = nexus.tools().call(&format!("{name}.get_time"), json!({}));
        call.await.unwrap();
    }
}

#[tokio::test]
async fn they_are_healed_by_the_next_start() {
    let (home, secret) = home();
    let daemon = home.start();
    let nexus = daemon.client().await;
    server_when(&nexus, "eager", |s| s.state == ServerState::Failed).await;
    fs::write(&secret, "x").unwrap();
    let started = nexus.servers().start("eager", Wait::Done).await.unwrap();
    assert_eq!(started.server.state, ServerState::Ready);
}

#[tokio::test]
async fn what_runs_goes_on_when_its_secret_can_no_longer_be_had() {
    let (home, secret) = home();
    fs::write(&secret, "x").unwrap();
    let daemon = home.start();
    let nexus = daemon.client().await;
    let before = server_when(&nexus, "eager", |s| s.state == ServerState::Ready).await;
    fs::remove_file(&secret).unwrap();
    let report = nexus.daemon().reload().await.unwrap();
    assert_eq!(report.changed, [""; 0]);
    assert!(report.warnings[0].contains("there is no such file"));
    let after = nexus.servers().get("eager").await.unwrap();
    assert_eq!((after.pid, after.state), (before.pid, ServerState::Ready));
}
