//! A hundred servers: how fast the daemon is there, how large it is, how fast it is gone.

use crate::{
    median, millis,
    support::{Daemon, Home, server_when, servers, test_server_with},
    tell,
};
use nexus_client::{Nexus, ServerState};
use rustix::process::Signal;
use serde_json::json;
use std::time::Duration;
use tokio::time::Instant;

const SERVERS: usize = 100;
const RUNS: usize = 9;

fn names() -> Vec<String> {
    (0..SERVERS).map(|n| format!("s{n:03}")).collect()
}

fn home(start: &str) -> Home {
    let home = Home::new();
    let server = || test_server_with(&["--tools", "10"], json!({"start": start}));
    let names = names();
    let all: Vec<_> = names.iter().map(|name| (name.as_str(), server())).collect();
    home.configure(&servers(&all));
    home
}

/// From the start of the process to the first answer over its socket.
async fn answers_after(home: Home) -> (Daemon, Duration) {
    let mut command = home.nexusd();
    let socket = home.socket();
    let began = Instant::now();
    let mut child = command.spawn().unwrap();
    loop {
        let nexus = Nexus::builder().socket(&socket).connect().await;
        if let Ok(nexus) = nexus
            && nexus.daemon().status().await.is_ok()
        {
            break;
        }
        assert!(child.try_wait().unwrap().is_none());
        tokio::time::sleep(Duration::from_micros(200)).await;
    }
    let after = began.elapsed();
    (Daemon::of(home, child), after)
}

pub(crate) async fn memory(nexus: &Nexus) -> String {
    let status = nexus.daemon().status().await.unwrap();
    format!("{:.1} MB", status.memory_bytes.unwrap_or(0) as f64 / 1e6)
}

pub(crate) async fn run() {
    let (mut cold, mut warm) = (Vec::new(), Vec::new());
    let mut home = home("lazy");
    for _ in 0..RUNS {
        let (daemon, after) = answers_after(home).await;
        cold.push(after);
        home = daemon.end();
    }
    // Their lists are learnt once, and come from disk from then on.
    let (daemon, _) = answers_after(home).await;
    let nexus = daemon.client().await;
    let tools = nexus.tools().list().await.unwrap().tools.len();
    assert_eq!(tools, SERVERS * 14);
    home = daemon.end();
    for run in 0..RUNS {
        let (daemon, after) = answers_after(home).await;
        warm.push(after);
        if run == 0 {
            let nexus = daemon.client().await;
            assert_eq!(nexus.tools().list().await.unwrap().tools.len(), tools);
            let memory = memory(&nexus).await;
            tell(
                "100 lazy servers, lists from disk: memory",
                &memory,
                "≤ 30 MB",
            );
        }
        home = daemon.end();
    }
    let bar = "≤ 50 ms";
    tell(
        "100 lazy servers: first answer after exec",
        &millis(median(cold)),
        bar,
    );
    tell(
        "the same, with 1,400 tools known from disk",
        &millis(median(warm)),
        bar,
    );
    eager().await;
}

async fn eager() {
    let began = Instant::now();
    let mut daemon = home("eager").start();
    let nexus = daemon.client().await;
    for name in names() {
        server_when(&nexus, &name, |s| s.state == ServerState::Ready).await;
    }
    tell("100 servers: all ready after", &millis(began.elapsed()), "");
    for name in names() {
        let call = nexus.tools().call(format!("{name}.get_time"), json!({}));
        call.await.unwrap();
    }
    tell(
        "100 servers that run, each called: memory",
        &memory(&nexus).await,
        "≤ 30 MB",
    );
    let began = Instant::now();
    daemon.signal(Signal::TERM);
    assert!(daemon.ended().success());
    tell(
        "100 servers: stopped after",
        &millis(began.elapsed()),
        "≤ 6 s",
    );
    let left = crate::support::processes_of(daemon.home.path()).len();
    tell("processes that are left then", &left.to_string(), "0");
}
