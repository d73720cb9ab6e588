//! What only some systems have: signals, managers of services, the size of our memory.

pub mod manager;
#[cfg(target_os = "linux")]
pub mod systemd;

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::{bind, raise_file_limit, signals};
#[cfg(windows)]
pub use windows::{bind, foreign_owner, raise_file_limit, service, signals};

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

/// Makes a folder of the user's own, and refuses one that others could meddle with.
pub fn make_private(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    check_private(folder)
}

/// Refuses a folder that others could meddle with.
pub fn check_private(folder: &Path) -> io::Result<()> {
    let meta = std::fs::symlink_metadata(folder)?;
    if !meta.is_dir() {
        return Err(io::Error::other(format!(
            "{} is no folder",
            folder.display()
        )));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let ours = rustix::process::geteuid().as_raw();
        if meta.uid() != ours || meta.mode() & 0o022 != 0 {
            let problem = format!("{} can be written by others", folder.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
        }
    }
    Ok(())
}

/// Writes a new file that is nobody else's, through to the disk.
pub fn write_through(path: &Path, text: &[u8]) -> io::Result<()> {
    use std::io::Write as _;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(text)?;
    file.sync_all()
}
