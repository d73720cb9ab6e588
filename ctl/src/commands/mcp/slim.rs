//! There may be dozens of bridges, and each needs little of the program.

/// Gives back what only the start has needed of the program and its libraries. What is used again comes back by itself,
/// from where the system keeps it for all who run the same program.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "memory is given back by its address")]
pub(super) fn give_back() {
    use rustix::mm::{Advice, madvise};
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let code = maps.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (from, to) = words.next()?.split_once('-')?;
        // Code of a file: it is never written to.
        let is_code = words.next()? == "r-xp" && words.nth(3)?.starts_with('/');
        let address = |text| usize::from_str_radix(text, 16).ok();
        is_code.then_some((address(from)?, address(to)?))
    });
    for (from, to) in code {
        // SAFETY: it is ours, and unchanged: what is dropped is read from its file again.
        let _ = unsafe { madvise(from as *mut _, to - from, Advice::LinuxDontNeed) };
    }
}

/// Elsewhere it is the system's to decide.
#[cfg(not(target_os = "linux"))]
pub(super) fn give_back() {}
