//! What the system does to processes, and what they do to it.
#![cfg(target_os = "linux")]

use crate::support::{
    Cgroup, Daemon, Home, NEXUSD, eventually, is_alive, kill, processes_of, server_until,
    server_when, servers, test_server, test_server_with, wait_until_gone,
};
use nexus_client::{Error, Nexus, Reason, ServerState, Wait};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::{
    fs,
    process::Command,
    time::{Duration, SystemTime},
};

async fn works(nexus: &Nexus, server: &str) {
    let sum = nexus
        .tools()
        .call(format!("{server}.add"), json!({"a": 1, "b": 1}))
        .await;
    assert_eq!(sum.unwrap().text(), "2");
}

/// The fields of `/proc/PID/stat` after the name: state, parent, group, ...
fn stat(pid: u32) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    Some(rest.split(' ').map(str::to_owned).collect())
}

fn children_of(pid: u32) -> Vec<(u32, String)> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|child| Some((child, stat(child)?)))
        .filter(|(_, fields)| fields[1] == pid.to_string())
        .map(|(child, fields)| (child, fields[0].clone()))
        .collect()
}

#[tokio::test]
async fn a_server_that_runs_out_of_memory_says_so_and_the_daemon_lives() {
    let Some(group) = Cgroup::memory(200 << 20) else {
        eprintln!("skipped: no control group for memory can be made here");
        return;
    };
    let home = Home::new();
    home.configure(&servers(&[
        ("t", test_server(&["--fault", "alloc@1000"])),
        ("other", test_server(&[])),
    ]));
    let command = home.after(&group.join());
    let daemon = home.start_as(command);
    let nexus = daemon.client().await;
    works(&nexus, "other").await;
    let call = nexus.tools().call("t.add", json!({"a": 1, "b": 1}));
    let Err(Error::Failed(failure)) = call.await else {
        panic!("it was not ended")
    };
    assert_eq!(failure.reason, Reason::ServerExited);
    let exit = failure.details.exit.unwrap();
    assert_eq!(exit, "signal 9 (SIGKILL): out of memory");
    works(&nexus, "other").await;
    // Another that is killed was not short of memory.
    let pid = nexus.servers().get("other").await.unwrap().pid.unwrap();
    kill(pid);
    let other = server_when(&nexus, "other", |s| s.last_failure.is_some()).await;
    let past = other.last_failure.unwrap().message;
    assert_eq!(past, "the server ended: signal 9 (SIGKILL)");
}

#[tokio::test]
async fn servers_go_before_the_daemon_when_memory_runs_out() {
    let daemon = crate::support::start_with(&[]);
    let nexus = daemon.client().await;
    let server = server_when(&nexus, "t", |s| s.state == ServerState::Ready).await;
    let score = |pid: u32| -> i32 {
        let score = fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap();
        score.trim().parse().unwrap()
    };
    let (own, theirs) = (score(daemon.child.id()), score(server.pid.unwrap()));
    assert_eq!(theirs, (own + 500).min(1000));
}

#[tokio::test]
async fn what_a_server_leaves_behind_is_adopted_and_reaped() {
    let home = Home::new();
    // The one that sleeps has lost its parent before the server is there.
    let stray = format!("(setsid sleep 0.3 &); exec {NEXUSD} demo-server");
    home.configure(&servers(&[(
        "t",
        json!({"command": "sh", "args": ["-c", stray]}),
    )]));
    let daemon = home.start();
    let nexus = daemon.client().await;
    works(&nexus, "t").await;
    let own = daemon.child.id();
    let server = nexus.servers().get("t").await.unwrap().pid.unwrap();
    let strays = || {
        let name = |pid: u32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let children = children_of(own).into_iter();
        children
            .filter(|(pid, _)| *pid != server && name(*pid) == "sleep\n")
            .count()
    };
    // It was adopted if it had not ended by then; in any case nothing of it is left.
    eventually("no stray is left", || strays() == 0).await;
    for _ in 0..20 {
        kill(nexus.servers().get("t").await.unwrap().pid.unwrap());
        nexus.servers().restart("t", Wait::Done).await.unwrap();
    }
    let zombies = || children_of(own).iter().any(|(_, state)| state == "Z");
    eventually("no zombie is left", || !zombies()).await;
    works(&nexus, "t").await;
}

#[tokio::test]
async fn a_process_that_cannot_be_ended_holds_nobody_up() {
    let Some(freezer) = Cgroup::freezer() else {
        eprintln!("skipped: no control group that freezes processes can be made here");
        return;
    };
    let daemon = crate::support::start_with(&[]);
    let nexus = daemon.client().await;
    let server = server_when(&nexus, "t", |s| s.state == ServerState::Ready).await;
    let pid = server.pid.unwrap();
    freezer.freeze(pid);
    nexus.servers().restart("t", Wait::Done).await.unwrap();
    let server = nexus.servers().get("t").await.unwrap();
    assert_eq!(server.state, ServerState::Ready);
    assert_ne!(server.pid, Some(pid));
    assert!(is_alive(pid), "it was ended after all");
    assert!(server.warnings[0].contains("cannot be ended"), "{server:?}");
    works(&nexus, "t").await;
    freezer.thaw();
    server_when(&nexus, "t", |s| s.warnings.is_empty()).await;
    assert!(!is_alive(pid));
}

#[tokio::test]
async fn a_program_that_is_being_written_is_tried_again() {
    let home = Home::new();
    let program = home.path().join("server");
    fs::copy(NEXUSD, &program).unwrap();
    home.configure(&servers(&[(
        "t",
        json!({"command": program, "args": ["demo-server"]}),
    )]));
    let writing = fs::OpenOptions::new().append(true).open(&program).unwrap();
    let daemon = home.start();
    let nexus = daemon.client().await;
    let server = server_when(&nexus, "t", |s| s.last_failure.is_some()).await;
    let past = server.last_failure.unwrap();
    assert!(past.message.contains("busy"), "{}", past.message);
    assert_ne!(server.state, ServerState::Failed);
    drop(writing);
    server_when(&nexus, "t", |s| s.state == ServerState::Ready).await;
}

#[tokio::test]
async fn without_files_nobody_is_blamed_and_those_who_run_go_on() {
    let home = Home::new();
    let names: Vec<String> = (0..20).map(|n| format!("s{n:02}")).collect();
    let lazy = || test_server_with(&[], json!({"start": "lazy"}));
    let all: Vec<_> = names.iter().map(|name| (name.as_str(), lazy())).collect();
    home.configure(&servers(&all));
    let command = home.after("ulimit -n 48");
    let daemon = home.start_as(command);
    let nexus = daemon.client().await;
    let mut running = Vec::new();
    let refused = loop {
        let Some(name) = names.get(running.len()) else {
            panic!("all of them could be started")
        };
        match nexus
            .tools()
            .call(format!("{name}.get_time"), json!({}))
            .await
        {
            Ok(_) => running.push(name.as_str()),
            Err(Error::Failed(failure)) => break failure,
            Err(error) => panic!("{error:?}"),
        }
    };
    assert_eq!(refused.reason, Reason::SpawnFailed);
    assert!(
        refused.message.contains("open files"),
        "{}",
        refused.message
    );
    assert!(refused.details.retry_after.is_some());
    let unlucky = &names[running.len()];
    let server = nexus.servers().get(unlucky).await.unwrap();
    assert_eq!((server.state, server.restarts), (ServerState::Starting, 0));
    for name in &running {
        works(&nexus, name).await;
    }
    // As soon as there is room, it gets it.
    for name in &running[..2] {
        nexus.servers().stop(name, Wait::Done).await.unwrap();
    }
    server_when(&nexus, unlucky, |s| s.state == ServerState::Ready).await;
    works(&nexus, unlucky).await;
}

#[tokio::test]
async fn servers_that_die_together_all_come_back() {
    let home = Home::new();
    let names: Vec<String> = (0..16).map(|n| format!("s{n:02}")).collect();
    let all: Vec<_> = names
        .iter()
        .map(|name| (name.as_str(), test_server(&[])))
        .collect();
    home.configure(&servers(&all));
    let daemon = home.start();
    let nexus = daemon.client().await;
    let mut pids = Vec::new();
    for name in &names {
        let server = server_when(&nexus, name, |s| s.state == ServerState::Ready).await;
        pids.push(server.pid.unwrap());
    }
    for pid in pids {
        kill(pid);
    }
    for name in &names {
        let back = |s: &nexus_client::Server| s.state == ServerState::Ready && s.generation == 2;
        assert_eq!(server_when(&nexus, name, back).await.restarts, 1);
    }
}

fn guardian_of(daemon: &Daemon) -> Option<u32> {
    let mut children = children_of(daemon.child.id())
        .into_iter()
        .map(|(pid, _)| pid);
    children.find(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains("guardian")
    })
}

#[tokio::test]
async fn a_guardian_that_is_ended_is_replaced_and_knows_what_the_first_one_knew() {
    let home = Home::new();
    let deaf = format!("{NEXUSD} demo-server --fault ignore-term; true");
    home.configure(&servers(&[
        ("wrapped", json!({"command": "sh", "args": ["-c", deaf]})),
        ("t", test_server(&[])),
    ]));
    let mut daemon = home.start();
    let nexus = daemon.client().await;
    works(&nexus, "wrapped").await;
    let first = guardian_of(&daemon).unwrap();
    kill(first);
    wait_until_gone(first);
    // It is noticed when there is something to tell.
    nexus.servers().restart("t", Wait::Done).await.unwrap();
    daemon.wait_for_log("the guardian was gone");
    assert_ne!(guardian_of(&daemon), Some(first));
    daemon.signal(Signal::KILL);
    daemon.ended();
    let home = daemon.home.path().to_owned();
    eventually("nothing is left", || processes_of(&home).is_empty()).await;
}

/// One that hides both from its group and from our mark is still our child in the end.
#[tokio::test]
async fn a_stray_without_a_mark_ends_with_the_daemon() {
    let home = Home::new();
    let pid_file = home.path().join("stray");
    let stray = format!(
        "(setsid env -i sh -c 'echo $$ > {0}.new; mv {0}.new {0}; exec sleep 600' &); exec {NEXUSD} demo-server",
        pid_file.display()
    );
    home.configure(&servers(&[(
        "t",
        json!({"command": "sh", "args": ["-c", stray]}),
    )]));
    let daemon = home.start();
    works(&daemon.client().await, "t").await;
    eventually("it is there", || pid_file.exists()).await;
    let pid: u32 = fs::read_to_string(&pid_file)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    assert!(is_alive(pid));
    let _home = daemon.end();
    // It was killed; the machine may take a moment to do it.
    wait_until_gone(pid);
}

/// `killall -9 nexusd` ends the guardian as well.
#[tokio::test]
async fn what_a_daemon_and_its_guardian_left_behind_is_ended_by_the_next_one() {
    let home = Home::new();
    let deaf = format!("{NEXUSD} demo-server --fault ignore-term; true");
    home.configure(&servers(&[(
        "wrapped",
        json!({"command": "sh", "args": ["-c", deaf]}),
    )]));
    let mut daemon = home.start();
    works(&daemon.client().await, "wrapped").await;
    let guardian = guardian_of(&daemon).unwrap();
    kill(guardian);
    daemon.signal(Signal::KILL);
    daemon.ended();
    let home = std::mem::replace(&mut daemon.home, Home::new());
    // The server loses its wrapper, and lives on.
    eventually("only the server is left", || {
        processes_of(home.path()).len() == 1
    })
    .await;
    let left = processes_of(home.path());
    let daemon = home.start();
    eventually("it is gone", || !is_alive(left[0])).await;
    daemon.wait_for_log("ended what an earlier daemon had left behind");
    works(&daemon.client().await, "wrapped").await;
}

/// A machine that slept, or had no time for us.
#[tokio::test]
async fn a_daemon_that_stood_still_blames_nobody() {
    let home = Home::new();
    let health = json!({"health": {"interval": 0.05, "timeout": 0.1, "threshold": 2}});
    home.configure(&servers(&[("t", test_server_with(&[], health))]));
    let daemon = home.start();
    let nexus = daemon.client().await;
    let before = server_until(&nexus, "t", |s| s.latency.is_some()).await;
    for _ in 0..5 {
        daemon.signal(Signal::STOP);
        std::thread::sleep(Duration::from_millis(400));
        daemon.signal(Signal::CONT);
        works(&nexus, "t").await;
    }
    let after = nexus.servers().get("t").await.unwrap();
    assert_eq!((after.pid, after.restarts), (before.pid, 0));
}

fn pid(daemon: &Daemon) -> Pid {
    Pid::from_child(&daemon.child)
}

#[tokio::test]
async fn signals_that_mean_nothing_to_us_disturb_nobody() {
    let daemon = crate::support::start_with(&[]);
    let nexus = daemon.client().await;
    works(&nexus, "t").await;
    let before = nexus.servers().get("t").await.unwrap();
    for round in 0..200 {
        let signals = [Signal::HUP, Signal::PIPE, Signal::USR1, Signal::USR2];
        kill_process(pid(&daemon), signals[round % 4]).unwrap();
        works(&nexus, "t").await;
    }
    let after = nexus.servers().get("t").await.unwrap();
    assert_eq!((after.pid, after.restarts), (before.pid, 0));
}

#[tokio::test]
async fn a_disk_that_is_full_costs_only_what_would_be_on_it() {
    let home = Home::new();
    let state = home.path().join("state");
    fs::create_dir(&state).unwrap();
    let small = format!("mount -t tmpfs -o size=16k none {}", state.display());
    let can_mount = Command::new("unshare")
        .args(["-m", "sh", "-c", &small])
        .status();
    if !can_mount.is_ok_and(|status| status.success()) {
        eprintln!("skipped: a small disk can only be had by root");
        return;
    }
    home.configure(&servers(&[(
        "t",
        test_server(&["--tools", "300", "--fault", "stderr-flood@2"]),
    )]));
    let inner = home.after(&small);
    let mut command = home.command("unshare");
    command
        .arg("-m")
        .arg(inner.get_program())
        .args(inner.get_args());
    let daemon = home.start_as(command);
    let nexus = daemon.client().await;
    works(&nexus, "t").await;
    daemon.wait_for_log("lists cannot be kept on disk");
    daemon.wait_for_log("a log cannot be written");
    for _ in 0..10 {
        works(&nexus, "t").await;
    }
}

/// A crash loop is tried again long before its time when somebody calls, but not at every call.
#[tokio::test]
async fn a_call_may_have_a_crash_loop_tried_and_does_not_wait_for_it() {
    let home = Home::new();
    let (mended, starts) = (home.path().join("mended"), home.path().join("starts"));
    let script = format!(
        "echo >> {}; test -e {} && exec {NEXUSD} demo-server; echo broken >&2; exit 3",
        starts.display(),
        mended.display()
    );
    home.configure(&servers(&[(
        "t",
        json!({"command": "sh", "args": ["-c", script]}),
    )]));
    let daemon = home.start();
    let nexus = daemon.client().await;
    let server = server_when(&nexus, "t", |s| s.state == ServerState::CrashLoop).await;
    let next_try = server.next_try.unwrap();
    let tried = || fs::read_to_string(&starts).unwrap().lines().count();
    let before = tried();
    for _ in 0..100 {
        let error = nexus.tools().call("t.add", json!({})).await.unwrap_err();
        assert_eq!(error.reason(), Some(Reason::CrashLoop), "{error:?}");
    }
    assert_eq!(
        tried(),
        before,
        "calls are no reason to try again and again"
    );
    fs::write(&mended, "").unwrap();
    while nexus.tools().call("t.get_time", json!({})).await.is_err() {
        assert!(SystemTime::now() < next_try, "it was tried in its own time");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // Once, and it was good.
    assert_eq!(tried(), before + 1);
}
