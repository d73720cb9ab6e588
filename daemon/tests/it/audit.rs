//! Every call has a line, whatever becomes of it.

use crate::support::{
    Daemon, Home, eventually, kill, pid_of, server_until, servers, start_with, test_server,
    test_server_with,
};
use nexus_client::Nexus;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, HashSet},
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

fn file(home: &Home) -> PathBuf {
    home.path().join("state/nexus/audit/audit.jsonl")
}

fn lines_of(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    // The last one may be on its way.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

async fn lines(home: &Home, count: usize) -> Vec<Value> {
    let path = file(home);
    eventually("as many lines as calls", || lines_of(&path).len() >= count).await;
    let lines = lines_of(&path);
    assert_eq!(lines.len(), count, "{lines:#?}");
    let ids: HashSet<_> = lines
        .iter()
        .map(|line| line["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids.len(), count);
    lines
}

fn outcomes(lines: &[Value]) -> BTreeMap<(String, String), usize> {
    let mut counts = BTreeMap::new();
    for line in lines {
        let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        *counts
            .entry((text("decision"), text("outcome")))
            .or_default() += 1;
    }
    counts
}

fn counted(expected: &[(&str, &str, usize)]) -> BTreeMap<(String, String), usize> {
    let entry = |(decision, outcome, count): &(&str, &str, usize)| {
        (((*decision).to_owned(), (*outcome).to_owned()), *count)
    };
    expected.iter().map(entry).collect()
}

async fn agent(daemon: &Daemon, name: &str) -> Nexus {
    let builder = Nexus::builder().socket(daemon.home.socket());
    builder.as_agent(name).connect().await.unwrap()
}

fn slow(nexus: &Nexus, seconds: f64) -> tokio::task::JoinHandle<bool> {
    let nexus = nexus.clone();
    tokio::spawn(async move {
        let arguments = json!({"duration": seconds, "steps": 1});
        nexus
            .tools()
            .call("t.slow_operation", arguments)
            .await
            .is_ok()
    })
}

fn restart(mut daemon: Daemon) -> Daemon {
    daemon.signal(Signal::KILL);
    daemon.ended();
    let home = std::mem::replace(&mut daemon.home, Home::new());
    drop(daemon);
    home.start()
}

#[tokio::test]
async fn a_line_says_who_did_what_and_what_became_of_it() {
    let home = Home::new();
    let mut config = servers(&[(
        "t",
        test_server_with(&[], json!({"rate_limit": {"tools": {"get_time": "1/h"}}})),
    )]);
    config["policy"] = json!({"agents": {"bad": {"agents": ["bad*"], "level": "sandboxed"}}});
    home.configure(&config);
    let daemon = home.start();
    let (ann, bad) = (agent(&daemon, "ann").await, agent(&daemon, "badger").await);
    let arguments = json!({"a": 1, "b": 2});
    ann.tools().call("t__add", arguments.clone()).await.unwrap();
    ann.tools()
        .call("t.add", json!({"a": "x"}))
        .await
        .unwrap_err();
    ann.tools().call("t.nothing", json!({})).await.unwrap_err();
    ann.tools().call("t.get_time", json!({})).await.unwrap();
    ann.tools().call("t.get_time", json!({})).await.unwrap_err();
    ann.resources().read("file:///readme.txt").await.unwrap();
    ann.resources().read("file:///none.txt").await.unwrap_err();
    ann.prompts()
        .get("t.code_review")
        .arg("language", "c")
        .arg("code", "secret code")
        .await
        .unwrap();
    bad.tools()
        .call("t.add", arguments.clone())
        .await
        .unwrap_err();
    let lines = lines(&daemon.home, 9).await;
    assert_eq!(
        outcomes(&lines),
        counted(&[
            ("allowed", "ok", 4),
            ("none", "INVALID_ARGUMENTS", 1),
            ("none", "TOOL_NOT_FOUND", 1),
            ("rate-limited", "RATE_LIMITED", 1),
            ("none", "RESOURCE_NOT_FOUND", 1),
            ("sandboxed", "SANDBOXED", 1),
        ])
    );
    let first = &lines[0];
    assert_eq!(first["agent"]["name"], "ann");
    assert_eq!(first["agent"]["pid"], std::process::id());
    let program = std::env::current_exe().unwrap();
    assert_eq!(first["agent"]["program"], program.to_str().unwrap());
    assert_eq!(
        (&first["server"], &first["tool"]),
        (&json!("t"), &json!("add"))
    );
    assert_eq!(first["method"], "tools/call");
    assert!(first["duration_ms"].as_f64().unwrap() > 0.0);
    assert!(first["result_bytes"].as_u64().unwrap() > 10);
    let text = arguments.to_string();
    assert_eq!(first["arguments_bytes"], text.len());
    // As sha256sum has it.
    assert_eq!(
        first["arguments_sha256"],
        "43258cff783fe7036d8a43033f830adfc60ec037382473548ac742b888292777"
    );
    assert_eq!(lines[5]["uri"], "file:///readme.txt");
    assert_eq!(lines[7]["prompt"], "code_review");
    assert_eq!(lines[2].get("server"), None);
    // Nothing of what was said is in it, and nobody else can read it.
    let path = file(&daemon.home);
    let written = fs::read_to_string(&path).unwrap();
    assert!(!written.contains("secret code") && !written.contains("\"arguments\""));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    assert_eq!(mode(&daemon.home.socket().with_extension("calls")), 0o600);
}

#[tokio::test]
async fn arguments_are_written_down_without_secrets_if_that_is_wanted() {
    let home = Home::new();
    let mut server = test_server(&[]);
    server["env"] = json!({"API_TOKEN": "correct horse battery"});
    let with = |policy: Value| {
        let mut config = servers(&[("t", server.clone())]);
        config["policy"] = policy;
        config
    };
    home.configure(&with(json!({"audit_arguments": true})));
    let daemon = home.start();
    let nexus = daemon.client().await;
    for message in [
        "hello",
        "ghp_0123456789abcdefghij",
        "my correct horse battery",
    ] {
        let echo = nexus.tools().call("t.echo", json!({"message": message}));
        echo.await.unwrap();
    }
    let told = lines(&daemon.home, 3).await;
    let told: Vec<_> = told
        .iter()
        .map(|line| &line["arguments"]["message"])
        .collect();
    assert_eq!(told, ["hello", "***", "***"]);

    // Off, and on again.
    daemon.home.configure(&with(json!({"audit": false})));
    nexus.daemon().reload().await.unwrap();
    nexus
        .tools()
        .call("t.echo", json!({"message": "x"}))
        .await
        .unwrap();
    daemon.home.configure(&with(json!({})));
    nexus.daemon().reload().await.unwrap();
    nexus
        .tools()
        .call("t.echo", json!({"message": "y"}))
        .await
        .unwrap();
    let told = lines(&daemon.home, 4).await;
    assert_eq!(told[3].get("arguments"), None);
}

#[tokio::test]
async fn a_server_that_is_killed_loses_no_line() {
    let daemon = start_with(&[]);
    let nexus = daemon.client().await;
    nexus.tools().list().await.unwrap();
    let calls: Vec<_> = (0..20).map(|_| slow(&nexus, 60.0)).collect();
    server_until(&nexus, "t", |server| server.in_flight == 20).await;
    kill(pid_of(&nexus).await);
    for call in calls {
        assert!(!call.await.unwrap());
    }
    let lines = lines(&daemon.home, 20).await;
    assert_eq!(
        outcomes(&lines),
        counted(&[("allowed", "SERVER_EXITED", 20)])
    );
}

#[tokio::test]
async fn calls_that_nobody_waits_for_are_cancelled() {
    let daemon = start_with(&[]);
    let nexus = daemon.client().await;
    nexus.tools().list().await.unwrap();
    let calls: Vec<_> = (0..10).map(|_| slow(&nexus, 60.0)).collect();
    server_until(&nexus, "t", |server| server.in_flight == 10).await;
    calls.iter().for_each(tokio::task::JoinHandle::abort);
    let lines = lines(&daemon.home, 10).await;
    assert_eq!(outcomes(&lines), counted(&[("allowed", "cancelled", 10)]));
}

#[tokio::test]
async fn a_daemon_that_is_killed_loses_no_line_and_writes_none_twice() {
    let mut daemon = start_with(&[]);
    let mut count = 0;
    for round in 0..5 {
        let nexus = daemon.client().await;
        nexus.tools().list().await.unwrap();
        let waiting: Vec<_> = (0..7).map(|_| slow(&nexus, 60.0)).collect();
        server_until(&nexus, "t", |server| server.in_flight == 7).await;
        // Killed while lines are being written: who has had an answer, has a line.
        let busy: Vec<_> = (0..40)
            .map(|n| {
                let nexus = nexus.clone();
                tokio::spawn(async move {
                    let name = if n % 2 == 0 { "t.echo" } else { "t.nothing" };
                    let _ = nexus.tools().call(name, json!({"message": "x"})).await;
                })
            })
            .collect();
        for call in busy {
            call.await.unwrap();
        }
        count += 7 + 40;
        daemon = restart(daemon);
        waiting.iter().for_each(tokio::task::JoinHandle::abort);
        let lines = lines(&daemon.home, count).await;
        let lost = lines.iter().filter(|line| line["outcome"] == "lost");
        let lost: Vec<_> = lost.collect();
        assert_eq!(lost.len(), 7 * (round + 1), "{:?}", outcomes(&lines));
        for line in lost {
            assert_eq!(line["tool"], "slow_operation");
            assert_eq!(line["agent"]["pid"], std::process::id());
        }
    }
    // What was made good stays so.
    let daemon = restart(daemon);
    lines(&daemon.home, count).await;
}

/// A disk of our own, if we may have one.
struct Disk(PathBuf);

impl Disk {
    fn mount(at: &Path) -> Option<Self> {
        fs::create_dir_all(at).unwrap();
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs"])
            .arg(at);
        let done = mount.output().ok()?.status.success();
        done.then(|| Self(at.to_owned()))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[tokio::test]
async fn a_full_disk_stops_no_call_and_what_is_missing_is_told() {
    let home = Home::new();
    let folder = file(&home).parent().unwrap().to_owned();
    let disk = Disk::mount(&folder);
    let blocker = match &disk {
        Some(_) => {
            // To the last byte.
            let filler = folder.join("filler");
            let _ = fs::write(&filler, vec![b'x'; 128 * 1024]);
            filler
        }
        None => {
            eprintln!("no disk of our own: a file is where the folder should be");
            fs::remove_dir(&folder).unwrap();
            fs::write(&folder, "").unwrap();
            folder.clone()
        }
    };
    home.configure(&servers(&[("t", test_server(&[]))]));
    let daemon = home.start();
    let nexus = daemon.client().await;
    let echo = async || {
        let echo = nexus.tools().call("t.echo", json!({"message": "x"}));
        echo.await.unwrap();
    };
    for _ in 0..20 {
        echo().await;
    }
    daemon.wait_for_log("the audit cannot be written");
    // What waits for the disk is to have failed before there is room.
    tokio::time::sleep(Duration::from_millis(200)).await;
    fs::remove_file(blocker).unwrap();
    echo().await;
    let path = file(&daemon.home);
    eventually("there is room", || lines_of(&path).len() >= 2).await;
    let lines = lines_of(&path);
    let lost: u64 = lines
        .iter()
        .filter_map(|line| line["lines_lost"].as_u64())
        .sum();
    let told = lines.iter().filter(|line| line["tool"] == "echo").count();
    assert_eq!(lost + told as u64, 21, "{lines:#?}");
    assert_eq!(
        daemon.log().matches("the audit cannot be written").count(),
        1
    );
    drop(daemon);
}
