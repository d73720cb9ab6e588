//! One server is killed again and again, under load.

use crate::{
    dice::Dice,
    history::Rules,
    options::Options,
    processes::Target,
    recovery::{Kill, Starts},
    report::Report,
    rest::{self, Holding},
    roster::Roster,
    storm,
    support::{Home, server_when},
};
use nexus_client::{ServerState, Wait};
use rustix::process::Signal;
use std::{sync::Arc, time::Duration};
use tokio::time::sleep;

pub(crate) async fn run(options: &Options) -> Vec<String> {
    let (rounds, clients) = if options.long { (200, 8) } else { (20, 4) };
    let home = Home::new();
    let roster = Roster::mixed(&home, 1);
    roster.configure(false);
    let mut daemon = home.start();
    let nexus = daemon.client().await;
    let starts = Starts::default();
    let watching = tokio::spawn(starts.clone().watch(nexus.clone()));
    if let Err(problem) = rest::all_ready(&nexus, 1).await {
        return vec![problem];
    }
    let names = roster.names();
    let (name, answers) = (names[0].as_str(), storm::learn(&nexus, &names).await);
    let before = Holding::of(&daemon);
    let mut load = storm::load(options.seed, daemon.home.socket(), answers, 0..=1000, false);
    load.patience = Duration::from_secs(20);
    let load = Arc::new(load);
    let clients = storm::spawn(&load, clients);

    let mut dice = Dice::new(options.seed, 0);
    let mut kills: Vec<Kill> = Vec::new();
    for _ in 0..rounds {
        let last = kills.last().map(|kill| kill.pid);
        let server = server_when(&nexus, name, |server| {
            server.state == ServerState::Ready && server.pid.is_some() && server.pid != last
        })
        .await;
        sleep(dice.millis(20..=60)).await;
        // Somebody wants it to run: that it ended before is forgiven, or this would be a crash loop.
        if let Err(error) = nexus.servers().start(name, Wait::No).await {
            return vec![format!("kill-server: {error}")];
        }
        let pid = server.pid.unwrap_or_default();
        let Some(target) = Target::child_of(daemon.child.id(), pid) else {
            continue;
        };
        let kill = Kill::now(name, pid, load.epoch.elapsed());
        if target.signal(Signal::KILL) {
            load.tally.count("kill -9");
            kills.push(kill);
        }
    }
    let last = kills.last().map(|kill| kill.pid);
    server_when(&nexus, name, |server| {
        server.state == ServerState::Ready && server.pid != last
    })
    .await;
    sleep(dice.millis(20..=60)).await;
    load.end();
    let (entries, stuck) = storm::gather(clients).await;
    watching.abort();
    let mut rest = rest::look(&mut daemon, nexus, &names, before).await;
    rest.problems.extend(stuck);
    Report {
        name: "kill-server",
        seed: options.seed,
        entries,
        executions: roster.executions(),
        rules: Rules {
            daemon_ends: false,
            deadlines: false,
        },
        tally: &load.tally,
        kills,
        starts: Some(starts),
        rest,
    }
    .print()
}
