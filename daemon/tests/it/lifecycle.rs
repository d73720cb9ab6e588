//! From the first start to a clean end.

use crate::support::{
    Daemon, Ends, Home, is_alive, kill, server_when, servers, start_with, test_server,
    test_server_with, wait_until_gone,
};
use nexus_client::{Error, Reason, ServerState, Wait};
use rustix::process::Signal;
use serde_json::json;
use std::{
    fs,
    os::{
        fd::OwnedFd,
        unix::net::{UnixDatagram, UnixListener},
    },
    path::PathBuf,
};

#[tokio::test]
async fn without_any_configuration_the_demo_is_served() {
    let daemon = Home::new().start();
    let nexus = daemon.client().await;
    let tools = nexus.tools().list().await.unwrap().tools;
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "demo__echo",
            "demo__get_time",
            "demo__add",
            "demo__slow_operation"
        ]
    );
    let sum = nexus
        .tools()
        .call("demo.add", json!({"a": 2, "b": 3}))
        .await
        .unwrap();
    assert_eq!(sum.text(), "5");
    let status = nexus.daemon().status().await.unwrap();
    assert!(status.demo);
    assert_eq!(
        (status.servers, status.servers_ready, status.calls),
        (1, 1, 1)
    );
}

#[tokio::test]
async fn a_server_that_is_killed_is_back_for_the_next_call() {
    let daemon = start_with(&[]);
    let nexus = daemon.client().await;
    for round in 1..=3u32 {
        let server = server_when(&nexus, "t", |s| s.state == ServerState::Ready).await;
        let pid = server.pid.unwrap();
        kill(pid);
        let sum = nexus
            .tools()
            .call("t.add", json!({"a": round, "b": 1}))
            .await;
        // The call may have been written to the process that was just killed.
        match sum {
            Ok(sum) => assert_eq!(sum.text(), (round + 1).to_string()),
            Err(error) => assert!(error.maybe_executed(), "{error}"),
        }
        let server = server_when(&nexus, "t", |s| {
            s.state == ServerState::Ready && s.pid != Some(pid)
        })
        .await;
        assert_eq!(server.restarts, round);
        let sum = nexus
            .tools()
            .call("t.add", json!({"a": 1, "b": 1}))
            .await
            .unwrap();
        assert_eq!(sum.text(), "2");
    }
}

#[tokio::test]
async fn a_server_can_be_stopped_started_and_restarted() {
    let daemon = start_with(&[]);
    let nexus = daemon.client().await;
    let first = server_when(&nexus, "t", |s| s.state == ServerState::Ready).await;

    let stopped = nexus.servers().stop("t", Wait::Done).await.unwrap().server;
    assert_eq!(
        (stopped.state, stopped.pid, stopped.wanted),
        (ServerState::Stopped, None, false)
    );
    assert!(!is_alive(first.pid.unwrap()));
    let error = nexus
        .tools()
        .call("t.add", json!({"a": 1, "b": 1}))
        .await
        .unwrap_err();
    assert_eq!(error.reason(), Some(Reason::ServerStopped));
    // Its tools are still known: they are what it will have again.
    assert_eq!(nexus.tools().list().await.unwrap().tools.len(), 4);

    let started = nexus.servers().start("T", Wait::Done).await.unwrap().server;
    assert_eq!(started.state, ServerState::Ready);
    let again = nexus
        .servers()
        .restart("t", Wait::Done)
        .await
        .unwrap()
        .server;
    assert_eq!((again.state, again.restarts), (ServerState::Ready, 0));
    assert_ne!(again.pid, started.pid);
    assert!(!is_alive(started.pid.unwrap()));
}

#[tokio::test]
async fn a_stop_that_somebody_takes_back_is_not_waited_for() {
    let daemon = start_with(&["--fault", "ignore-term"]);
    let nexus = daemon.client().await;
    server_when(&nexus, "t", |s| s.state == ServerState::Ready).await;
    let stop = tokio::spawn({
        let nexus = nexus.clone();
        async move { nexus.servers().stop("t", Wait::Done).await }
    });
    server_when(&nexus, "t", |s| s.state == ServerState::Stopping).await;
    nexus.servers().start("t", Wait::No).await.unwrap();
    stop.await.unwrap().unwrap();
    let server = nexus.servers().get("t").await.unwrap();
    assert!(server.wanted);
}

#[tokio::test]
async fn the_end_leaves_no_process_and_no_socket() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut daemon = start_with(&[]);
        let nexus = daemon.client().await;
        let server = server_when(&nexus, "t", |s| s.state == ServerState::Ready).await;
        daemon.signal(signal);
        assert!(daemon.ended().success());
        assert!(!is_alive(server.pid.unwrap()));
        assert!(!daemon.home.socket().exists());
    }
}

#[tokio::test]
async fn a_call_that_is_under_way_is_waited_for_and_new_ones_are_refused() {
    let mut daemon = start_with(&[]);
    let nexus = daemon.client().await;
    // It does not wait for the next daemon.
    let other = nexus_client::Nexus::builder()
        .socket(daemon.home.socket())
        .reconnect_for(std::time::Duration::ZERO);
    let other = other.connect().await.unwrap();
    let mut slow = nexus
        .tools()
        .call_stream("t.slow_operation", json!({"duration": 1, "steps": 10}))
        .await
        .unwrap();
    slow.next().await.unwrap().unwrap();
    daemon.signal(Signal::TERM);
    daemon.wait_for_log("stopping");
    let refused = other
        .tools()
        .call("t.add", json!({"a": 1, "b": 1}))
        .await
        .unwrap_err();
    assert_eq!(refused.reason(), Some(Reason::ShuttingDown), "{refused:?}");
    assert!(!slow.result().await.unwrap().is_error());
    assert!(daemon.ended().success());
}

#[tokio::test]
async fn a_second_signal_means_now() {
    let mut daemon = start_with(&["--fault", "ignore-term"]);
    let nexus = daemon.client().await;
    let server = server_when(&nexus, "t", |s| s.state == ServerState::Ready).await;
    let caller = nexus.clone();
    let call = tokio::spawn(async move {
        caller
            .tools()
            .call("t.slow_operation", json!({"duration": 300}))
            .await
    });
    while nexus.servers().get("t").await.unwrap().in_flight == 0 {
        tokio::task::yield_now().await;
    }
    daemon.signal(Signal::TERM);
    daemon.wait_for_log("stopping");
    daemon.signal(Signal::TERM);
    assert!(daemon.ended().success());
    assert!(call.await.unwrap().is_err());
    wait_until_gone(server.pid.unwrap());
}

#[tokio::test]
async fn servers_do_not_outlive_a_daemon_that_is_killed() {
    let mut daemon = start_with(&["--fault", "ignore-term"]);
    let nexus = daemon.client().await;
    let server = server_when(&nexus, "t", |s| s.state == ServerState::Ready).await;
    daemon.signal(Signal::KILL);
    daemon.ended();
    wait_until_gone(server.pid.unwrap());
}

#[tokio::test]
async fn a_client_asks_the_daemon_to_stop() {
    let mut daemon = start_with(&[]);
    let nexus = daemon.client().await;
    nexus.daemon().shutdown(false).await.unwrap();
    assert!(daemon.ended().success());
    let error = daemon_error(&daemon).await;
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
}

async fn daemon_error(daemon: &Daemon) -> Error {
    let socket: PathBuf = daemon.home.socket();
    nexus_client::Nexus::builder()
        .socket(socket)
        .connect()
        .await
        .unwrap_err()
}

#[tokio::test]
async fn a_client_finds_the_daemon_again_after_it_was_restarted() {
    let mut daemon = start_with(&[]);
    let nexus = daemon.client().await;
    nexus
        .tools()
        .call("t.add", json!({"a": 1, "b": 1}))
        .await
        .unwrap();
    daemon.signal(Signal::KILL);
    daemon.ended();
    let home = std::mem::replace(&mut daemon.home, Home::new());
    let daemon = home.start();
    // A question that may be asked twice finds out that the connection is gone.
    nexus.daemon().status().await.unwrap();
    let sum = nexus
        .tools()
        .call("t.add", json!({"a": 2, "b": 2}))
        .await
        .unwrap();
    assert_eq!(sum.text(), "4");
    drop(daemon);
}

#[tokio::test]
async fn systemd_is_told_how_we_are() {
    let home = Home::new();
    home.configure(&servers(&[("t", test_server(&[]))]));
    let notices = home.path().join("notify");
    let socket = UnixDatagram::bind(&notices).unwrap();
    socket
        .set_read_timeout(Some(crate::support::PATIENCE))
        .unwrap();
    let mut command = home.nexusd();
    command
        .env("NOTIFY_SOCKET", &notices)
        .env("WATCHDOG_USEC", "300000");
    let mut child = Ends(command.spawn().unwrap());
    let mut wanted = vec!["READY=1", "STATUS=1 of 1 servers ready", "WATCHDOG=1"];
    let mut buffer = [0; 1024];
    while !wanted.is_empty() {
        let n = socket.recv(&mut buffer).unwrap();
        let text = String::from_utf8_lossy(&buffer[..n]).into_owned();
        wanted.retain(|w| !text.contains(w));
    }
    rustix::process::kill_process(rustix::process::Pid::from_child(&child.0), Signal::TERM)
        .unwrap();
    while !String::from_utf8_lossy(&buffer).contains("STOPPING=1") {
        let n = socket.recv(&mut buffer).unwrap();
        buffer[n..].fill(0);
    }
    assert!(child.0.wait().unwrap().success());
}

/// Whoever looks must not stand in the way of those who change things, however many threads there are.
#[tokio::test]
async fn looking_at_servers_holds_nobody_up_on_several_threads() {
    let home = Home::new();
    let keys = json!({"replicas": 4});
    home.configure(&servers(&[("t", test_server_with(&[], keys))]));
    let mut command = home.nexusd();
    command.args(["--threads", "4"]);
    let daemon = home.start_as(command);
    let mut lookers = Vec::new();
    for _ in 0..4 {
        let nexus = daemon.client().await;
        lookers.push(tokio::spawn(async move {
            loop {
                nexus.servers().list().await.unwrap();
            }
        }));
    }
    let nexus = daemon.client().await;
    for _ in 0..20 {
        let restarting = async { nexus.servers().restart("t", Wait::Done).await };
        let restarted = tokio::time::timeout(crate::support::PATIENCE, restarting).await;
        restarted.expect("it stands still").unwrap();
    }
    for looker in lookers {
        assert!(!looker.is_finished());
        looker.abort();
    }
}

/// systemd makes the socket, and starts the daemon for whoever calls.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_socket_that_is_passed_on_is_served_and_left_in_its_place() {
    let home = Home::new();
    let socket = home.socket();
    fs::create_dir_all(socket.parent().unwrap()).unwrap();
    let listener = UnixListener::bind(&socket).unwrap();
    // It calls before anybody serves.
    let early = tokio::spawn({
        let socket = socket.clone();
        async move {
            let builder = nexus_client::Nexus::builder().socket(socket);
            let nexus = builder.connect().await.unwrap();
            nexus.daemon().status().await.unwrap()
        }
    });
    tokio::task::yield_now().await;
    let mut command = home.after("exec 3<&0 </dev/null; export LISTEN_PID=$$ LISTEN_FDS=1");
    command.stdin(OwnedFd::from(listener.try_clone().unwrap()));
    let mut daemon = home.start_as(command);
    assert_eq!(early.await.unwrap().pid, daemon.child.id());
    let nexus = daemon.client().await;
    nexus
        .tools()
        .call("demo.get_time", json!({}))
        .await
        .unwrap();
    let server = server_when(&nexus, "demo", |s| s.state == ServerState::Ready).await;
    let files = fs::read_dir(format!("/proc/{}/fd", server.pid.unwrap())).unwrap();
    let sockets = files.flatten().filter(|file| {
        let target = fs::read_link(file.path()).unwrap_or_default();
        target.to_string_lossy().starts_with("socket:")
    });
    assert_eq!(sockets.count(), 0, "a server has inherited it");
    daemon.signal(Signal::TERM);
    assert!(daemon.ended().success());
    assert!(socket.exists());
    // One that is started by hand does not take it away from systemd.
    let by_hand = daemon.home.nexusd().output().unwrap();
    assert!(by_hand.status.success());
    let said = String::from_utf8_lossy(&by_hand.stderr).into_owned();
    assert!(said.contains("already running"), "{said}");
    assert!(socket.exists());
}
