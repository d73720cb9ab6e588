//! Whether the system ended a process because memory ran out. It says so only by a counter of the
//! control group that we and our children are in.

use parking_lot::Mutex;
use std::fs;

/// How many such ends have been told of already.
static TOLD: Mutex<Option<u64>> = Mutex::new(None);

/// Remembers what was before the first process of ours was started.
pub(super) fn remember() {
    let mut told = TOLD.lock();
    if told.is_none() {
        *told = kills();
    }
}

/// Whether a process that was killed, and not by us, was killed for its memory. Each such end is told
/// once: the next one to be killed may have another reason.
pub(super) fn was_it() -> bool {
    let mut told = TOLD.lock();
    match (*told, kills()) {
        (Some(before), Some(now)) if now > before => {
            *told = Some(before + 1);
            true
        }
        _ => false,
    }
}

/// The counter, of either version of control groups.
fn kills() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let of = |line: &str| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let file = if controllers.is_empty() {
            format!("/sys/fs/cgroup{path}/memory.events")
        } else if controllers.split(',').any(|name| name == "memory") {
            format!("/sys/fs/cgroup/memory{path}/memory.oom_control")
        } else {
            return None;
        };
        counter(&fs::read_to_string(file).ok()?)
    };
    groups.lines().find_map(of)
}

fn counter(text: &str) -> Option<u64> {
    let value = |line: &str| line.strip_prefix("oom_kill ")?.trim().parse().ok();
    text.lines().find_map(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_read() {
        let second = "low 0\nhigh 0\nmax 3\noom 2\noom_kill 2\noom_group_kill 0\n";
        let first = "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n";
        assert_eq!((counter(second), counter(first)), (Some(2), Some(7)));
        assert_eq!(counter("oom_kill_disable 0\n"), None);
    }
}
