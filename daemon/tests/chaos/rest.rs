//! After the load: everything is as it was before, and in the end nothing is left.

use crate::{
    processes::{self, Target},
    support::Daemon,
};
use nexus_client::{Nexus, Reason, ServerState, Wait};
use rustix::process::Signal;
use serde_json::json;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long anything may take to come to rest.
const PATIENCE: Duration = Duration::from_secs(20);

/// A file or two may be open for a moment only.
const FD_SLACK: i64 = 4;

/// What the daemon holds while nothing happens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Holding {
    files: i64,
    memory: f64,
    /// It, and all that it started.
    processes: i64,
}

impl Holding {
    pub(crate) fn of(daemon: &Daemon) -> Self {
        let pid = daemon.child.id();
        Self {
            files: processes::open_files(pid),
            memory: processes::memory(pid),
            processes: processes::of_home(daemon.home.path(), None).len() as i64,
        }
    }
}

/// How a run ended.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    pub(crate) in_flight: u32,
    /// Calls whose caller has gone and on which a server still works.
    pub(crate) uncancelled: usize,
    pub(crate) zombies: usize,
    pub(crate) orphans: usize,
    pub(crate) fd_delta: i64,
    /// More than before are strays.
    pub(crate) process_delta: i64,
    pub(crate) rss_delta: f64,
    pub(crate) problems: Vec<String>,
}

/// Waits until all servers are ready, and starts those that nobody else would.
pub(crate) async fn all_ready(nexus: &Nexus, n: usize) -> Result<(), String> {
    let started = Instant::now();
    loop {
        let servers = nexus.servers().list().await;
        let servers = servers.map_err(|error| error.to_string())?;
        let mut waiting = Vec::new();
        for server in &servers {
            match server.state {
                ServerState::Ready | ServerState::Degraded => continue,
                ServerState::CrashLoop
                | ServerState::Backoff
                | ServerState::Failed
                | ServerState::Stopped => {
                    let _ = nexus.servers().start(&server.name, Wait::No).await;
                }
                _ => {}
            }
            waiting.push(format!("{} ({})", server.name, server.state));
        }
        if waiting.is_empty() && servers.len() == n {
            return Ok(());
        }
        if started.elapsed() > PATIENCE {
            return Err(format!("not ready: {}", waiting.join(", ")));
        }
        sleep(Duration::from_millis(10)).await;
    }
}

/// Looks at everything when the load is over, ends the daemon, and looks at what is left.
pub(crate) async fn look(
    daemon: &mut Daemon,
    nexus: Nexus,
    servers: &[String],
    before: Holding,
) -> Rest {
    let mut rest = Rest::default();
    rest.problems
        .extend(all_ready(&nexus, servers.len()).await.err());
    for server in servers {
        let call = || {
            let sum = format!("{server}.add");
            let call = nexus.tools().call(sum, json!({"a": 1, "b": 1}));
            call.timeout(Duration::from_secs(10)).into_future()
        };
        let mut answer = call().await;
        // Some die in every so-manieth call, and this may have been it.
        if matches!(&answer, Err(error) if error.reason() == Some(Reason::ServerExited)) {
            answer = call().await;
        }
        match answer {
            Ok(sum) if sum.text() == "2" => {}
            other => rest
                .problems
                .push(format!("at rest {server} answers {other:?}")),
        }
    }
    rest.problems
        .extend(all_ready(&nexus, servers.len()).await.err());
    let (pid, home) = (daemon.child.id(), daemon.home.path().to_owned());
    let started = Instant::now();
    loop {
        let status = nexus.daemon().status().await;
        let of_servers = nexus.servers().list().await.unwrap_or_default();
        let waiting: u32 = of_servers.iter().map(|server| server.in_flight).sum();
        rest.in_flight = status.map_or(u32::MAX, |status| status.calls_in_flight.max(waiting));
        let processes = processes::of_home(&home, None);
        rest.process_delta = processes.len() as i64 - before.processes;
        rest.uncancelled = processes
            .iter()
            .map(|pid| processes::calls_under_way(*pid))
            .sum();
        rest.zombies = processes::zombies(pid);
        rest.fd_delta = processes::open_files(pid) - before.files;
        let good = rest.in_flight == 0
            && rest.uncancelled == 0
            && rest.zombies == 0
            && rest.process_delta == 0;
        if good && rest.fd_delta.abs() <= FD_SLACK || started.elapsed() > PATIENCE {
            break;
        }
        sleep(Duration::from_millis(20)).await;
    }
    rest.rss_delta = processes::memory(pid) - before.memory;
    drop(nexus);
    daemon.signal(Signal::TERM);
    match ended(daemon).await {
        Some(true) => {}
        Some(false) => rest.problems.push("the daemon did not end well".to_owned()),
        None => rest.problems.push("the daemon does not end".to_owned()),
    }
    rest.orphans = left(&home).await;
    let bad = [
        (rest.in_flight > 0, "calls are still under way"),
        (
            rest.uncancelled > 0,
            "a server works on a call whose caller has gone",
        ),
        (rest.zombies > 0, "the daemon has zombies"),
        (
            rest.fd_delta.abs() > FD_SLACK,
            "the daemon has other files open than before",
        ),
        (
            rest.process_delta != 0,
            "there are other processes than before",
        ),
        (rest.orphans > 0, "processes were left behind"),
    ];
    for (_, problem) in bad.iter().filter(|(is_so, _)| *is_so) {
        rest.problems.push((*problem).to_owned());
    }
    rest
}

/// Waits for the end of the daemon; whether it was a good one.
async fn ended(daemon: &mut Daemon) -> Option<bool> {
    let started = Instant::now();
    while started.elapsed() < PATIENCE {
        if let Some(status) = daemon.child.try_wait().unwrap() {
            return Some(status.success());
        }
        sleep(Duration::from_millis(5)).await;
    }
    None
}

/// How many processes of a home are left, which are then ended. One that was just killed has a moment
/// to go.
pub(crate) async fn left(home: &std::path::Path) -> usize {
    let started = Instant::now();
    loop {
        let left = processes::of_home(home, None);
        if left.is_empty() || started.elapsed() > Duration::from_secs(1) {
            for pid in &left {
                if let Some(stray) = Target::of(*pid)
                    && processes::of_home(home, None).contains(pid)
                {
                    stray.signal(Signal::KILL);
                }
            }
            return left.len();
        }
        sleep(Duration::from_millis(10)).await;
    }
}
