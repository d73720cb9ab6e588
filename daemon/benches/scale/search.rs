//! Ten thousand tools: how fast some of them are found, and what that takes.

use crate::{
    hundred::memory,
    millis, percentile, search_corpus as corpus,
    support::{Home, servers, test_server},
    tell,
};
use serde_json::Value;
use std::{fs, time::Duration};
use tokio::time::Instant;

const TOOLS: usize = 10_000;
const ROUNDS: usize = 50;

pub(crate) async fn run() {
    let home = Home::new();
    let mut all = corpus::known();
    let known: usize = all.iter().map(|(_, tools)| tools.len()).sum();
    // Every test server has four of its own; none of them is looked for.
    all.extend(corpus::filler(TOOLS - known, 500));
    let config: Vec<_> = all
        .iter()
        .map(|(name, tools)| {
            let file = home.path().join(format!("{name}.json"));
            fs::write(&file, Value::from(tools.clone()).to_string()).unwrap();
            let server = test_server(&["--tools-file", file.to_str().unwrap()]);
            (name.as_str(), server)
        })
        .collect();
    home.configure(&servers(&config));
    let daemon = home.start();
    let nexus = daemon.client().await;
    let listed = nexus.tools().list().await.unwrap().tools.len();
    let before = memory(&nexus).await;
    let began = Instant::now();
    nexus.tools().search("anything", 10).await.unwrap();
    let first = began.elapsed();
    let after = memory(&nexus).await;

    let queries = corpus::queries();
    let mut right = 0;
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        for (query, expected) in &queries {
            let began = Instant::now();
            let found = nexus.tools().search(query, 10).await.unwrap();
            times.push(began.elapsed());
            if round == 0 {
                right += usize::from(found[0].tool.dotted() == *expected);
            }
        }
    }
    let mut floor: Vec<Duration> = Vec::new();
    for _ in 0..ROUNDS * 10 {
        let began = Instant::now();
        nexus.daemon().status().await.unwrap();
        floor.push(began.elapsed());
    }
    let servers = all.len();
    tell(
        &format!("search, {listed} tools of {servers} servers, over gRPC: p50"),
        &millis(percentile(&mut times, 50)),
        "≤ 2 ms",
    );
    tell("the same: p99", &millis(percentile(&mut times, 99)), "");
    tell(
        "status over gRPC, for comparison: p50",
        &millis(percentile(&mut floor, 50)),
        "",
    );
    tell(
        &format!("the right tool comes first, of {} queries", queries.len()),
        &right.to_string(),
        "all",
    );
    tell(
        "the first search, which makes the index",
        &millis(first),
        "",
    );
    tell("memory before the first search", &before, "");
    tell("memory after it", &after, "");
}
