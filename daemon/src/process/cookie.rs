//! A mark in the environment of every server, which everything that it starts inherits. It finds what
//! has left its process group.

use std::hash::{BuildHasher as _, RandomState};

/// The variable that holds the mark.
pub(super) const VARIABLE: &str = "NEXUS_COOKIE";

/// A mark that nobody else has.
pub(super) fn mint() -> String {
    let random = || RandomState::new().hash_one(std::process::id());
    format!("{:016x}{:016x}", random(), random())
}

/// Ends every process of ours whose mark begins so, and tells how many there were. What it starts
/// meanwhile is found too: it looks until there is nothing left, or gives up.
#[cfg(target_os = "linux")]
pub(super) fn sweep(cookie: &str) -> usize {
    use rustix::process::{Pid, Signal, kill_process};
    let mut ended = 0;
    for _ in 0..20 {
        let marked = marked(cookie);
        if marked.is_empty() {
            break;
        }
        for pid in &marked {
            if let Some(pid) = Pid::from_raw(*pid) {
                // It may have ended by itself since.
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        ended += marked.len();
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    ended
}

/// Elsewhere the environment of others cannot be read.
#[cfg(not(target_os = "linux"))]
pub(super) fn sweep(_cookie: &str) -> usize {
    0
}

#[cfg(target_os = "linux")]
fn marked(cookie: &str) -> Vec<i32> {
    let mark = format!("{VARIABLE}={cookie}");
    let own = std::process::id().cast_signed();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|&pid| pid != own)
        // That of others cannot be read, and that of a zombie is empty.
        .filter(|pid| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment
                .split(|&byte| byte == 0)
                .any(|variable| variable.starts_with(mark.as_bytes()))
        })
        .collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn what_is_marked_is_found_and_nothing_else() {
        let cookie = mint();
        let start = |mark: &str| {
            let mut command = Command::new("sleep");
            command.arg("600").env(VARIABLE, mark).spawn().unwrap()
        };
        let mut ours = start(&format!("{cookie}.1"));
        let mut other = start(&mint());
        assert_eq!(sweep(&format!("{cookie}.2")), 0);
        assert!(sweep(&cookie) >= 1);
        assert!(!ours.wait().unwrap().success());
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
