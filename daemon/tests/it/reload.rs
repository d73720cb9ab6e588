//! Reading the configuration again.

use crate::support::{
    Home, NEXUSD, eventually, is_alive, server_until, server_when, servers, test_server,
    test_server_with,
};
use nexus_client::{Reason, ServerState, Wait};
use rustix::process::Signal;
use serde_json::json;
use std::fs;

#[tokio::test]
async fn only_what_changed_is_started_again() {
    let home = Home::new();
    home.configure(&servers(&[
        ("same", test_server(&[])),
        ("slower", test_server(&[])),
        ("changed", test_server(&[])),
        ("gone", test_server(&[])),
    ]));
    let daemon = home.start();
    let nexus = daemon.client().await;
    let mut pids = Vec::new();
    for name in ["same", "slower", "changed", "gone"] {
        let server = server_when(&nexus, name, |s| s.state == ServerState::Ready).await;
        pids.push(server.pid.unwrap());
    }
    let mut slower = test_server(&[]);
    slower["timeout"] = json!(7);
    daemon.home.configure(&servers(&[
        ("same", test_server(&[])),
        ("slower", slower),
        ("changed", test_server(&["--tools", "1"])),
        ("new", test_server(&[])),
    ]));
    let report = nexus.daemon().reload().await.unwrap();
    assert_eq!(report.added, ["new"]);
    assert_eq!(report.removed, ["gone"]);
    assert_eq!(report.changed, ["changed"]);
    assert_eq!(report.unchanged, ["same", "slower"]);
    server_when(&nexus, "new", |s| s.state == ServerState::Ready).await;
    server_when(&nexus, "changed", |s| {
        s.tools == 5 && s.state == ServerState::Ready
    })
    .await;
    for (name, pid) in ["same", "slower"].iter().zip(&pids) {
        assert_eq!(nexus.servers().get(name).await.unwrap().pid, Some(*pid));
    }
    assert_eq!(
        nexus.servers().get("gone").await.unwrap_err().reason(),
        Some(Reason::ServerNotFound)
    );
    crate::support::wait_until_gone(pids[2]);
    crate::support::wait_until_gone(pids[3]);
}

#[tokio::test]
async fn a_bad_file_changes_nothing_and_says_where() {
    let home = Home::new();
    home.configure(&servers(&[("t", test_server(&[]))]));
    let daemon = home.start();
    let nexus = daemon.client().await;
    let before = server_when(&nexus, "t", |s| s.state == ServerState::Ready).await;
    fs::write(daemon.home.config_file(), "{\n \"mcpServers\": {,}\n}").unwrap();
    let error = nexus.daemon().reload().await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::ConfigInvalid));
    assert!(error.to_string().contains("mcp.json:2:17:"), "{error}");
    daemon.signal(Signal::HUP);
    daemon.wait_for_log("everything stays as it was");
    assert_eq!(nexus.servers().get("t").await.unwrap().pid, before.pid);
    assert!(is_alive(before.pid.unwrap()));
}

#[tokio::test]
async fn a_file_that_has_gone_changes_nothing() {
    let home = Home::new();
    home.configure(&servers(&[("t", test_server(&[]))]));
    let daemon = home.start();
    let nexus = daemon.client().await;
    fs::remove_file(daemon.home.config_file()).unwrap();
    let error = nexus.daemon().reload().await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::ConfigInvalid));
    nexus
        .tools()
        .call("t.add", json!({"a": 1, "b": 1}))
        .await
        .unwrap();
}

#[tokio::test]
async fn another_program_has_other_tools() {
    let home = Home::new();
    home.configure(&servers(&[("t", test_server(&[]))]));
    let daemon = home.start();
    let nexus = daemon.client().await;
    server_when(&nexus, "t", |s| s.state == ServerState::Ready).await;
    daemon
        .home
        .configure(&servers(&[("t", test_server(&["--tools", "1"]))]));
    nexus.daemon().reload().await.unwrap();
    // It is waited for, not looked up among the tools of the old one.
    nexus.tools().call("t.tool_0001", json!({})).await.unwrap();
}

#[tokio::test]
async fn a_hang_up_reloads() {
    let home = Home::new();
    home.configure(&servers(&[("t", test_server(&[]))]));
    let daemon = home.start();
    let nexus = daemon.client().await;
    daemon.home.configure(&servers(&[("u", test_server(&[]))]));
    daemon.signal(Signal::HUP);
    daemon.wait_for_log("configuration read again");
    server_when(&nexus, "u", |s| s.state == ServerState::Ready).await;
}

#[test]
fn a_bad_configuration_ends_the_daemon_with_78() {
    let home = Home::new();
    home.configure(&json!({"mcpServers": {"x": {"args": ["y"]}}}));
    for check in [false, true] {
        let mut command = home.nexusd();
        if check {
            command.arg("--check");
        }
        // `output` reads it to its end.
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(78));
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.starts_with("error: "), "{text}");
    }
}

#[tokio::test]
async fn what_is_replaced_finishes_its_calls_first() {
    let home = Home::new();
    home.configure(&servers(&[("t", test_server(&[]))]));
    let daemon = home.start();
    let nexus = daemon.client().await;
    let before = server_when(&nexus, "t", |s| s.state == ServerState::Ready).await;
    let slow = tokio::spawn({
        let nexus = nexus.clone();
        async move {
            let slow = json!({"duration": 1.0, "steps": 1});
            nexus.tools().call("t.slow_operation", slow).await
        }
    });
    server_until(&nexus, "t", |s| s.in_flight == 1).await;
    daemon
        .home
        .configure(&servers(&[("t", test_server(&["--tools", "3"]))]));
    nexus.daemon().reload().await.unwrap();
    // A call that comes meanwhile waits for the new one.
    let new = nexus.tools().call("t.tool_0003", json!({})).await;
    new.unwrap();
    assert!(slow.is_finished(), "two were running at once");
    slow.await.unwrap().unwrap();
    let after = nexus.servers().get("t").await.unwrap();
    assert_ne!(after.pid, before.pid);
    assert_eq!(after.restarts, 0);
}

/// What a new program can do is not known for a moment: whoever calls then waits, and lets others go on.
#[tokio::test]
async fn calls_go_on_while_what_is_run_changes_again_and_again() {
    let home = Home::new();
    home.configure(&servers(&[
        ("t", test_server(&[])),
        ("u", test_server(&[])),
    ]));
    let daemon = home.start();
    let mut callers = Vec::new();
    for _ in 0..8 {
        let nexus = daemon.client().await;
        callers.push(tokio::spawn(async move {
            for n in 0.. {
                let server = ["t", "u"][n % 2];
                let sum = nexus
                    .tools()
                    .call(format!("{server}.add"), json!({"a": n, "b": 1}))
                    .await;
                assert_eq!(sum.unwrap().text(), (n + 1).to_string());
            }
        }));
    }
    let nexus = daemon.client().await;
    for round in 1..=20 {
        let changed = test_server(&["--tools", &round.to_string()]);
        daemon
            .home
            .configure(&servers(&[("t", changed), ("u", test_server(&[]))]));
        let report = nexus.daemon().reload().await.unwrap();
        assert_eq!(report.changed, ["t"]);
        server_when(&nexus, "t", |s| {
            s.tools == 4 + round && s.state == ServerState::Ready
        })
        .await;
    }
    for caller in callers {
        assert!(!caller.is_finished());
        caller.abort();
    }
}

#[tokio::test]
async fn what_is_removed_is_not_started_again_by_calls_that_wait() {
    let home = Home::new();
    let journal = home.path().join("starts");
    let args = [
        "--start-journal",
        journal.to_str().unwrap(),
        "--fault",
        "exit@2",
    ];
    let one = test_server_with(&args, json!({"max_in_flight": 1}));
    home.configure(&servers(&[("t", one), ("u", test_server(&[]))]));
    let daemon = home.start();
    let nexus = daemon.client().await;
    let calls: Vec<_> = (0..4)
        .map(|_| {
            let nexus = nexus.clone();
            tokio::spawn(async move {
                let slow = json!({"duration": 0.5, "steps": 1});
                nexus.tools().call("t.slow_operation", slow).await
            })
        })
        .collect();
    server_until(&nexus, "t", |s| (s.in_flight, s.waiting) == (1, 3)).await;
    daemon.home.configure(&servers(&[("u", test_server(&[]))]));
    nexus.daemon().reload().await.unwrap();
    for call in calls {
        // Carried out, lost with the process, or told that there is none any more.
        let _ = call.await.unwrap();
    }
    eventually("none of its processes is left", || {
        let text = fs::read_to_string(&journal).unwrap();
        let mut pids = text
            .lines()
            .map(|line| line.split('\t').nth(1).unwrap().parse().unwrap());
        pids.all(|pid| !is_alive(pid))
    })
    .await;
}

#[tokio::test]
async fn what_an_operator_stopped_stays_stopped_in_another_form() {
    let home = Home::new();
    home.configure(&servers(&[("t", test_server(&[]))]));
    let daemon = home.start();
    let nexus = daemon.client().await;
    nexus.servers().stop("t", Wait::Done).await.unwrap();
    let keys = json!({"replicas": 2});
    daemon
        .home
        .configure(&servers(&[("t", test_server_with(&[], keys))]));
    nexus.daemon().reload().await.unwrap();
    let server = nexus.servers().get("t").await.unwrap();
    assert_eq!(
        (server.state, server.instances.len()),
        (ServerState::Stopped, 2)
    );
    let error = nexus
        .tools()
        .call("t.get_time", json!({}))
        .await
        .unwrap_err();
    assert_eq!(error.reason(), Some(Reason::ServerStopped));
}

#[tokio::test]
async fn what_is_removed_finishes_its_calls_first() {
    let home = Home::new();
    home.configure(&servers(&[
        ("t", test_server(&[])),
        ("u", test_server(&[])),
    ]));
    let daemon = home.start();
    let nexus = daemon.client().await;
    let slow = tokio::spawn({
        let nexus = nexus.clone();
        async move {
            let slow = json!({"duration": 0.5, "steps": 1});
            nexus.tools().call("t.slow_operation", slow).await
        }
    });
    server_until(&nexus, "t", |s| s.in_flight == 1).await;
    daemon.home.configure(&servers(&[("u", test_server(&[]))]));
    let report = nexus.daemon().reload().await.unwrap();
    assert_eq!(report.removed, ["t"]);
    slow.await.unwrap().unwrap();
}

#[tokio::test]
async fn another_way_of_sharing_makes_the_server_anew() {
    let home = Home::new();
    home.configure(&servers(&[("t", test_server(&[]))]));
    let daemon = home.start();
    let nexus = daemon.client().await;
    server_when(&nexus, "t", |s| s.state == ServerState::Ready).await;
    let keys = json!({"replicas": 2});
    daemon
        .home
        .configure(&servers(&[("t", test_server_with(&[], keys))]));
    assert_eq!(nexus.daemon().reload().await.unwrap().changed, ["t"]);
    server_when(&nexus, "t", |s| s.instances.len() == 2).await;
    nexus.tools().call("t.get_time", json!({})).await.unwrap();
}

#[tokio::test]
async fn a_file_that_is_written_is_read_by_itself() {
    let home = Home::new();
    home.configure(&servers(&[("t", test_server(&[]))]));
    let command = home.command(NEXUSD);
    let daemon = home.start_as(command);
    let nexus = daemon.client().await;
    server_when(&nexus, "t", |s| s.state == ServerState::Ready).await;
    // The daemon may not have begun to watch yet: it is written until it is seen.
    let mut round = 0;
    while nexus.servers().get("new").await.is_err() {
        assert!(round < 60);
        round += 1;
        let more = test_server(&["--tools", &round.to_string()]);
        daemon
            .home
            .configure(&servers(&[("t", test_server(&[])), ("new", more)]));
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
    fs::write(daemon.home.config_file(), "{ nonsense").unwrap();
    daemon.wait_for_log("everything stays as it was");
    nexus.tools().call("new.get_time", json!({})).await.unwrap();
}
