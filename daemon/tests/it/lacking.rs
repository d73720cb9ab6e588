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
        let error = nexus.tools().call(format!("{name}.add"), json!({})).await;
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
        let call = nexus.tools().call(format!("{name}.get_time"), json!({}));
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

/// A keyring that has one entry, as long as there is a file with it.
#[cfg(target_os = "linux")]
const SECRET_TOOL: &str = r#"#!/bin/sh
[ "$*" = "lookup service github username me" ] && cat "$HOME/keyring" 2>/dev/null
"#;

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_secret_of_the_keyring_reaches_the_server_once_it_is_there() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new();
    let program = home.path().join("secret-tool");
    fs::write(&program, SECRET_TOOL).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let env = json!({"A": "key ${keyring:github/me}", "B": {"keyring": "github/me"}});
    let keys = json!({"env": env});
    home.configure(&servers(&[("t", test_server_with(&["--env-tool"], keys))]));
    let mut command = home.nexusd();
    let path = format!(
        "{}:{}",
        home.path().display(),
        std::env::var("PATH").unwrap()
    );
    command.env("PATH", path);
    let daemon = home.start_as(command);
    let nexus = daemon.client().await;
    let server = server_when(&nexus, "t", |s| s.state == ServerState::Failed).await;
    let failure = server.last_failure.unwrap();
    assert_eq!(
        failure.message,
        "the secret github/me of the keyring cannot be had: it is not there, or the keyring is locked"
    );
    assert!(
        failure.fixes[0].contains("secret-tool store --label github/me service github username me"),
        "{failure:?}"
    );
    fs::write(daemon.home.path().join("keyring"), "s3cret-0123456789\n").unwrap();
    nexus.servers().start("t", Wait::Done).await.unwrap();
    let told = nexus.tools().call("t.env", json!({})).await.unwrap();
    let told: serde_json::Value = serde_json::from_str(&told.text()).unwrap();
    assert_eq!(told["env"]["A"], "key s3cret-0123456789");
    assert_eq!(told["env"]["B"], "s3cret-0123456789");
    let config = nexus.daemon().effective_config().await.unwrap();
    assert!(!config.as_str().contains("s3cret") && !daemon.log().contains("s3cret"));
}

#[tokio::test]
async fn one_that_has_to_wait_for_its_secret_keeps_no_other_waiting() {
    let home = Home::new();
    // Each waits until all of them have begun.
    let begun = home.path().join("begun");
    fs::create_dir(&begun).unwrap();
    let wait = "touch \"$0/$1\"; until [ $(ls \"$0\" | wc -l) = 3 ]; do sleep 0.01; done; echo x";
    let server = |name: &str| {
        let env = json!({"A": {"cmd": ["sh", "-c", wait, begun, name]}});
        test_server_with(&[], json!({"env": env}))
    };
    let three = ["a", "b", "c"].map(|name| (name, server(name)));
    home.configure(&servers(&three));
    let daemon = home.start();
    let nexus = daemon.client().await;
    for (name, _) in three {
        server_when(&nexus, name, |s| s.state == ServerState::Ready).await;
    }
}
