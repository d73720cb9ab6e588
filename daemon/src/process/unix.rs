//! Unix: a process group of its own, and the parent's death is the child's.

use super::{command::SpawnSpec, cookie, guardian};
#[cfg(target_os = "linux")]
use super::{oom, reaper};
use rustix::process::{Pid, Signal, kill_process_group};
use std::{
    ffi::OsStr,
    io,
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::{ExitStatus, Stdio},
    sync::atomic::{AtomicU64, Ordering},
};
use tokio::process::{Child, Command};

/// A process group, and the mark of everything that was started from it.
#[derive(Debug)]
pub(super) struct Group {
    pid: Option<Pid>,
    cookie: Option<String>,
}

impl Group {
    /// It has gone: its number may be another's soon.
    pub(super) fn forget(&self) {
        if let Some(group) = self.pid {
            guardian::forget(group);
            #[cfg(target_os = "linux")]
            reaper::buried(group);
        }
    }

    pub(super) fn sweep(&self) -> impl FnOnce() -> usize + Send + 'static {
        let cookie = self.cookie.clone();
        move || cookie.map_or(0, |cookie| cookie::sweep(&cookie))
    }

    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.pid {
            // It fails when nobody is left, which is what was wanted.
            let _ = kill_process_group(group, signal);
        }
    }
}

pub(super) fn spawn(spec: &SpawnSpec, program: &Path) -> io::Result<(Child, Group)> {
    let mut command = Command::new(program);
    command
        // A program may look at the name it was called by.
        .arg0(&spec.command)
        .args(&spec.args)
        .env_clear()
        .envs(&spec.env)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    if let Some(cwd) = &spec.cwd {
        command.current_dir(cwd);
    }
    #[cfg(target_os = "linux")]
    die_with_parent(&mut command);
    let cookie = guardian::cookie().map(|cookie| {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        // Closed by a dot: the mark of the first is not the beginning of the tenth's.
        format!("{cookie}.{n}.")
    });
    if let Some(cookie) = &cookie {
        command.env(cookie::VARIABLE, cookie);
    }
    #[cfg(target_os = "linux")]
    let birth = {
        oom::remember();
        reaper::expecting()
    };
    let child = command.spawn()?;
    let pid = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
    if let Some(group) = pid {
        #[cfg(target_os = "linux")]
        birth.born(group);
        guardian::watch(group);
    }
    Ok((child, Group { pid, cookie }))
}

/// The child gets a SIGKILL when the thread that started it ends, so that has to be one that lives
/// as long as the daemon: the runtime's own.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "code between fork and exec")]
fn die_with_parent(command: &mut Command) {
    let daemon = rustix::process::getpid();
    let score = oom_score();
    // SAFETY: only system calls are made between fork and exec, and no memory is allocated.
    unsafe {
        command.pre_exec(move || {
            // When memory runs out, a server is to end before the daemon. It is only a wish.
            let _ = write_oom_score(&score);
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            // The daemon may have died before the line above.
            if rustix::process::getppid() != Some(daemon) {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            Ok(())
        });
    }
}

/// How likely a server is to be ended when memory runs out, against the daemon: anybody may raise that.
#[cfg(target_os = "linux")]
fn oom_score() -> String {
    const MORE: i32 = 500;
    const MOST: i32 = 1000;
    let ours = std::fs::read_to_string("/proc/self/oom_score_adj").unwrap_or_default();
    let ours: i32 = ours.trim().parse().unwrap_or(0);
    (ours + MORE).min(MOST).to_string()
}

#[cfg(target_os = "linux")]
fn write_oom_score(score: &str) -> io::Result<()> {
    use rustix::fs::{Mode, OFlags, open};
    let path = c"/proc/self/oom_score_adj";
    let file = open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, score.as_bytes())?;
    Ok(())
}

/// How a process ended that we did not end.
pub(super) fn describe_end(status: ExitStatus) -> String {
    let how = describe_exit(status);
    #[cfg(target_os = "linux")]
    if status.signal() == Some(Signal::KILL.as_raw()) && oom::was_it() {
        return format!("{how}: out of memory");
    }
    how
}

pub(super) fn describe_exit(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => match signal_name(signal) {
            Some(name) => format!("signal {signal} ({name})"),
            None => format!("signal {signal}"),
        },
        (None, None) => "an unknown end".to_owned(),
    }
}

fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match Signal::from_named_raw(signal)? {
        Signal::ABORT => "SIGABRT",
        Signal::BUS => "SIGBUS",
        Signal::FPE => "SIGFPE",
        Signal::HUP => "SIGHUP",
        Signal::ILL => "SIGILL",
        Signal::INT => "SIGINT",
        Signal::KILL => "SIGKILL",
        Signal::PIPE => "SIGPIPE",
        Signal::QUIT => "SIGQUIT",
        Signal::SEGV => "SIGSEGV",
        Signal::TERM => "SIGTERM",
        Signal::TRAP => "SIGTRAP",
        _ => return None,
    })
}

/// A name is the whole name here.
pub(super) fn endings(_pathext: Option<&OsStr>) -> Vec<String> {
    Vec::new()
}

pub(super) fn is_executable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}
