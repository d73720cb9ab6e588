//! The record of what a client has written: by it a test checks all that was ever sent.

use std::fs::{File, OpenOptions, create_dir_all};
use std::io::Write as _;
use std::path::Path;
use std::process::id;

use crate::clock;

/// A file of this process's own. A record must never disturb what it records: no failure is told.
pub(crate) struct Wire(File);

impl Wire {
    pub(crate) fn open(folder: &Path) -> Option<Wire> {
        let name = format!("{}-{}.jsonl", id(), clock::since_epoch().as_millis());
        create_dir_all(folder).ok()?;
        OpenOptions::new()
            .append(true)
            .create(true)
            .open(folder.join(name))
            .ok()
            .map(Wire)
    }

    /// Takes down a line as it came, with its end. It is in the hands of the system then, and outlives us.
    pub(crate) fn line(&self, line: &[u8]) {
        let _ = (&self.0).write_all(line);
    }

    /// Takes down something that is needed to understand the lines. No message begins like it.
    pub(crate) fn note(&self, what: &str) {
        self.line(format!("# {what}\n").as_bytes());
    }
}
