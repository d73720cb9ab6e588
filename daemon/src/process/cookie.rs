//! A mark in the environment of every server, which everything that it starts inherits. It finds what
//! has left its process group.

#[cfg(target_os = "linux")]
use super::table;
use std::hash::{BuildHasher as _, RandomState};

/// The variable that holds the mark.
pub(super) const VARIABLE: &str = "NEXUS_COOKIE";

/// A mark that nobody else has. It begins with the place of the daemon.
pub(super) fn mint(place: &str) -> String {
    let random = || RandomState::new().hash_one(std::process::id());
    format!("{}{:016x}{:016x}", of_place(place), random(), random())
}

/// The part of the mark that all daemons of one place share, one after the other.
fn of_place(place: &str) -> String {
    format!("{:016x}-", stable_hash(place.as_bytes()))
}

/// Ends every process of ours whose mark begins so, and tells how many there were. What it starts
/// meanwhile is found too: it looks until there is nothing left, or gives up.
#[cfg(target_os = "linux")]
pub(super) fn sweep(cookie: &str) -> usize {
    end_all(|| marked(|mark| mark.starts_with(cookie)))
}

/// Ends every process that an earlier daemon of this place has marked: `own` is the present one's mark.
/// We may have been started by such a process ourselves: who leads to us is spared.
#[cfg(target_os = "linux")]
pub(super) fn sweep_others(place: &str, own: Option<&str>) -> usize {
    let place = of_place(place);
    let spared = ancestors();
    end_all(|| {
        let mut found = marked(|mark| {
            mark.starts_with(&place) && !own.is_some_and(|own| mark.starts_with(own))
        });
        found.retain(|pid| !spared.contains(pid));
        found
    })
}

#[cfg(target_os = "linux")]
fn end_all(find: impl Fn() -> Vec<i32>) -> usize {
    use rustix::process::{Pid, Signal, kill_process};
    let mut ended = std::collections::HashSet::new();
    for _ in 0..20 {
        let found = find();
        if found.is_empty() {
            break;
        }
        for pid in found {
            if let Some(pid) = Pid::from_raw(pid) {
                // It may have ended by itself since.
                let _ = kill_process(pid, Signal::KILL);
            }
            ended.insert(pid);
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    ended.len()
}

/// We, who started us, who started that, and so on.
#[cfg(target_os = "linux")]
fn ancestors() -> Vec<i32> {
    let mut found = vec![std::process::id().cast_signed()];
    while let Some(&pid) = found.last()
        && let Some(fields) = table::fields(pid)
        && let Some(parent) = fields.get(1).and_then(|parent| parent.parse().ok())
        && parent > 0
    {
        found.push(parent);
    }
    found
}

/// The same in every run: FNV-1a.
fn stable_hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Elsewhere the environment of others cannot be read.
#[cfg(not(target_os = "linux"))]
pub(super) fn sweep(_cookie: &str) -> usize {
    0
}

/// Elsewhere the environment of others cannot be read.
#[cfg(not(target_os = "linux"))]
pub(super) fn sweep_others(_place: &str, _own: Option<&str>) -> usize {
    0
}

/// Every process but us whose mark is wanted.
#[cfg(target_os = "linux")]
fn marked(wanted: impl Fn(&str) -> bool) -> Vec<i32> {
    let variable = format!("{VARIABLE}=");
    let own = std::process::id().cast_signed();
    table::pids()
        .filter(|&pid| pid != own)
        // That of others cannot be read, and that of a zombie is empty.
        .filter(|pid| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment
                .split(|&byte| byte == 0)
                .filter_map(|line| line.strip_prefix(variable.as_bytes()))
                .any(|mark| str::from_utf8(mark).is_ok_and(&wanted))
        })
        .collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn what_is_marked_is_found_and_nothing_else() {
        let cookie = mint("here");
        let start = |mark: &str| {
            let mut command = Command::new("sleep");
            command.arg("600").env(VARIABLE, mark).spawn().unwrap()
        };
        let mut ours = start(&format!("{cookie}.1"));
        let mut other = start(&mint("here"));
        assert_eq!(sweep(&format!("{cookie}.2")), 0);
        assert!(sweep(&cookie) >= 1);
        assert!(!ours.wait().unwrap().success());
        assert!(other.try_wait().unwrap().is_none());
        // The next daemon of the place finds what the first has left, and spares its own.
        let mut elsewhere = start(&mint("there"));
        let mut own = start(&format!("{cookie}.3"));
        assert_eq!(sweep_others("here", Some(&cookie)), 1);
        assert!(!other.wait().unwrap().success());
        for spared in [&mut elsewhere, &mut own] {
            assert!(spared.try_wait().unwrap().is_none());
            spared.kill().unwrap();
            spared.wait().unwrap();
        }
    }

    #[test]
    fn the_ancestors_lead_up_from_here() {
        let found = ancestors();
        assert_eq!(found[0], std::process::id().cast_signed());
        assert_eq!(
            found.get(1),
            rustix::process::getppid()
                .map(|p| p.as_raw_nonzero().get())
                .as_ref()
        );
    }
}
