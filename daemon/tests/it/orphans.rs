//! Nothing is left behind, however it ends.
#![cfg(target_os = "linux")]

use crate::support::{
    Daemon, Home, NEXUSD, PATIENCE, processes_of, server_when, servers, test_server,
};
use nexus_client::{ServerState, Wait};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::{path::Path, thread, time::Duration};

fn wait_until_empty(home: &Path) {
    let started = tokio::time::Instant::now();
    loop {
        let left = processes_of(home);
        if left.is_empty() {
            return;
        }
        assert!(started.elapsed() < PATIENCE, "left behind: {left:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Servers that do not go by themselves: behind a wrapper, deaf to signals, out of their group.
fn stubborn() -> Value {
    let deaf = format!("{NEXUSD} demo-server --fault ignore-term; true");
    servers(&[
        ("deaf", test_server(&["--fault", "ignore-term"])),
        ("wrapped", json!({"command": "sh", "args": ["-c", deaf]})),
        (
            "runaway",
            test_server(&["--fault", "grandchild@600", "--fault", "ignore-term"]),
        ),
    ])
}

async fn all_ready(daemon: &Daemon) {
    let nexus = daemon.client().await;
    for name in ["deaf", "wrapped", "runaway"] {
        server_when(&nexus, name, |s| s.state == ServerState::Ready).await;
        nexus
            .tools()
            .call(format!("{name}.add"), json!({"a": 1, "b": 1}))
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_daemon_that_is_killed_takes_everything_with_it() {
    for _ in 0..5 {
        let home = Home::new();
        home.configure(&stubborn());
        let mut daemon = home.start();
        all_ready(&daemon).await;
        // The daemon, three servers, a shell, and a grandchild.
        assert!(processes_of(daemon.home.path()).len() >= 6);
        daemon.signal(Signal::KILL);
        daemon.ended();
        wait_until_empty(daemon.home.path());
    }
}

#[tokio::test]
async fn a_daemon_that_is_stopped_takes_everything_with_it() {
    let home = Home::new();
    home.configure(&stubborn());
    let mut daemon = home.start();
    all_ready(&daemon).await;
    daemon.signal(Signal::TERM);
    assert!(daemon.ended().success());
    assert_eq!(processes_of(daemon.home.path()), [0; 0]);
}

#[tokio::test]
async fn a_server_that_is_stopped_takes_everything_with_it() {
    let home = Home::new();
    home.configure(&stubborn());
    let daemon = home.start();
    all_ready(&daemon).await;
    let nexus = daemon.client().await;
    for name in ["deaf", "wrapped", "runaway"] {
        nexus.servers().stop(name, Wait::Done).await.unwrap();
    }
    let started = tokio::time::Instant::now();
    // Only the daemon itself.
    while processes_of(daemon.home.path()).len() > 1 {
        assert!(started.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
