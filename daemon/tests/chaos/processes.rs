//! What `/proc` says of the daemon and of what it started, and signals that reach nobody else.

use rustix::{
    fd::OwnedFd,
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};
use std::{fs, path::Path};

/// A process that is surely the one that was meant: its number may become another's, this does not.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) pid: u32,
    handle: OwnedFd,
}

impl Target {
    pub(crate) fn of(pid: u32) -> Option<Self> {
        let handle = pidfd_open(Pid::from_raw(pid.cast_signed())?, PidfdFlags::empty()).ok()?;
        Some(Self { pid, handle })
    }

    /// A process that is a child of this daemon, and alive.
    pub(crate) fn child_of(daemon: u32, pid: u32) -> Option<Self> {
        let target = Self::of(pid)?;
        // Looked at after it was opened: what is found now is what will be signalled.
        let stat = Stat::of(pid)?;
        (stat.parent == daemon && stat.state != 'Z').then_some(target)
    }

    /// False if it has ended.
    pub(crate) fn signal(&self, signal: Signal) -> bool {
        pidfd_send_signal(&self.handle, signal).is_ok()
    }
}

/// The beginning of `/proc/PID/stat`.
struct Stat {
    state: char,
    parent: u32,
    started: u64,
}

impl Stat {
    fn of(pid: u32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
        Some(Self {
            state: fields.next()?.chars().next()?,
            parent: fields.next()?.parse().ok()?,
            started: fields.nth(17)?.parse().ok()?,
        })
    }
}

/// A process, told from a later one with its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    pid: u32,
    started: u64,
}

impl Identity {
    pub(crate) fn is_alive(self) -> bool {
        Stat::of(self.pid).is_some_and(|stat| stat.started == self.started && stat.state != 'Z')
    }
}

fn all() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The children of a process that live.
pub(crate) fn children(parent: u32) -> Vec<Identity> {
    let child = |pid| {
        let stat = Stat::of(pid)?;
        let started = stat.started;
        (stat.parent == parent && stat.state != 'Z').then_some(Identity { pid, started })
    };
    all().filter_map(child).collect()
}

/// How many children have ended and were not looked at.
pub(crate) fn zombies(parent: u32) -> usize {
    all()
        .filter_map(Stat::of)
        .filter(|stat| stat.parent == parent && stat.state == 'Z')
        .count()
}

/// Everything that runs with this home and, if one is given, this variable. A zombie has neither.
pub(crate) fn of_home(home: &Path, variable: Option<&str>) -> Vec<u32> {
    let home = format!("HOME={}", home.display());
    let has = |environment: &[u8], wanted: &str| {
        let mut variables = environment.split(|byte| *byte == 0);
        variables.any(|variable| variable == wanted.as_bytes())
    };
    all()
        .filter(|pid| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            has(&environment, &home) && variable.is_none_or(|wanted| has(&environment, wanted))
        })
        .collect()
}

pub(crate) fn open_files(pid: u32) -> i64 {
    let files = fs::read_dir(format!("/proc/{pid}/fd"));
    files.map_or(0, |files| files.count() as i64)
}

/// The resident memory, in MB.
pub(crate) fn memory(pid: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or_default() / 1024.0
}

/// How many threads of a test server are at work on a call.
pub(crate) fn calls_under_way(pid: u32) -> usize {
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let names = threads.into_iter().flatten().flatten().map(|thread| {
        let name = fs::read_to_string(thread.path().join("comm"));
        name.unwrap_or_default()
    });
    names.filter(|name| name.trim_end() == "call").count()
}
