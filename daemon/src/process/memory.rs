//! How much memory the processes of servers take, with all they started: a server behind `npx` is two
//! or three processes, and the first of them is the smallest.

use std::collections::HashMap;

/// The resident memory of every process group, in bytes. It takes a look at every process of the
/// system: not for the thread that serves calls.
pub fn of_groups() -> HashMap<u32, u64> {
    #[cfg(target_os = "linux")]
    return count();
    #[cfg(not(target_os = "linux"))]
    HashMap::new()
}

#[cfg(target_os = "linux")]
fn count() -> HashMap<u32, u64> {
    let mut groups = HashMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let is_process = entry.file_name().as_encoded_bytes()[0].is_ascii_digit();
        if is_process
            && let Ok(stat) = std::fs::read_to_string(entry.path().join("stat"))
            && let Some((group, pages)) = read(&stat)
        {
            *groups.entry(group).or_default() += pages * rustix::param::page_size() as u64;
        }
    }
    groups
}

/// The group, and the pages that are resident.
#[cfg(target_os = "linux")]
fn read(stat: &str) -> Option<(u32, u64)> {
    // The name before it may hold anything. Then come the state, the parent, the group, ...
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let group = fields.nth(2)?.parse().ok()?;
    let pages = fields.nth(18)?.parse().ok()?;
    Some((group, pages))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_strange_name_does_not_confuse() {
        let stat =
            "42 (a) b) S 1 77 77 0 -1 4194560 100 0 0 0 0 0 0 0 20 0 1 0 5000 1000000 321 18";
        assert_eq!(read(stat), Some((77, 321)));
    }

    #[test]
    fn a_group_is_counted_under_the_number_of_its_first() {
        use std::os::unix::process::CommandExt as _;
        let mut sleep = std::process::Command::new("sleep");
        let mut child = sleep.arg("600").process_group(0).spawn().unwrap();
        let group = child.id();
        assert!(of_groups()[&group] > 100_000);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
