//! What only some systems have: signals, systemd, the size of our memory.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::{raise_file_limit, signals};
#[cfg(windows)]
pub use windows::{raise_file_limit, signals};

pub mod systemd;

use std::{io, path::Path};

/// What the system wants of us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// Stop.
    Stop,
    /// Read the configuration again.
    Reload,
}

/// Our resident memory; 0 where the system does not tell.
pub fn memory_bytes() -> u64 {
    const PAGE: u64 = 4096;
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split_whitespace().nth(1);
    pages
        .and_then(|pages| pages.parse::<u64>().ok())
        .unwrap_or(0)
        * PAGE
}

/// A folder of the user's own.
pub fn make_private(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
