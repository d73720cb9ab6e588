//! The records of starts, of executed calls and of cancelled ones, by which a test counts them.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{exit, id};

use crate::clock;

/// An open journal; several processes may append to one file.
pub(crate) struct Journal(File);

impl Journal {
    pub(crate) fn open(path: &Path) -> io::Result<Journal> {
        OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .map(Journal)
    }

    /// Records what happens to a call: the tool that executes it, or that it is cancelled.
    pub(crate) fn record(&self, what: &str, nonce: Option<&str>) {
        self.append(&line(clock::since_epoch().as_millis(), id(), what, nonce));
    }

    /// Records that the process has started.
    pub(crate) fn record_start(&self) {
        let (millis, pid) = (clock::since_epoch().as_millis(), id());
        self.append(&format!("{millis}\t{pid}\n"));
    }

    /// One write, so that lines of several processes never mix; a journal that misses lines would make every count
    /// wrong, so failing to write is fatal.
    fn append(&self, line: &str) {
        if let Err(error) = (&self.0).write_all(line.as_bytes()) {
            let _ = writeln!(
                io::stderr(),
                "nexus-test-server: cannot write the journal: {error}"
            );
            exit(1);
        }
    }
}

fn line(millis: u128, pid: u32, what: &str, nonce: Option<&str>) -> String {
    // A nonce comes from a client: it must not be able to forge a line.
    let nonce = nonce
        .filter(|nonce| !nonce.is_empty())
        .unwrap_or("-")
        .replace(char::is_control, " ");
    format!("{millis}\t{pid}\t{what}\t{nonce}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_one_line_of_four_fields() {
        assert_eq!(line(5, 42, "echo", Some("n-1")), "5\t42\techo\tn-1\n");
        assert_eq!(line(5, 42, "echo", None), "5\t42\techo\t-\n");
    }

    #[test]
    fn a_nonce_cannot_forge_a_line() {
        assert_eq!(
            line(5, 42, "echo", Some("a\n6\t1\tadd\tb")),
            "5\t42\techo\ta 6 1 add b\n"
        );
    }
}
