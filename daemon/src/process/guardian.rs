//! A second process of the same binary that outlives the daemon for a moment, whatever ends it, and
//! takes with it what the daemon can no longer end: wrappers like `npx` and `sh -c` leave grandchildren,
//! which the death of their parent does not reach.
//!
//! It holds the other end of a pipe. The daemon writes which process groups there are; when the pipe
//! closes, they are ended, and so is everything that carries the daemon's mark.

use super::cookie;
use parking_lot::Mutex;
use rustix::{
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    process::{Pid, Signal, kill_process_group},
};
use std::{
    collections::BTreeSet,
    io::{self, BufRead as _, Write as _},
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Arc, OnceLock, atomic::AtomicBool},
};

/// The daemon's side.
#[derive(Debug)]
struct Guardian {
    cookie: String,
    side: Mutex<Side>,
}

#[derive(Debug)]
struct Side {
    child: Child,
    /// What it has been told, for the next one.
    groups: BTreeSet<i32>,
}

static GUARDIAN: OnceLock<Guardian> = OnceLock::new();

/// Starts the guardian of this process, once. `place` is what no two daemons have at the same time: what
/// an earlier daemon of that place left behind is ours to end.
pub fn start(place: &str) -> io::Result<()> {
    if GUARDIAN.get().is_some() {
        return Ok(());
    }
    let cookie = cookie::mint(place);
    let child = spawn(&cookie)?;
    let side = Side {
        child,
        groups: BTreeSet::new(),
    };
    GUARDIAN.get_or_init(|| Guardian {
        cookie,
        side: Mutex::new(side),
    });
    Ok(())
}

/// Ourselves, also when an upgrade has put another program in our place.
fn program() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") {
        return Ok("/proc/self/exe".into());
    }
    std::env::current_exe()
}

fn spawn(cookie: &str) -> io::Result<Child> {
    #[cfg(target_os = "linux")]
    let birth = super::reaper::expecting();
    let child = Command::new(program()?)
        .arg0("nexusd")
        .arg(crate::GUARDIAN)
        .arg(cookie)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // What ends the daemon from a terminal is not to end the guardian.
        .process_group(0)
        .spawn()?;
    #[cfg(target_os = "linux")]
    birth.born(Pid::from_child(&child));
    if let Some(pipe) = &child.stdin {
        // A guardian that does not read must not stop the daemon.
        fcntl_setfl(pipe, fcntl_getfl(pipe)? | OFlags::NONBLOCK)?;
    }
    Ok(child)
}

/// Ends what an earlier daemon of this place left behind, if both it and its guardian were killed.
/// Whoever calls this holds the place. Tells how many there were.
pub fn sweep_leftovers(place: &str) -> usize {
    cookie::sweep_others(place, cookie())
}

/// The mark of everything that this daemon starts.
pub(super) fn cookie() -> Option<&'static str> {
    GUARDIAN.get().map(|guardian| guardian.cookie.as_str())
}

/// There is a process group to be ended if the daemon cannot.
pub(super) fn watch(group: Pid) {
    tell(group, |side, group| {
        side.groups.insert(group);
        side.write(&format!("+{group}\n"))
    });
}

/// A process group has gone.
pub(super) fn forget(group: Pid) {
    tell(group, |side, group| {
        side.groups.remove(&group);
        side.write(&format!("-{group}\n"))
    });
}

/// Lets the guardian go, and waits until it has, but not for ever.
pub fn release() {
    if let Some(guardian) = GUARDIAN.get() {
        let child = &mut guardian.side.lock().child;
        drop(child.stdin.take());
        for _ in 0..200 {
            if !matches!(child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}

fn tell(group: Pid, news: impl FnOnce(&mut Side, i32) -> io::Result<()>) {
    let Some(guardian) = GUARDIAN.get() else {
        return;
    };
    let mut side = guardian.side.lock();
    let told = news(&mut side, group.as_raw_nonzero().get());
    let told = match told {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => side.replace(&guardian.cookie),
        told => told,
    };
    if let Err(error) = told {
        tracing::warn!(%error, "the guardian does not listen");
    }
}

impl Side {
    fn write(&mut self, lines: &str) -> io::Result<()> {
        match &mut self.child.stdin {
            Some(pipe) => pipe.write_all(lines.as_bytes()),
            // It was let go: we are about to end.
            None => Ok(()),
        }
    }

    /// Somebody has ended the guardian: there is another, which knows what that one knew.
    fn replace(&mut self, cookie: &str) -> io::Result<()> {
        let _ = self.child.wait();
        #[cfg(target_os = "linux")]
        super::reaper::buried(Pid::from_child(&self.child));
        self.child = spawn(cookie)?;
        tracing::warn!(
            pid = self.child.id(),
            "the guardian was gone: there is another"
        );
        let all: String = self
            .groups
            .iter()
            .map(|group| format!("+{group}\n"))
            .collect();
        self.write(&all)
    }
}

/// The guardian's side: waits for the daemon to end, and ends what it left.
pub fn run(cookie: &str) -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    for signal in [SIGTERM, SIGINT, SIGHUP, SIGQUIT] {
        // Only the end of the daemon ends it.
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    let mut groups = BTreeSet::new();
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let group = line.get(1..).and_then(|number| number.parse::<i32>().ok());
        match (line.as_bytes().first(), group) {
            (Some(b'+'), Some(group)) => groups.insert(group),
            (Some(b'-'), Some(group)) => groups.remove(&group),
            _ => false,
        };
    }
    for group in groups.into_iter().filter_map(Pid::from_raw) {
        // It fails when nobody is left.
        let _ = kill_process_group(group, Signal::KILL);
    }
    cookie::sweep(cookie);
    Ok(())
}
