//! Fifty agents behind `nexusctl mcp`: what each costs the daemon and itself, and how soon one that died is gone.

use crate::{
    median, millis,
    support::{Home, servers, test_server},
    tell,
};
use nexus_client::Nexus;
use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};
use tokio::time::{Instant, sleep};

const BRIDGES: usize = 50;

const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
const SLOW: &str = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t__slow_operation","arguments":{"duration":60,"steps":1}}}"#;

pub(crate) async fn run() {
    let nexusctl = Path::new(env!("CARGO_BIN_EXE_nexusd")).with_file_name("nexusctl");
    if !nexusctl.exists() {
        println!("skipped: bridges: build {} first", nexusctl.display());
        return;
    }
    let home = Home::new();
    home.configure(&servers(&[("t", test_server(&[]))]));
    let daemon = home.start();
    let nexus = daemon.client().await;
    let start = || {
        let mut child = daemon.home.command(nexusctl.to_str().unwrap());
        child.args(["mcp", "--no-start", "--socket"]);
        child.arg(daemon.home.socket());
        begin(&mut child)
    };
    // The first ones take what all share.
    let first: Vec<Child> = (0..5).map(|_| start()).collect();
    let before = memory(&nexus).await;
    let mut bridges: Vec<Child> = (0..BRIDGES).map(|_| start()).collect();
    let growth = (memory(&nexus).await.saturating_sub(before)) / BRIDGES as u64 / 1024;
    tell(
        &format!("{BRIDGES} bridges: the daemon grows by, each"),
        &format!("{growth} KB"),
        "≤ 200 KB",
    );
    let status = fs::read_to_string(format!("/proc/{}/status", bridges[0].id())).unwrap();
    let of = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        let kb: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        format!("{:.1} MB", kb as f64 / 1024.0)
    };
    tell("a bridge: memory", &of("VmRSS:"), "≤ 4 MB");
    tell(
        "of that its own, not shared with the others",
        &of("RssAnon:"),
        "",
    );
    let mut gone = Vec::new();
    for bridge in bridges.iter_mut().take(10) {
        let mut input = bridge.stdin.take().unwrap();
        writeln!(input, "{SLOW}").unwrap();
        until(&nexus, 1).await;
        let began = Instant::now();
        bridge.kill().unwrap();
        until(&nexus, 0).await;
        gone.push(began.elapsed());
    }
    tell(
        "one that is killed: its call is cancelled after",
        &millis(median(gone)),
        "≤ 1 s",
    );
    for mut bridge in first.into_iter().chain(bridges) {
        let _ = bridge.kill();
        let _ = bridge.wait();
    }
}

/// Starts a bridge whose client has begun a session and listed the tools.
fn begin(command: &mut Command) -> Child {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let input = child.stdin.as_mut().unwrap();
    writeln!(input, "{HELLO}\n{LIST}").unwrap();
    let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    let is_list = |line: &String| line.contains("\"id\":2");
    assert!(lines.any(|line| is_list(&line.unwrap())));
    child
}

async fn until(nexus: &Nexus, calls: u32) {
    while nexus.daemon().status().await.unwrap().calls_in_flight != calls {
        sleep(Duration::from_millis(1)).await;
    }
}

async fn memory(nexus: &Nexus) -> u64 {
    nexus.daemon().status().await.unwrap().memory_bytes.unwrap()
}
