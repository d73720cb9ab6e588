//! How soon a server answers again after it was killed, beside how long it takes to start.

use crate::history::{Entry, Execution, Outcome, What};
use nexus_client::{Nexus, ServerEvent, ServerState};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

/// A server that was killed.
#[derive(Debug, Clone)]
pub(crate) struct Kill {
    pub(crate) server: String,
    pub(crate) pid: u32,
    /// Since the begin of the run.
    pub(crate) at: Duration,
    pub(crate) unix_ms: u64,
}

impl Kill {
    pub(crate) fn now(server: &str, pid: u32, at: Duration) -> Self {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        Self {
            server: server.to_owned(),
            pid,
            at,
            unix_ms: now.as_millis() as u64,
        }
    }
}

/// The server and the time from its kill to the first result of a process that came after it. A kill
/// that nobody saw the end of has none. Pure.
pub(crate) fn recoveries<'a>(
    kills: &'a [Kill],
    entries: &'a [Entry],
    executions: &'a [Execution],
) -> Vec<(&'a str, Duration)> {
    let by_nonce: HashMap<&str, &Execution> =
        executions.iter().map(|e| (e.nonce.as_str(), e)).collect();
    let mut first_seen: HashMap<u32, u64> = HashMap::new();
    for execution in executions {
        let first = first_seen.entry(execution.pid).or_insert(u64::MAX);
        *first = execution.unix_ms.min(*first);
    }
    let mut results: HashMap<&str, Vec<(Duration, u32)>> = HashMap::new();
    for entry in entries {
        if let (What::Ended(Outcome::Ok(_)), Some(execution)) =
            (&entry.what, by_nonce.get(&*entry.nonce))
        {
            let of_server = results.entry(&execution.server).or_default();
            of_server.push((entry.at, execution.pid));
        }
    }
    for of_server in results.values_mut() {
        of_server.sort_unstable();
    }
    let recovery = |kill: &'a Kill| {
        let results = results.get(kill.server.as_str())?;
        let from = results.partition_point(|(at, _)| *at < kill.at);
        let (at, _) = results[from..].iter().find(|(_, pid)| {
            *pid != kill.pid && first_seen.get(pid).is_some_and(|&ms| ms >= kill.unix_ms)
        })?;
        Some((kill.server.as_str(), *at - kill.at))
    };
    kills.iter().filter_map(recovery).collect()
}

/// How long each server takes from its start to ready, as the daemon tells it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Starts(Arc<Mutex<HashMap<String, Vec<Duration>>>>);

impl Starts {
    /// Watches until the connection ends.
    pub(crate) async fn watch(self, nexus: Nexus) {
        let Ok(mut events) = nexus.servers().watch().await else {
            return;
        };
        let mut begun: HashMap<(String, u64), SystemTime> = HashMap::new();
        while let Some(Ok(event)) = events.next().await {
            let ServerEvent::Is(server) = event else {
                continue;
            };
            let (Some(since), which) = (server.state_since, (server.name, server.generation))
            else {
                continue;
            };
            match server.state {
                ServerState::Starting => drop(begun.insert(which, since)),
                ServerState::Ready => {
                    if let Some(begun) = begun.remove(&which)
                        && let Ok(took) = since.duration_since(begun)
                    {
                        self.0
                            .lock()
                            .unwrap()
                            .entry(which.0)
                            .or_default()
                            .push(took);
                    }
                }
                _ => {}
            }
        }
    }

    /// The median of a server's starts.
    pub(crate) fn of(&self, server: &str) -> Option<Duration> {
        let starts = self.0.lock().unwrap();
        quantile(&mut starts.get(server)?.clone(), 0.5)
    }
}

/// The value below which this part of all lies.
pub(crate) fn quantile<T: Copy + PartialOrd>(values: &mut [T], part: f64) -> Option<T> {
    values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    let last = values.len().checked_sub(1)?;
    Some(values[(last as f64 * part).round() as usize])
}
