//! The record of executed calls, by which a test counts them.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

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

    /// Records that a call is executed; one write, so that lines of several processes never mix.
    pub(crate) fn record(&self, tool: &str, nonce: Option<&str>) -> io::Result<()> {
        let line = line(
            clock::since_epoch().as_millis(),
            std::process::id(),
            tool,
            nonce,
        );
        (&self.0).write_all(line.as_bytes())
    }
}

fn line(millis: u128, pid: u32, tool: &str, nonce: Option<&str>) -> String {
    // A nonce comes from a client: it must not be able to forge a line.
    let nonce = nonce
        .filter(|nonce| !nonce.is_empty())
        .unwrap_or("-")
        .replace(char::is_control, " ");
    format!("{millis}\t{pid}\t{tool}\t{nonce}\n")
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
