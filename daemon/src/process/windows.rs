//! Windows: no window, and a job object of its own.

mod exit;
mod job;
pub mod keeper;
mod table;
#[cfg(test)]
mod tests;

use super::command::SpawnSpec;
use job::Job;
use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read as _},
    os::windows::io::BorrowedHandle,
    path::Path,
    process::Stdio,
};
use tokio::process::{Child, Command};
use windows_sys::Win32::System::Threading::{
    CREATE_NEW_PROCESS_GROUP, CREATE_NO_WINDOW, CREATE_SUSPENDED,
};

pub(super) use exit::describe_exit;
pub use table::processes;

/// What the system starts by itself, batch files with the help of std. All else needs a program that is
/// named as the command.
const STARTABLE: [&str; 4] = [".com", ".exe", ".bat", ".cmd"];

/// A process and all that it starts. What leaves the console or the parent does not leave the job.
#[derive(Debug)]
pub(super) struct Group {
    job: Job,
}

impl Group {
    /// There is no polite way here: the closed input, which came before, has to do.
    ///
    /// `GenerateConsoleCtrlEvent` reaches only those on the caller's own console. A process without a
    /// window has a console of its own; to go there the daemon would have to leave the one that it logs
    /// to. And for a window message there is no window.
    pub(super) fn terminate(&self) {}

    pub(super) fn kill(&self) {
        self.job.terminate();
    }

    /// The job is a handle, not a number: it is never another's.
    pub(super) fn forget(&self) {}

    /// Nothing leaves a job.
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
        // Suspended: it does nothing before it is in the job. The group is so that a Ctrl-C for the
        // daemon is not for it too.
        .creation_flags(CREATE_NEW_PROCESS_GROUP | CREATE_NO_WINDOW | CREATE_SUSPENDED)
        .kill_on_drop(true);
    if let Some(cwd) = &spec.cwd {
        command.current_dir(cwd);
    }
    let job = Job::new()?;
    // Where the next lines fail, the child is dropped, and that ends it.
    let child = command.spawn()?;
    let ended = || io::Error::other("the process has ended already");
    let handle = child.raw_handle().ok_or_else(ended)?;
    // SAFETY: the child is not waited for, so its handle is open for the length of the call.
    #[expect(unsafe_code, reason = "tokio lends the number of the handle only")]
    job.take_in(unsafe { BorrowedHandle::borrow_raw(handle) })?;
    Ok((child, Group { job }))
}

/// A process that ended by itself says no more than one that was ended.
pub(super) use exit::describe_exit as describe_end;

/// The endings that make a name the name of a program, in the order in which they are tried.
pub(super) fn endings(pathext: Option<&OsStr>) -> Vec<String> {
    let listed = pathext.unwrap_or_default().to_string_lossy();
    let listed = listed.split(';').map(str::trim);
    let listed: Vec<String> = listed
        .filter(|ending| ending.len() > 1 && ending.starts_with('.'))
        .map(str::to_ascii_lowercase)
        .collect();
    if listed.is_empty() {
        return STARTABLE.map(str::to_owned).to_vec();
    }
    listed
}

/// Whether the system can start it. PATHEXT also lists scripts, which it cannot, and `npm` puts a shell
/// script `npx` beside `npx.cmd`; yet a program may have any name, and is known by its first bytes.
pub(super) fn is_executable(path: &Path) -> bool {
    let name = path.as_os_str().to_string_lossy().to_ascii_lowercase();
    if STARTABLE.iter().any(|ending| name.ends_with(ending)) {
        return true;
    }
    let mut magic = [0; 2];
    File::open(path).is_ok_and(|mut file| file.read_exact(&mut magic).is_ok()) && magic == *b"MZ"
}
