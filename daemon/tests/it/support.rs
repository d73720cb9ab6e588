//! Starts a daemon in a home of its own, and leaves nothing behind.

use nexus_client::{
    AgentInfo, ElicitationAnswer, ElicitationMode, Nexus, Root, SamplingAnswer, Server, ServerEvent,
};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Condvar, Mutex},
    thread,
    time::Duration,
};
use tempfile::TempDir;

#[path = "schema.rs"]
pub(crate) mod schema;

pub(crate) const NEXUSD: &str = env!("CARGO_BIN_EXE_nexusd");

/// How long anything may take before a test gives up on it. Nothing is expected to come near.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Whether test servers keep a record of what they are told, which is checked at the end. Not where time is measured,
/// nor where there is too much of it.
const RECORDED: bool = matches!(env!("CARGO_CRATE_NAME").as_bytes(), b"it");

/// How many agents are many.
pub(crate) const MANY: usize = 200;

/// A home folder for a daemon and its configuration.
pub(crate) struct Home(TempDir);

impl Drop for Home {
    fn drop(&mut self) {
        if !thread::panicking() {
            schema::check_records(&self.wire());
        }
    }
}

impl Home {
    pub(crate) fn new() -> Self {
        Self(tempfile::Builder::new().prefix("nexus-").tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.path().join("run/nexus/nexusd.sock")
    }

    pub(crate) fn config_file(&self) -> PathBuf {
        self.path().join("config/nexus/mcp.json")
    }

    pub(crate) fn configure(&self, config: &Value) {
        let mut config = config.clone();
        if let Some(servers) = config["mcpServers"].as_object_mut() {
            let arguments = servers.values_mut().filter_map(arguments_of_test_server);
            arguments.for_each(|args| {
                pin(args);
                if RECORDED {
                    args.extend([json!("--wire"), json!(self.wire())]);
                }
            });
        }
        fs::create_dir_all(self.config_file().parent().unwrap()).unwrap();
        fs::write(self.config_file(), config.to_string()).unwrap();
    }

    /// Where the test servers keep their records.
    pub(crate) fn wire(&self) -> PathBuf {
        self.path().join("wire")
    }

    /// `nexusd`, as it would be started in this home.
    pub(crate) fn nexusd(&self) -> Command {
        let mut command = self.command(NEXUSD);
        // A test says itself when a configuration is read again, but for the one that is about that.
        command.arg("--no-watch");
        command.arg("--operator").arg(us());
        command
    }

    /// A program in this home, with the pipes of a daemon.
    pub(crate) fn command(&self, program: &str) -> Command {
        let run = self.path().join("run");
        fs::create_dir_all(&run).unwrap();
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.path())
            .env("XDG_RUNTIME_DIR", run)
            .env("XDG_CONFIG_HOME", self.path().join("config"))
            .env("XDG_STATE_HOME", self.path().join("state"))
            .env("NEXUS_TEST_SECRET", "do not tell")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        command
    }

    /// `nexusd`, started by a shell that does something first.
    pub(crate) fn after(&self, first: &str) -> Command {
        let mut command = self.command("sh");
        let script = format!("{first} && exec \"$0\" --no-watch --operator \"$1\"");
        command.args(["-c", &script, NEXUSD]).arg(us());
        command
    }

    pub(crate) fn start(self) -> Daemon {
        let command = self.nexusd();
        self.start_as(command)
    }

    /// Starts a daemon in a way of one's own.
    pub(crate) fn start_as(self, mut command: Command) -> Daemon {
        let child = command.spawn().unwrap();
        Daemon::of(self, child)
    }
}

/// A test is the operator, unless it says that it is an agent.
fn us() -> PathBuf {
    std::env::current_exe().unwrap()
}

/// The arguments of a server, if it is a test server.
fn arguments_of_test_server(server: &mut Value) -> Option<&mut Vec<Value>> {
    let args = server.get_mut("args").and_then(Value::as_array_mut)?;
    (args.first()? == "demo-server").then_some(args)
}

/// The same suite can be run against each era and revision: `NEXUS_TEST_ERA=2024-11-05 cargo test`. Pins a test server
/// to that one, unless its test has done so itself.
fn pin(args: &mut Vec<Value>) {
    let era = std::env::var("NEXUS_TEST_ERA").unwrap_or_default();
    if args.iter().any(|arg| arg == "--era") {
        return;
    }
    match era.as_str() {
        "" | "dual" => {}
        "legacy" | "modern" => args.extend([json!("--era"), json!(era)]),
        revision => args.extend(["--era", "legacy", "--revision", revision].map(Value::from)),
    }
}

/// The configuration of a test server with these arguments.
pub(crate) fn test_server(args: &[&str]) -> Value {
    let mut all = vec!["demo-server"];
    all.extend(args);
    json!({ "command": NEXUSD, "args": all })
}

/// A test server that is reached over HTTP. It ends with the test.
pub(crate) struct HttpServer {
    child: Child,
    pub(crate) url: String,
}

impl HttpServer {
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::at(0, args)
    }

    /// At a port of one's own.
    pub(crate) fn at(port: u16, args: &[&str]) -> Self {
        let mut command = Command::new(NEXUSD);
        command.args(["demo-server", "--http", &port.to_string()]);
        command
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let first = lines.find_map(|line| {
            let line = line.ok()?;
            line.strip_prefix("listening on ").map(str::to_owned)
        });
        thread::spawn(move || lines.for_each(drop));
        let url = first.expect("it listens");
        Self { child, url }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A configuration of several servers.
pub(crate) fn servers(servers: &[(&str, Value)]) -> Value {
    let map: serde_json::Map<_, _> = servers
        .iter()
        .map(|(name, server)| ((*name).to_owned(), server.clone()))
        .collect();
    json!({ "mcpServers": map })
}

/// The same, with more keys in its configuration.
pub(crate) fn test_server_with(args: &[&str], keys: Value) -> Value {
    let mut server = test_server(args);
    let more = keys.as_object().unwrap().clone();
    server.as_object_mut().unwrap().extend(more);
    server
}

/// A daemon with one test server, `t`.
pub(crate) fn start_with(args: &[&str]) -> Daemon {
    let home = Home::new();
    home.configure(&servers(&[("t", test_server(args))]));
    home.start()
}

/// A daemon that runs. It is ended with the test.
pub(crate) struct Daemon {
    pub(crate) home: Home,
    pub(crate) child: Child,
    log: Arc<(Mutex<Log>, Condvar)>,
}

#[derive(Default)]
struct Log {
    text: String,
    ended: bool,
}

impl Daemon {
    /// A daemon that somebody has started in this home.
    pub(crate) fn of(home: Home, mut child: Child) -> Self {
        let stderr = child.stderr.take().unwrap();
        let log: Arc<(Mutex<Log>, Condvar)> = Arc::default();
        let writer = Arc::clone(&log);
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                writer.0.lock().unwrap().text += &(line + "\n");
                writer.1.notify_all();
            }
            writer.0.lock().unwrap().ended = true;
            writer.1.notify_all();
        });
        let daemon = Self { home, child, log };
        daemon.wait_for_log("listening");
        daemon
    }

    /// Waits until the daemon has logged this.
    pub(crate) fn wait_for_log(&self, wanted: &str) {
        let (log, changed) = &*self.log;
        let missing = |log: &mut Log| !log.text.contains(wanted) && !log.ended;
        let log = log.lock().unwrap();
        let (log, _) = changed.wait_timeout_while(log, PATIENCE, missing).unwrap();
        // Let go before it may panic: the log is shown then.
        let text = log.text.clone();
        drop(log);
        assert!(text.contains(wanted), "{wanted:?} was never logged");
    }

    pub(crate) fn log(&self) -> String {
        self.log.0.lock().unwrap().text.clone()
    }

    pub(crate) async fn client(&self) -> Nexus {
        Nexus::builder()
            .socket(self.home.socket())
            .connect()
            .await
            .unwrap()
    }

    /// A client that can be asked everything: its answers tell its name, and what it was asked.
    pub(crate) async fn agent(&self, name: &'static str) -> Nexus {
        let answer = move |asked: String| format!("{name} was asked {asked}");
        let info = AgentInfo::new(name)
            .roots([Root::folder(format!("/{name}"))])
            .on_sampling(move |request| async move {
                let asked = request.messages().pop().map(|message| message.text());
                Ok(SamplingAnswer::text(
                    name,
                    answer(asked.unwrap_or_default()),
                ))
            })
            .sampling_tools()
            .sampling_context()
            .on_elicitation(move |request| async move {
                let said = answer(request.message());
                Ok(match request.mode() {
                    ElicitationMode::Url => ElicitationAnswer::accept_url(),
                    _ => ElicitationAnswer::accept(json!({ "answer": said })),
                })
            })
            .elicitation_url();
        let builder = Nexus::builder().socket(self.home.socket()).agent(info);
        builder.connect().await.unwrap()
    }

    /// Ends it, and gives its home back.
    pub(crate) fn end(mut self) -> Home {
        self.signal(Signal::TERM);
        assert!(self.ended().success());
        std::mem::replace(&mut self.home, Home::new())
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits until it has ended by itself.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("--- the daemon's log:\n{}", self.log());
        }
    }
}

/// A daemon that ends with the test, whatever becomes of it.
pub(crate) struct Ends(pub(crate) Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until a server looks as it should, and returns it.
pub(crate) async fn server_when(
    nexus: &Nexus,
    name: &str,
    good: impl Fn(&Server) -> bool,
) -> Server {
    let watch = async {
        let mut events = nexus.servers().watch_one(name).await.unwrap();
        while let Some(event) = events.next().await {
            if let ServerEvent::Is(server) = event.unwrap()
                && good(&server)
            {
                return *server;
            }
        }
        panic!("the stream of events ended");
    };
    match tokio::time::timeout(PATIENCE, watch).await {
        Ok(server) => server,
        Err(_) => panic!("never so: {:?}", nexus.servers().get(name).await),
    }
}

/// The same for what is no change of state, such as calls under way: looks again and again.
pub(crate) async fn server_until(
    nexus: &Nexus,
    name: &str,
    good: impl Fn(&Server) -> bool,
) -> Server {
    let started = tokio::time::Instant::now();
    loop {
        let server = nexus.servers().get(name).await.unwrap();
        if good(&server) {
            return server;
        }
        assert!(started.elapsed() < PATIENCE, "never so: {server:?}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Waits until something is so, without blocking the clients of the test.
pub(crate) async fn eventually(what: &str, so: impl Fn() -> bool) {
    let started = tokio::time::Instant::now();
    while !so() {
        assert!(started.elapsed() < PATIENCE, "never so: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Whether a process runs. One that has ended and that nobody has waited for does not: not every first
/// process of a container does that.
pub(crate) fn is_alive(pid: u32) -> bool {
    let number = Pid::from_raw(pid.cast_signed()).unwrap();
    test_kill_process(number).is_ok() && !is_zombie(pid)
}

/// Waits until a process is gone. It is not ours, so there is nothing to wait on but itself.
pub(crate) fn wait_until_gone(pid: u32) {
    let started = tokio::time::Instant::now();
    while is_alive(pid) {
        assert!(started.elapsed() < PATIENCE, "process {pid} does not end");
        thread::sleep(Duration::from_millis(2));
    }
}

fn is_zombie(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .is_some_and(|rest| rest.trim_start().starts_with('Z'))
}

/// The process of the test server `t`.
pub(crate) async fn pid_of(nexus: &Nexus) -> u32 {
    nexus.servers().get("t").await.unwrap().pid.unwrap()
}

pub(crate) fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
}

/// How many calls a journal has, and of what.
pub(crate) fn executions(journal: &Path) -> Vec<String> {
    let text = fs::read_to_string(journal).unwrap_or_default();
    let column = |line: &str| line.split('\t').nth(2).unwrap_or_default().to_owned();
    text.lines().map(column).collect()
}

/// Everything that runs with this home, told by its environment. A zombie has none.
#[cfg(target_os = "linux")]
pub(crate) fn processes_of(home: &Path) -> Vec<u32> {
    let mark = format!("HOME={}\0", home.display());
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            String::from_utf8_lossy(&environment).contains(&mark)
        })
        .collect()
}

/// A control group of our own, which goes with the test.
#[cfg(target_os = "linux")]
pub(crate) struct Cgroup {
    folder: PathBuf,
}

#[cfg(target_os = "linux")]
impl Cgroup {
    fn make(parent: &str) -> Option<Self> {
        use std::sync::atomic::{AtomicU32, Ordering};
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("nexus-test-{}-{n}", std::process::id());
        let folder = Path::new(parent).join(name);
        fs::create_dir(&folder).ok()?;
        Some(Self { folder })
    }

    /// One in which no more memory can be had than this. Of either version of control groups.
    pub(crate) fn memory(limit: u64) -> Option<Self> {
        let first = Self::make("/sys/fs/cgroup/memory");
        let (group, file) = match first {
            Some(group) => (group, "memory.limit_in_bytes"),
            None => (Self::make("/sys/fs/cgroup")?, "memory.max"),
        };
        fs::write(group.folder.join(file), limit.to_string()).ok()?;
        // Where there is more room on a disk, that is not to be used either.
        let _ = fs::write(
            group.folder.join("memory.memsw.limit_in_bytes"),
            limit.to_string(),
        );
        let _ = fs::write(group.folder.join("memory.swap.max"), "0");
        Some(group)
    }

    /// One that can stop everything, so that not even a kill gets through. Only the first version can.
    pub(crate) fn freezer() -> Option<Self> {
        Self::make("/sys/fs/cgroup/freezer")
    }

    /// A shell command that puts the shell into it.
    pub(crate) fn join(&self) -> String {
        format!("echo $$ > {}/cgroup.procs", self.folder.display())
    }

    pub(crate) fn freeze(&self, pid: u32) {
        fs::write(self.folder.join("cgroup.procs"), pid.to_string()).unwrap();
        fs::write(self.folder.join("freezer.state"), "FROZEN").unwrap();
    }

    pub(crate) fn thaw(&self) {
        let _ = fs::write(self.folder.join("freezer.state"), "THAWED");
    }
}

#[cfg(target_os = "linux")]
impl Drop for Cgroup {
    fn drop(&mut self) {
        self.thaw();
        for _ in 0..500 {
            if fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}
