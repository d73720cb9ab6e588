//! The daemon is killed again and again, under load: nothing of it is left, and the next one is there.

use crate::{
    dice::Dice,
    history::Rules,
    options::Options,
    processes::{self, Identity},
    recovery::quantile,
    report::Report,
    rest::{self, Rest},
    roster::Roster,
    storm,
    support::{Daemon, Home},
};
use rustix::process::Signal;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};
use tokio::time::{Instant, sleep};

/// What is promised.
const PROMISED: Duration = Duration::from_secs(2);

/// What is a failure, on a machine however busy.
const TOO_LONG: Duration = Duration::from_secs(10);

/// In the environment of the servers: which daemon started them.
const MARK: &str = "CHAOS_ROUND";

pub(crate) async fn run(options: &Options) -> Vec<String> {
    let (rounds, servers, clients) = if options.long {
        (20, 20, 40)
    } else {
        (3, 6, 10)
    };
    let home = Home::new();
    let path = home.path().to_owned();
    let mut roster = Roster::stubborn(&home, servers);
    configure(&mut roster, 0);
    let mut daemon = home.start();
    let nexus = daemon.client().await;
    if let Err(problem) = rest::all_ready(&nexus, servers).await {
        return vec![problem];
    }
    let answers = storm::learn(&nexus, &roster.names()).await;
    drop(nexus);
    let load = storm::load(
        options.seed,
        daemon.home.socket(),
        answers,
        0..=20_000,
        false,
    );
    let load = Arc::new(load);
    let clients = storm::spawn(&load, clients);

    let mut dice = Dice::new(options.seed, 0);
    let mut rest = Rest::default();
    let (mut gone, mut back) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        let ready = rest::all_ready(&daemon.client().await, servers).await;
        rest.problems.extend(ready.err());
        sleep(dice.millis(100..=300)).await;
        let killed = Instant::now();
        let watch = kill(&mut daemon, &path, round - 1);
        configure(&mut roster, round);
        load.tally.count("kill -9 of the daemon");
        // At once, while the last of the old one are still going.
        let home = std::mem::replace(&mut daemon.home, Home::new());
        daemon = home.start();
        match daemon.client().await.ping().await {
            Ok(_) => back.push(killed.elapsed()),
            Err(error) => rest.problems.push(format!("the next daemon: {error}")),
        }
        gone.extend(watch.join().unwrap());
    }
    load.end();
    let (entries, stuck) = storm::gather(clients).await;
    rest.problems.extend(stuck);
    let watch = kill(&mut daemon, &path, rounds);
    gone.extend(watch.join().unwrap());
    rest.orphans = rest::left(&path).await;
    if rest.orphans > 0 || gone.len() <= rounds {
        let text = format!("processes outlived their daemon by more than {TOO_LONG:?}");
        rest.problems.push(text);
    }
    let problems = Report {
        name: "kill-daemon",
        seed: options.seed,
        entries,
        executions: roster.executions(),
        rules: Rules {
            daemon_ends: true,
            deadlines: true,
        },
        tally: &load.tally,
        kills: Vec::new(),
        starts: None,
        rest,
    }
    .print();
    let longest = |times: &mut Vec<Duration>| quantile(times, 1.0).unwrap_or_default();
    let median = |times: &mut Vec<Duration>| quantile(times, 0.5).unwrap_or_default();
    let verdict = if gone.len() > rounds && longest(&mut gone) <= PROMISED {
        "PASS"
    } else {
        "FAIL"
    };
    println!(
        "  {} kills: all gone after p50 {:.1?}, max {:.1?} (promised {PROMISED:?}: {verdict}); the next answers after \
         p50 {:.1?}, max {:.1?}",
        gone.len(),
        median(&mut gone),
        longest(&mut gone),
        median(&mut back),
        longest(&mut back),
    );
    problems
}

fn configure(roster: &mut Roster, round: usize) {
    roster.mark = Some((MARK.to_owned(), round.to_string()));
    roster.configure(false);
}

/// Kills the daemon, and measures how long what it started goes on.
fn kill(daemon: &mut Daemon, home: &Path, round: usize) -> thread::JoinHandle<Option<Duration>> {
    let children = processes::children(daemon.child.id());
    let killed = Instant::now();
    daemon.signal(Signal::KILL);
    daemon.ended();
    let home: PathBuf = home.to_owned();
    let mark = format!("{MARK}={round}");
    thread::spawn(move || {
        while killed.elapsed() < TOO_LONG {
            let children = children
                .iter()
                .copied()
                .filter(|child| Identity::is_alive(*child));
            if children.count() == 0 && processes::of_home(&home, Some(&mark)).is_empty() {
                return Some(killed.elapsed());
            }
            thread::sleep(Duration::from_millis(2));
        }
        None
    })
}
