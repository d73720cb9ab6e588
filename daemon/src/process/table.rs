//! The table of processes, as Linux tells it.

use std::fs;

/// The numbers of all processes.
pub(super) fn pids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// What the system says of one: its state, its parent, its group, and so on.
pub(super) fn fields(pid: i32) -> Option<Vec<String>> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn parse(stat: &str) -> Option<Vec<String>> {
    // The name before it may hold anything.
    let (_, rest) = stat.rsplit_once(')')?;
    Some(rest.split_ascii_whitespace().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strange_name_does_not_confuse() {
        let fields = parse("42 (a) b) S 1 77 77 0").unwrap();
        assert_eq!(fields[..3], ["S", "1", "77"]);
    }
}
