//! A server process, killed and reaped whatever becomes of the test.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};

/// How long a test waits before it calls a server dead; nothing is measured by it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The version and capabilities that every modern request names.
pub(crate) fn modern_meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"sampling": {}, "roots": {}, "elicitation": {}},
    })
}

pub(crate) struct Peer {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
}

impl Peer {
    pub(crate) fn start(arguments: &[&str]) -> Peer {
        let mut child = command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut stderr = child.stderr.take().unwrap();
        let (sender, lines) = channel();
        thread::spawn(move || {
            loop {
                let mut line = Vec::new();
                if stdout.read_until(b'\n', &mut line).unwrap_or(0) == 0
                    || sender.send(line).is_err()
                {
                    return;
                }
            }
        });
        let stderr = thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = stderr.read_to_end(&mut bytes);
            bytes
        });
        Peer {
            stdin: child.stdin.take(),
            child,
            lines,
            stderr: Some(stderr),
        }
    }

    /// A server that has answered `initialize`.
    pub(crate) fn initialized(arguments: &[&str]) -> Peer {
        let mut peer = Peer::start(arguments);
        let answer = peer.ask("init", "initialize", initialize_params("2025-11-25"));
        assert_eq!(
            answer["result"]["serverInfo"]["name"], "nexus-test-server",
            "{answer}"
        );
        peer.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        peer
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.send_line(&message.to_string()).unwrap();
    }

    pub(crate) fn send_line(&mut self, line: &str) -> std::io::Result<()> {
        self.stdin
            .as_mut()
            .unwrap()
            .write_all(format!("{line}\n").as_bytes())
    }

    pub(crate) fn request(&mut self, id: impl Into<Value>, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params}));
    }

    pub(crate) fn call(&mut self, id: impl Into<Value>, tool: &str, arguments: Value) {
        self.request(
            id,
            "tools/call",
            json!({"name": tool, "arguments": arguments}),
        );
    }

    pub(crate) fn ask(&mut self, id: impl Into<Value>, method: &str, params: Value) -> Value {
        self.request(id, method, params);
        self.read()
    }

    /// Asks in the modern way; `params` is an object.
    pub(crate) fn ask_modern(
        &mut self,
        id: impl Into<Value>,
        method: &str,
        mut params: Value,
    ) -> Value {
        params["_meta"] = modern_meta();
        self.ask(id, method, params)
    }

    /// The next line on stdout, or nothing if it has ended.
    pub(crate) fn line(&mut self) -> Option<Vec<u8>> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("the server said nothing for {PATIENCE:?}"),
        }
    }

    pub(crate) fn read(&mut self) -> Value {
        let line = self.line().expect("stdout has ended");
        serde_json::from_slice(&line)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&line)))
    }

    /// Says that nothing more will come.
    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Everything that is still said, up to the end.
    pub(crate) fn rest(&mut self) -> Vec<Value> {
        self.close_stdin();
        std::iter::from_fn(|| self.line())
            .map(|line| serde_json::from_slice(&line).unwrap())
            .collect()
    }

    /// Waits for the end; what is still on stdout stays readable.
    pub(crate) fn exit_status(&mut self) -> ExitStatus {
        wait_until("the exit", || self.child.try_wait().unwrap())
    }

    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        self.exit_status().code()
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// All of stderr; waits for its end.
    pub(crate) fn stderr(&mut self) -> Vec<u8> {
        self.stderr.take().unwrap().join().unwrap()
    }

    /// Waits until the main thread is parked: it reads nothing then.
    #[cfg(target_os = "linux")]
    pub(crate) fn wait_until_it_stops_reading(&self) {
        let path = format!("/proc/{0}/task/{0}/wchan", self.child.id());
        wait_until("a parked main thread", || {
            std::fs::read_to_string(&path)
                .unwrap()
                .contains("futex")
                .then_some(())
        });
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nexus-test-server"));
    command.args(arguments);
    command
}

pub(crate) fn initialize_params(version: &str) -> Value {
    json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "it", "version": "0"}})
}

/// The text of a tool's result.
pub(crate) fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("no text in {answer}"))
}

/// Waits for something that will come to pass by itself.
pub(crate) fn wait_until<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let step = Duration::from_millis(2);
    for _ in 0..PATIENCE.as_millis() / step.as_millis() {
        if let Some(value) = condition() {
            return value;
        }
        thread::sleep(step);
    }
    panic!("no {what} within {PATIENCE:?}");
}
