//! Everything at once.

use crate::{
    client::{Answers, Client, Load},
    history::{Entry, Rules},
    injector::Injector,
    options::Options,
    processes::Target,
    recovery::Starts,
    report::{Report, Tally},
    rest::{self, Holding},
    roster::Roster,
    support::Home,
};
use nexus_client::Nexus;
use std::{
    collections::HashMap,
    ops::RangeInclusive,
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};
use tokio::{
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, timeout},
};

/// How long a call may take whose client has nothing else in mind.
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) async fn run(options: &Options) -> Vec<String> {
    let (servers, clients, seconds) = if options.long {
        (20, 200, 60)
    } else {
        (5, 20, 4)
    };
    // Calls and faults, each with a pause between two of about this.
    let (call, fault) = if options.long {
        (0..=120_000, 10..=80)
    } else {
        (0..=10_000, 20..=80)
    };
    let home = Home::new();
    let roster = Roster::mixed(&home, servers);
    roster.configure(false);
    let mut daemon = home.start();
    let nexus = daemon.client().await;
    let starts = Starts::default();
    let watching = tokio::spawn(starts.clone().watch(nexus.clone()));
    if let Err(problem) = rest::all_ready(&nexus, servers).await {
        return vec![problem];
    }
    let answers = learn(&nexus, &roster.names()).await;
    let before = Holding::of(&daemon);
    let load = Arc::new(load(
        options.seed,
        daemon.home.socket(),
        answers,
        call,
        true,
    ));

    let clients = spawn(&load, clients);
    let until = Instant::now() + Duration::from_secs(seconds);
    let handle = Target::of(daemon.child.id()).unwrap();
    let injector = Injector::new(nexus.clone(), handle, roster.clone(), Arc::clone(&load));
    let (kills, problems) = injector.run(until, fault).await;
    load.end();
    let (entries, stuck) = gather(clients).await;
    watching.abort();
    let mut rest = rest::look(&mut daemon, nexus, &roster.names(), before).await;
    rest.problems.extend(problems);
    rest.problems.extend(stuck);
    Report {
        name: "chaos",
        seed: options.seed,
        entries,
        executions: roster.executions(),
        rules: Rules {
            daemon_ends: false,
            deadlines: true,
        },
        tally: &load.tally,
        kills,
        starts: Some(starts),
        rest,
    }
    .print()
}

/// How each server writes its answers.
pub(crate) async fn learn(nexus: &Nexus, servers: &[String]) -> HashMap<String, Answers> {
    let mut answers = HashMap::new();
    for server in servers {
        let learned = Answers::learn(nexus, server).await.unwrap();
        answers.insert(server.clone(), learned);
    }
    answers
}

pub(crate) fn load(
    seed: u64,
    socket: PathBuf,
    answers: HashMap<String, Answers>,
    pause: RangeInclusive<u64>,
    rough: bool,
) -> Load {
    let mut servers: Vec<String> = answers.keys().cloned().collect();
    servers.sort_unstable();
    Load {
        socket,
        servers,
        answers,
        pause,
        patience: PATIENCE,
        rough,
        epoch: Instant::now(),
        seed,
        stop: AtomicBool::new(false),
        tally: Tally::default(),
        large: Semaphore::new(1),
    }
}

pub(crate) fn spawn(load: &Arc<Load>, clients: u32) -> JoinSet<Vec<Entry>> {
    (0..clients)
        .map(|number| Client::new(load, number).run())
        .collect()
}

/// What the clients wrote down. Each of their calls has a deadline, so they end; one that does not is a
/// call without an outcome.
pub(crate) async fn gather(mut clients: JoinSet<Vec<Entry>>) -> (Vec<Entry>, Vec<String>) {
    let (mut entries, mut problems) = (Vec::new(), Vec::new());
    let all = timeout(Duration::from_secs(30), async {
        while let Some(log) = clients.join_next().await {
            match log {
                Ok(log) => entries.extend(log),
                Err(error) => problems.push(format!("a client ended: {error}")),
            }
        }
    });
    if all.await.is_err() {
        let n = clients.len();
        problems.push(format!(
            "Lost: {n} clients wait for an outcome that does not come"
        ));
    }
    (entries, problems)
}
