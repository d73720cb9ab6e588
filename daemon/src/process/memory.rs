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
    let page = rustix::param::page_size() as u64;
    let mut groups = HashMap::new();
    for pid in super::table::pids() {
        let fields = super::table::fields(pid).unwrap_or_default();
        let number = |field: usize| fields.get(field)?.parse::<u64>().ok();
        if let (Some(group), Some(pages)) = (number(2), number(21))
            && let Ok(group) = u32::try_from(group)
        {
            *groups.entry(group).or_default() += pages * page;
        }
    }
    groups
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_counted_under_the_number_of_its_first() {
        use std::os::unix::process::CommandExt as _;
        let mut sleep = std::process::Command::new("sleep");
        let mut child = sleep.arg("600").process_group(0).spawn().unwrap();
        let group = child.id();
        // It has just begun, and may have little yet.
        let counted = (0..1000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            of_groups()[&group] > 100_000
        });
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(counted);
    }
}
