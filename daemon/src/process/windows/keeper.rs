//! What Windows starts when a user logs on: it has no window, starts the daemon, starts it again when it
//! has crashed, and takes it along when it goes. Nobody else there does.

use super::job::Job;
use crate::{config::state_folder, telemetry::file::append};
use std::{
    env,
    fs::{self, File, TryLockError},
    io,
    os::windows::{io::AsHandle as _, process::CommandExt as _},
    path::Path,
    process::{Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};
use tokio::time::Instant;
use tracing_subscriber::fmt::{
    format::Writer,
    time::{FormatTime as _, SystemTime as Timestamp},
};
use windows_sys::Win32::System::{
    Console::FreeConsole,
    Threading::{CREATE_NO_WINDOW, CREATE_SUSPENDED},
};

/// It is held by the one that runs; `nexusctl service status` looks whether it is.
const LOCK: &str = "keeper.lock";

/// Its process, for `nexusctl service stop`; true while the lock is held.
const PID: &str = "keeper.pid";

/// The first pause before a crashed daemon is started again, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Who ran for so long has not crashed because of how it was started.
const GOOD_RUN: Duration = Duration::from_secs(60);

/// Keeps a daemon running until it is told to stop.
pub fn run() -> io::Result<()> {
    hide();
    let no_home = || io::Error::new(io::ErrorKind::NotFound, "LOCALAPPDATA is not set");
    let state = state_folder().ok_or_else(no_home)?;
    fs::create_dir_all(&state)?;
    let Some(_lock) = take_lock(&state.join(LOCK))? else {
        return Ok(()); // another one keeps it
    };
    // What is locked cannot be read here.
    fs::write(state.join(PID), std::process::id().to_string())?;
    let log = state.join("logs").join("nexusd.log");
    let program = env::current_exe()?;
    let mut crashes = 0;
    loop {
        let began = Instant::now();
        let ended = run_daemon(&program, &log);
        if began.elapsed() >= GOOD_RUN {
            crashes = 0;
        }
        let (how, code) = match ended {
            Ok(status) => (super::describe_exit(status), status.code()),
            Err(error) => (error.to_string(), None),
        };
        let Some(pause) = pause_after(code, crashes) else {
            return Ok(());
        };
        crashes += 1;
        note(
            &log,
            &format!("nexusd has ended: {how}; it is started again in {pause:?}"),
        );
        thread::sleep(pause);
    }
}

/// Runs a daemon until it has ended. It does not outlive us.
fn run_daemon(program: &Path, log: &Path) -> io::Result<ExitStatus> {
    let job = Job::new()?;
    let mut daemon = Command::new(program)
        .arg("--log-file")
        .arg(log)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .creation_flags(CREATE_NO_WINDOW | CREATE_SUSPENDED)
        .spawn()?;
    if let Err(error) = job.take_in(daemon.as_handle()) {
        // It has not done anything yet.
        let _ = daemon.kill();
        return Err(error);
    }
    daemon.wait()
}

/// How long to wait before it is started again; never, if it was told to end or cannot start.
fn pause_after(code: Option<i32>, crashes: u32) -> Option<Duration> {
    match code {
        Some(0 | 2 | 75 | 78) => None,
        _ => Some(LONGEST_PAUSE.min(FIRST_PAUSE * 2_u32.pow(crashes.min(10)))),
    }
}

fn take_lock(path: &Path) -> io::Result<Option<File>> {
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Adds a line to the daemon's log, in the form of its own.
fn note(log: &Path, text: &str) {
    let mut line = String::new();
    // Neither a clock that cannot be printed nor a full disk is a reason to give up.
    let _ = Timestamp.format_time(&mut Writer::new(&mut line));
    line += &format!("  WARN {text}\n");
    let _ = append(log, line.as_bytes());
}

/// Lets go of the console that Windows opens for a program like this one.
#[expect(unsafe_code, reason = "the console has no safe interface")]
fn hide() {
    // SAFETY: a plain call; without a console it does nothing.
    unsafe { FreeConsole() };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_is_followed_by_a_start_and_many_by_longer_pauses() {
        let after = |crashes| pause_after(Some(0xC000_0005_u32.cast_signed()), crashes);
        assert_eq!(after(0), Some(FIRST_PAUSE));
        assert_eq!(after(2), Some(FIRST_PAUSE * 4));
        assert_eq!(after(1000), Some(LONGEST_PAUSE));
        assert_eq!(pause_after(None, 0), Some(FIRST_PAUSE));
    }

    #[test]
    fn who_was_told_to_end_is_left_alone() {
        for code in [0, 2, 75, 78] {
            assert_eq!(pause_after(Some(code), 0), None);
        }
    }

    #[test]
    fn there_is_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(LOCK);
        let first = take_lock(&path).unwrap();
        assert!(first.is_some());
        assert!(take_lock(&path).unwrap().is_none());
        drop(first);
        assert!(take_lock(&path).unwrap().is_some());
    }
}
