//! Processes: find the program, start it, end it with everything it started.

mod command;
#[cfg(unix)]
mod cookie;
#[cfg(target_os = "linux")]
mod elf;
#[cfg(unix)]
pub mod guardian;
pub mod memory;
#[cfg(target_os = "linux")]
mod oom;
#[cfg(target_os = "linux")]
pub mod reaper;
#[cfg(target_os = "linux")]
mod table;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub use windows::{keeper, processes};

#[cfg(unix)]
use unix as platform;
#[cfg(windows)]
use windows as platform;

pub use command::{SpawnError, SpawnSpec, environment};

use std::{io, process::ExitStatus};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

/// A process that was started, and its group.
#[derive(Debug)]
pub struct Process {
    child: tokio::process::Child,
    group: platform::Group,
    pid: u32,
    ended: bool,
    /// We have ended it ourselves.
    killed: bool,
}

/// Starts programs that are waited for at once: those that tell secrets.
#[derive(Debug, Clone, Copy)]
pub struct Helpers;

impl nexus_config::secret::Starter for Helpers {
    fn start(&self, command: &mut std::process::Command) -> io::Result<std::process::Child> {
        #[cfg(target_os = "linux")]
        let birth = reaper::expecting();
        let child = command.spawn()?;
        #[cfg(target_os = "linux")]
        birth.born(rustix::process::Pid::from_child(&child));
        Ok(child)
    }

    fn has_ended(&self, child: &std::process::Child) {
        #[cfg(target_os = "linux")]
        reaper::buried(rustix::process::Pid::from_child(child));
        let _ = child;
    }
}

/// The three streams of a process.
#[derive(Debug)]
pub struct Pipes {
    /// What it reads.
    pub stdin: ChildStdin,
    /// What it says.
    pub stdout: ChildStdout,
    /// What it complains about.
    pub stderr: ChildStderr,
}

impl Process {
    /// Starts a program, in a group of its own.
    pub fn spawn(spec: &SpawnSpec) -> Result<(Self, Pipes), SpawnError> {
        let program = spec.find_program()?;
        #[cfg(target_os = "linux")]
        if elf::is_foreign(&program) {
            return Err(SpawnError::NotAProgram(program));
        }
        let (mut child, group) = platform::spawn(spec, &program)
            .map_err(|source| SpawnError::from_io(spec, &program, source))?;
        let pipes = child
            .stdin
            .take()
            .zip(child.stdout.take())
            .zip(child.stderr.take());
        match (pipes, child.id()) {
            (Some(((stdin, stdout), stderr)), Some(pid)) => {
                let pipes = Pipes {
                    stdin,
                    stdout,
                    stderr,
                };
                let process = Self {
                    child,
                    group,
                    pid,
                    ended: false,
                    killed: false,
                };
                Ok((process, pipes))
            }
            _ => Err(SpawnError::Io {
                program,
                source: io::Error::other("the process has no pipes"),
            }),
        }
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits until it has ended, and ends what it left behind in its group.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        if !self.ended {
            // Now or never: once its number is free, the group of that number may be another's.
            self.ended = true;
            self.group.kill();
            self.group.forget();
        }
        Ok(status)
    }

    /// Ends what has left its group, after it has ended itself. It takes a look at every process of the
    /// system: not for the thread that serves calls.
    pub fn sweep(&self) -> impl FnOnce() -> usize + Send + 'static {
        self.group.sweep()
    }

    /// How it ended, for people: `exit code 7`, `signal 11 (SIGSEGV)`.
    pub fn describe_exit(&self, status: ExitStatus) -> String {
        if self.killed {
            platform::describe_exit(status)
        } else {
            platform::describe_end(status)
        }
    }

    /// Asks it and everything in its group to end.
    pub fn terminate(&self) {
        if !self.ended {
            self.group.terminate();
        }
    }

    /// Ends it and everything in its group.
    pub fn kill(&mut self) {
        if !self.ended {
            self.killed = true;
            self.group.kill();
            // It may have left its group. Where it has ended already there is nothing to do.
            let _ = self.child.start_kill();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.ended {
            self.kill();
            // Nobody will learn when its number is free for another.
            self.group.forget();
        }
    }
}
