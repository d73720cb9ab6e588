//! A terminal that somebody types at.

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::{
    fs::{File, OpenOptions},
    io::{Read as _, Write as _},
    os::unix::ffi::OsStrExt as _,
    path::Path,
    process::{Child, Command},
};

/// A command at a terminal, and what the terminal has shown.
pub(crate) struct Terminal {
    master: File,
    child: Child,
    shown: Vec<u8>,
    /// Up to where it has been looked at.
    seen: usize,
}

impl Terminal {
    pub(crate) fn run(command: &mut Command) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let path = Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()));
        let slave = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .unwrap();
        let child = command
            .stdin(slave.try_clone().unwrap())
            .stdout(slave.try_clone().unwrap())
            .stderr(slave)
            .spawn()
            .unwrap();
        // The command's own copies must be the last: its end is the end of what is shown.
        command.stdin(std::process::Stdio::null());
        command.stdout(std::process::Stdio::null());
        command.stderr(std::process::Stdio::null());
        Self {
            master: File::from(master),
            child,
            shown: Vec::new(),
            seen: 0,
        }
    }

    /// Waits until that is shown, after what was waited for before.
    #[track_caller]
    pub(crate) fn shows(&mut self, text: &str) {
        loop {
            let rest = &self.shown[self.seen..];
            let found = rest
                .windows(text.len())
                .position(|it| it == text.as_bytes());
            if let Some(at) = found {
                self.seen += at + text.len();
                return;
            }
            assert!(self.read(), "{text:?} is not in {:?}", self.all());
        }
    }

    pub(crate) fn types(&mut self, line: &str) {
        self.master.write_all(line.as_bytes()).unwrap();
    }

    /// The exit code, and all that was shown.
    pub(crate) fn ends(mut self) -> (i32, String) {
        while self.read() {}
        let status = self.child.wait().unwrap();
        (status.code().unwrap_or(-1), self.all())
    }

    fn all(&self) -> String {
        String::from_utf8_lossy(&self.shown).replace("\r\n", "\n")
    }

    /// False at the end, which Linux tells as an error.
    fn read(&mut self) -> bool {
        let mut piece = [0; 4096];
        let count = self.master.read(&mut piece).unwrap_or(0);
        self.shown.extend_from_slice(&piece[..count]);
        count > 0
    }
}
