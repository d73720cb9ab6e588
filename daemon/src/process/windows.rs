//! Windows: no window, and a group of its own.

use super::command::SpawnSpec;
use std::{
    env, io,
    path::Path,
    process::{ExitStatus, Stdio},
};
use tokio::process::{Child, Command};

const CREATE_NEW_PROCESS_GROUP: u32 = 0x0000_0200;
const CREATE_NO_WINDOW: u32 = 0x0800_0000;

/// Tokio ends the process itself when it is dropped; what it started needs a job object.
#[derive(Debug)]
pub(super) struct Group;

impl Group {
    /// There is no polite signal for a process without a window.
    pub(super) fn terminate(&self) {}

    pub(super) fn kill(&self) {}

    pub(super) fn forget(&self) {}

    pub(super) fn sweep(&self) -> impl FnOnce() -> usize + Send + 'static {
        || 0
    }
}

pub(super) fn spawn(spec: &SpawnSpec, program: &Path) -> io::Result<(Child, Group)> {
    let mut command = Command::new(program);
    command
        .args(&spec.args)
        .env_clear()
        .envs(&spec.env)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .creation_flags(CREATE_NEW_PROCESS_GROUP | CREATE_NO_WINDOW)
        .kill_on_drop(true);
    if let Some(cwd) = &spec.cwd {
        command.current_dir(cwd);
    }
    Ok((command.spawn()?, Group))
}

/// How a process ended that we did not end.
pub(super) fn describe_end(status: ExitStatus) -> String {
    describe_exit(status)
}

pub(super) fn describe_exit(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("exit code {code}"),
        None => "an unknown end".to_owned(),
    }
}

pub(super) fn endings() -> Vec<String> {
    let listed = env::var("PATHEXT").unwrap_or_else(|_| ".COM;.EXE;.BAT;.CMD".to_owned());
    let listed = listed.split(';').filter(|ending| !ending.is_empty());
    std::iter::once(String::new())
        .chain(listed.map(str::to_ascii_lowercase))
        .collect()
}

pub(super) fn is_executable(_path: &Path) -> bool {
    true
}
