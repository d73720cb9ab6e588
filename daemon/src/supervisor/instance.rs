//! The handle of one instance: what the rest of the daemon holds of a server's process.

use super::{
    actor::Actor,
    health::HealthPolicy,
    limiter::Limiter,
    lists::ListBoard,
    log::LogRing,
    machine::{Command, Outcome},
    running::Refresher,
    status::Status,
};
use crate::process::SpawnSpec;
use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};
use tokio::sync::{mpsc, oneshot, watch};

/// What an instance needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceSpec {
    /// The server's name, for logs and errors.
    pub name: String,
    /// What is to be run.
    pub spawn: SpawnSpec,
    /// How long the handshake may take.
    pub start_timeout: Duration,
    /// How it is looked after while it runs.
    pub health: HealthPolicy,
    /// It ends when nobody has called it for so long.
    pub idle_stop: Option<Duration>,
    /// It runs also when nobody needs it.
    pub keep_alive: bool,
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
}

impl Instance {
    /// Starts the actor. It starts no process until it is told to. `number` tells it from others of its
    /// server.
    pub fn new(spec: InstanceSpec, number: u32, common: Common) -> Self {
        let (requests, inbox) = mpsc::channel(16);
        let (publish, status) = watch::channel(Status::new());
        let (news_sender, news) = mpsc::channel(64);
        let actor = Actor::new(spec, number, common, publish, news_sender);
        tokio::spawn(actor.run(inbox, news));
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

    /// A call wants it to run. Nothing is waited for: if its ears are full, others want the same.
    pub fn demand(&self) {
        let _ = self
            .requests
            .try_send(Request::Command(Command::Demand, None));
    }

    /// What the next process is to be. The present one goes on.
    pub async fn reconfigure(&self, spec: InstanceSpec) {
        let _ = self
            .requests
            .send(Request::Reconfigure(Box::new(spec)))
            .await;
    }

    /// Lists the tools again.
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
