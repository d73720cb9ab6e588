//! A server that keeps ending: what it costs by itself, what its callers see, what the others see.

use crate::{
    millis, percentile,
    support::{Home, server_when, servers, test_server},
    tell,
};
use nexus_client::{Nexus, Reason, ServerState};
use serde_json::json;
use std::{fs, time::Duration};
use tokio::time::Instant;

const WATCHED: Duration = Duration::from_secs(60);
const CALLS: usize = 5000;

/// What the daemon and all its children that have ended have used of a processor.
fn processor(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, rest) = stat.rsplit_once(") ").unwrap();
    let ticks: u64 = rest
        .split(' ')
        .skip(11)
        .take(4)
        .map(|field| field.parse::<u64>().unwrap())
        .sum();
    Duration::from_millis(ticks * 10)
}

async fn good_calls(nexus: &Nexus) -> Vec<Duration> {
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let began = Instant::now();
        nexus
            .tools()
            .call("good.get_time", json!({}))
            .await
            .unwrap();
        times.push(began.elapsed());
    }
    times
}

pub(crate) async fn run() {
    let home = Home::new();
    home.configure(&servers(&[
        ("good", test_server(&[])),
        ("bad", test_server(&["--fault", "crash-start"])),
    ]));
    let daemon = home.start();
    let nexus = daemon.client().await;
    let began = Instant::now();
    server_when(&nexus, "bad", |s| s.state == ServerState::CrashLoop).await;

    let mut refused = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let began = Instant::now();
        let error = nexus.tools().call("bad.x", json!({})).await.unwrap_err();
        refused.push(began.elapsed());
        assert_eq!(error.reason(), Some(Reason::CrashLoop));
        assert!(error.to_string().contains("exit code 1"), "{error}");
    }
    let bar = "≤ 10 ms";
    tell(
        "crash loop: its callers fail after, p50",
        &millis(percentile(&mut refused, 50)),
        "",
    );
    tell(
        "crash loop: its callers fail after, max",
        &millis(percentile(&mut refused, 100)),
        bar,
    );

    // In turns, so that both see the same machine.
    let (mut beside, mut alone) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        nexus
            .servers()
            .start("bad", nexus_client::Wait::No)
            .await
            .unwrap();
        beside.extend(good_calls(&nexus).await);
        nexus
            .servers()
            .stop("bad", nexus_client::Wait::Done)
            .await
            .unwrap();
        alone.extend(good_calls(&nexus).await);
    }
    let (with, without) = (percentile(&mut beside, 99), percentile(&mut alone, 99));
    tell("a good server's p99 beside it", &millis(with), "");
    tell("and without it", &millis(without), "");
    let ratio = with.as_secs_f64() / without.as_secs_f64();
    tell("ratio", &format!("{ratio:.2}"), "about 1");

    nexus
        .servers()
        .start("bad", nexus_client::Wait::No)
        .await
        .unwrap();
    let (before, since) = (processor(daemon.child.id()), Instant::now());
    tokio::time::sleep(WATCHED.saturating_sub(began.elapsed().min(WATCHED / 2))).await;
    let used = processor(daemon.child.id()) - before;
    let share = used.as_secs_f64() / since.elapsed().as_secs_f64() * 100.0;
    tell(
        "crash loop from its first start: of a core",
        &format!("{share:.2} %"),
        "< 1 %",
    );
}
