//! What a server leaves behind when it ends becomes ours (we are the "subreaper"), so that it can be
//! found, and is reaped when it ends: no zombies, also where the daemon is the first process of a
//! container and adopts everybody.

use parking_lot::{Mutex, MutexGuard};
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid,
};
use std::{collections::HashSet, io};

/// The children that somebody else waits for.
static OWN: Mutex<Option<HashSet<Pid>>> = Mutex::new(None);

/// Held while a child is started: it may end before its number is known.
#[derive(Debug)]
pub(super) struct Birth(MutexGuard<'static, Option<HashSet<Pid>>>);

/// A child is about to be started.
pub(super) fn expecting() -> Birth {
    Birth(OWN.lock())
}

impl Birth {
    /// It has this number, and somebody waits for it.
    pub(super) fn born(mut self, pid: Pid) {
        self.0.get_or_insert_default().insert(pid);
    }
}

/// Somebody has waited for this child.
pub(super) fn buried(pid: Pid) {
    if let Some(own) = OWN.lock().as_mut() {
        own.remove(&pid);
    }
}

/// Adopts strays from now on, and reaps them as they end.
pub fn start() -> io::Result<()> {
    use futures_util::StreamExt as _;
    set_child_subreaper(Some(getpid()))?;
    let mut deaths = signal_hook_tokio::Signals::new([signal_hook::consts::SIGCHLD])?;
    tokio::spawn(async move {
        while deaths.next().await.is_some() {
            reap();
        }
    });
    Ok(())
}

/// Ends every stray: the servers are gone, and what they left behind is of no use to anybody.
pub fn end_strays() {
    for pid in strays(&OWN.lock()) {
        tracing::info!(pid = pid.as_raw_nonzero(), "ended a stray");
        let _ = kill_process(pid, Signal::KILL);
    }
    reap();
}

fn strays(own: &Option<HashSet<Pid>>) -> impl Iterator<Item = Pid> {
    children().filter(|pid| !own.as_ref().is_some_and(|own| own.contains(pid)))
}

/// Reaps every stray that has ended.
fn reap() {
    // Held throughout: a child that is being started is not to be taken for a stray.
    let own = OWN.lock();
    for pid in strays(&own) {
        if let Ok(Some(_)) = waitpid(Some(pid), WaitOptions::NOHANG) {
            tracing::debug!(pid = pid.as_raw_nonzero(), "a stray has ended");
        }
    }
}

/// All our children, also those that were not started by us.
fn children() -> impl Iterator<Item = Pid> {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    threads.flatten().flat_map(|thread| {
        let list = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        let pids: Vec<Pid> = list
            .split_ascii_whitespace()
            .filter_map(|pid| Pid::from_raw(pid.parse().ok()?))
            .collect();
        pids
    })
}
