//! The real daemon, in a home of its own.

use super::{Run, neighbour, nexusctl};
use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread,
};
use tempfile::TempDir;

/// A daemon that ends with the test.
pub(crate) struct Daemon {
    home: TempDir,
    child: Child,
    log: Arc<Mutex<String>>,
}

impl Daemon {
    /// The built-in demo.
    pub(crate) fn demo() -> Self {
        Self::start(None)
    }

    /// The servers of an `mcp.json`.
    pub(crate) fn serving(config: &serde_json::Value) -> Self {
        Self::start(Some(config.to_string()))
    }

    fn start(config: Option<String>) -> Self {
        // Whoever runs the tests may be an agent.
        Self::start_with(config, &["--operator", "nexusctl"])
    }

    /// The same, for whom `nexusctl` is the operator unless an agent has started it.
    pub(crate) fn cautious(config: &serde_json::Value) -> Self {
        Self::start_with(Some(config.to_string()), &[])
    }

    fn start_with(config: Option<String>, args: &[&str]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut command = Command::new(neighbour("nexusd"));
        command.args(args);
        at_home(&mut command, home.path());
        for name in ["NEXUS_SOCKET", "NEXUS_CONFIG", "NEXUS_LOG"] {
            command.env_remove(name);
        }
        if let Some(config) = config {
            let path = home.path().join("mcp.json");
            fs::write(&path, config).unwrap();
            command.arg("--config").arg(path);
        }
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        // From here on there is somebody to end it.
        let log = Arc::new(Mutex::new(String::new()));
        let daemon = Self {
            home,
            child,
            log: Arc::clone(&log),
        };
        let mut said = Vec::new();
        loop {
            let Some(Ok(line)) = lines.next() else {
                panic!("nexusd ended before it listened: {said:#?}");
            };
            if line.contains("listening") {
                break;
            }
            said.push(line);
        }
        // A full pipe would stop it.
        *log.lock().unwrap() = said.join("\n");
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                *log.lock().unwrap() += &format!("{line}\n");
            }
        });
        daemon
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// What it has logged.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.home.path().join("nexus/nexusd.sock")
    }

    /// `nexusctl` for this daemon.
    pub(crate) fn ctl(&self, args: &[&str]) -> Command {
        let mut command = nexusctl();
        command.arg("--socket").arg(self.socket()).args(args);
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Run {
        Run::of(&mut self.ctl(args))
    }

    /// Ends it without asking.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits until the daemon has ended by itself, and says whether that went well.
    pub(crate) fn wait(&mut self) -> bool {
        self.child.wait().unwrap().success()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Asked first, so that it can end its servers; killed if it does not listen.
        let _ = self.run(&["-q", "--timeout", "10s", "shutdown", "--now"]);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Gives a program this home.
pub(crate) fn at_home(command: &mut Command, home: &Path) {
    for name in [
        "HOME",
        "XDG_RUNTIME_DIR",
        "XDG_CONFIG_HOME",
        "XDG_STATE_HOME",
    ] {
        command.env(name, home);
    }
}
