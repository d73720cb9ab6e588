//! Unix: signals, sessions and file descriptors.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::process::{Resource, Rlimit, Signal, getpid, kill_process, setrlimit, setsid};

/// Dies of SIGSEGV, without leaving a core file in the tests' directory.
pub(crate) fn crash() -> ! {
    let _ = setrlimit(
        Resource::Core,
        Rlimit {
            current: Some(0),
            maximum: Some(0),
        },
    );
    loop {
        // The first one only removes the handler that Rust has for stack overflows.
        let _ = kill_process(getpid(), Signal::SEGV);
    }
}

/// Closes our end of the pipe. /dev/null takes its number, so that no later file can be written to by mistake.
pub(crate) fn close_stdout() {
    if let Ok(null) = File::options().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(null);
    }
}

/// As [`close_stdout`], for what we read.
pub(crate) fn close_stdin() {
    if let Ok(null) = File::open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(null);
    }
}

/// Takes note of SIGTERM and does nothing about it.
pub(crate) fn ignore_term() -> io::Result<()> {
    let nobody_reads_it = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGTERM, nobody_reads_it).map(drop)
}

/// Leaves the session and process group of whoever started us.
pub(crate) fn leave_session() {
    let _ = setsid();
}
