//! Running `nexusctl`, and a daemon of its own for each test.

use serde_json::Value;
use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

#[cfg(unix)]
pub(crate) use daemon::{Daemon, at_home};
#[cfg(unix)]
pub(crate) use fake::Fake;
#[cfg(unix)]
pub(crate) use terminal::Terminal;

#[cfg(unix)]
mod daemon;
#[cfg(unix)]
mod fake;
#[cfg(unix)]
mod terminal;

/// The binary under test, with nothing of the environment that could change what it does.
pub(crate) fn nexusctl() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nexusctl"));
    for name in ["NEXUS_SOCKET", "NO_COLOR", "CLICOLOR_FORCE", "CLICOLOR"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    pub(crate) fn of(command: &mut Command) -> Self {
        command.output().unwrap().into()
    }

    pub(crate) fn with_input(command: &mut Command, input: &str) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        drop(stdin);
        child.wait_with_output().unwrap().into()
    }

    /// The output of a run that must have worked.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.stdout
    }

    #[track_caller]
    pub(crate) fn json(self) -> Value {
        serde_json::from_str(&self.ok()).unwrap()
    }

    /// What stderr says of a run that must have failed, and said nothing on stdout.
    #[track_caller]
    pub(crate) fn error(self, code: i32) -> String {
        assert_eq!((self.code, self.stdout.as_str()), (code, ""), "{self:?}");
        self.stderr
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// A binary of this workspace that Cargo builds, but not for the tests of this crate alone.
pub(crate) fn neighbour(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_nexusctl")).with_file_name(name);
    assert!(
        path.exists(),
        "{} is missing: run `cargo build --workspace` first",
        path.display()
    );
    path
}
