//! The handle of one instance: what the rest of the daemon holds of a server's process.

use super::{
    actor::Actor,
    health::HealthPolicy,
    limiter::Limiter,
    lists::ListBoard,
    log::LogRing,
    machine::{Command, Outcome},
    running::{Refresher, Target},
    status::Status,
};
use crate::{
    agent::{Agent, Answers},
    mcp::subscriptions::Subscriptions,
    transport::http::Memory,
};
use futures_util::FutureExt as _;
use nexus_proto::{level::LogLevel, reason::Failure};
use parking_lot::Mutex;
use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, Weak, atomic::AtomicBool},
    time::Duration,
};
use tokio::sync::{mpsc, oneshot, watch};
use tracing::error;

/// What an instance needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceSpec {
    /// The server's name, for logs and errors.
    pub name: String,
    /// Where it is configured, for errors.
    pub origin: Option<String>,
    /// What is to be run, or reached.
    pub target: Target,
    /// The same as people may see it: without secrets.
    pub shown: String,
    /// Why it cannot be: it lacks something that only an operator can give it.
    pub lacks: Option<Arc<Failure>>,
    /// How long the handshake may take.
    pub start_timeout: Duration,
    /// How it is looked after while it runs.
    pub health: HealthPolicy,
    /// It ends when nobody has called it for so long.
    pub idle_stop: Option<Duration>,
    /// It runs also when nobody needs it.
    pub keep_alive: bool,
    /// Without tools it is of no use.
    pub needs_tools: bool,
}

/// What the instances of one server share.
#[derive(Debug, Clone)]
pub struct Common {
    /// When a process may be started.
    pub limiter: Arc<Limiter>,
    /// What the server tells of itself.
    pub lists: Arc<ListBoard>,
    /// What it writes to its standard error.
    pub log: Arc<LogRing>,
    /// An operator has stopped it: calls do not start it.
    pub held: Arc<AtomicBool>,
    /// What those who use it can be asked, as legacy servers are told once.
    pub answers: Answers,
    /// Whose it is, if it is one agent's alone.
    pub owner: Option<Weak<Agent>>,
    /// It asks those who use it for their folders.
    pub asks_roots: Arc<AtomicBool>,
    /// Who wants to know which of its resources change.
    pub subscriptions: Arc<Subscriptions>,
    /// How much it is to log for its client, if anybody has said so.
    pub level: Arc<Mutex<Option<LogLevel>>>,
    /// What is to be known of it the next time it is reached.
    pub memory: Arc<Memory>,
}

/// A server's process and the actor that keeps it alive.
#[derive(Debug)]
pub struct Instance {
    requests: mpsc::Sender<Request>,
    status: watch::Receiver<Status>,
}

#[derive(Debug)]
pub(super) enum Request {
    Command(Command, Option<oneshot::Sender<Outcome>>),
    Reconfigure(Box<InstanceSpec>),
    Refresh(Refresher),
    KillNow,
    /// Stands for any fault of ours.
    #[cfg(test)]
    Panic,
}

impl Instance {
    /// Starts the actor. It starts no process until it is told to. `number` tells it from others of its
    /// server.
    pub fn new(spec: InstanceSpec, number: u32, common: Common) -> Self {
        let (requests, inbox) = mpsc::channel(16);
        let (publish, status) = watch::channel(Status::new());
        let (news_sender, news) = mpsc::channel(64);
        let spec = Arc::new(Mutex::new(spec));
        tokio::spawn(async move {
            let (mut inbox, mut news) = (inbox, news);
            loop {
                let actor = Actor::new(
                    Arc::clone(&spec),
                    number,
                    common.clone(),
                    publish.clone(),
                    news_sender.clone(),
                );
                // A fault of ours costs this server its process, and nobody anything else.
                let ran = AssertUnwindSafe(actor.run(&mut inbox, &mut news));
                if ran.catch_unwind().await.is_ok() {
                    return;
                }
                error!(
                    server = spec.lock().name,
                    "its supervisor failed: begun anew"
                );
                publish.send_modify(Status::forget);
            }
        });
        Self { requests, status }
    }

    /// What is known of it now. Not to be held across an await.
    pub fn current(&self) -> watch::Ref<'_, Status> {
        self.status.borrow()
    }

    /// A way to wait for changes.
    pub fn status(&self) -> watch::Receiver<Status> {
        self.status.clone()
    }

    /// Tells it what is wanted.
    pub async fn command(&self, command: Command) -> Outcome {
        let (reply, answer) = oneshot::channel();
        // The actor lives as long as this handle.
        let request = Request::Command(command, Some(reply));
        let _ = self.requests.send(request).await;
        answer.await.unwrap_or(Outcome::AlreadyTrue)
    }

    /// A call wants it to run, and waits for that.
    pub async fn demand(&self) {
        let request = Request::Command(Command::Demand, None);
        let _ = self.requests.send(request).await;
    }

    /// A call would like it to run, and does not wait for it. Whose ears are full is not pressed.
    pub fn hint_demand(&self) {
        let request = Request::Command(Command::Demand, None);
        let _ = self.requests.try_send(request);
    }

    /// What the next process is to be. The present one goes on.
    pub async fn reconfigure(&self, spec: InstanceSpec) {
        let _ = self
            .requests
            .send(Request::Reconfigure(Box::new(spec)))
            .await;
    }

    /// Asks for all lists again.
    pub async fn refresh(&self) -> Result<(), String> {
        let (reply, answer) = oneshot::channel();
        let _ = self.requests.send(Request::Refresh(reply)).await;
        answer
            .await
            .unwrap_or_else(|_| Err("the server ended meanwhile".to_owned()))
    }

    /// Ends the process without asking it. There is no time left.
    pub async fn kill_now(&self) {
        let _ = self.requests.send(Request::KillNow).await;
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::{super::machine::State, *};
    use crate::process::SpawnSpec;
    use std::collections::BTreeMap;

    fn instance() -> Instance {
        let spec = InstanceSpec {
            origin: None,
            name: "t".into(),
            target: Target::Process(SpawnSpec {
                command: "/bin/sh".into(),
                args: vec!["-c".into(), "sleep 600".into()],
                env: BTreeMap::from([("PATH".into(), "/bin:/usr/bin".into())]),
                cwd: None,
            }),
            shown: String::new(),
            lacks: None,
            start_timeout: Duration::from_secs(600),
            health: HealthPolicy::default(),
            idle_stop: None,
            keep_alive: true,
            needs_tools: false,
        };
        let common = Common {
            limiter: Arc::new(Limiter::new(1)),
            lists: Arc::new(ListBoard::new(
                Default::default(),
                Arc::default(),
                super::super::lists::Wash {
                    list: |_, list| list,
                    info: |info| info,
                },
            )),
            log: Arc::new(LogRing::new(None)),
            held: Arc::default(),
            answers: Answers::ALL,
            owner: None,
            asks_roots: Arc::default(),
            subscriptions: Arc::default(),
            level: Arc::default(),
            memory: Arc::default(),
        };
        Instance::new(spec, 1, common)
    }

    async fn started(instance: &Instance, generation: u64) -> u32 {
        let mut status = instance.status();
        let started = |status: &Status| {
            matches!(status.state, State::Starting { .. })
                && status.pid.is_some()
                && status.generation == generation
        };
        let status = status.wait_for(started).await.expect("the actor lives");
        status.pid.expect("it was started")
    }

    #[tokio::test]
    async fn a_fault_of_ours_costs_one_process_and_not_the_server() {
        let instance = instance();
        instance.command(Command::Start).await;
        let first = started(&instance, 1).await;
        instance.requests.send(Request::Panic).await.unwrap();
        assert_eq!(instance.command(Command::Start).await, Outcome::Accepted);
        let second = started(&instance, 2).await;
        assert_ne!(first, second);
        let pid = rustix::process::Pid::from_raw(first.cast_signed()).unwrap();
        while rustix::process::test_kill_process(pid).is_ok() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        instance.kill_now().await;
        let mut status = instance.status();
        let stopped = |status: &Status| status.state == State::Stopped;
        status.wait_for(stopped).await.unwrap();
    }
}
