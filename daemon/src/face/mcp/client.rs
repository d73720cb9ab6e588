//! One MCP client: its requests under way, and what it has said of itself.

use super::{
    answer,
    methods::{self, Asked},
    params::{self, Dialect, INVALID_REQUEST, error},
    questions::Session,
    rounds::Rounds,
    view::View,
};
use crate::{
    agent::{Agent, Refusal},
    api::Context,
    catalog::Catalog,
    mcp::{
        envelope::{self, EnvelopeError, Incoming, RpcError},
        outgoing,
    },
    pool::{
        Pool,
        key::{Caller, Credential},
    },
    router::Router,
};
use bytes::Bytes;
use nexus_proto::level::LogLevel;
use parking_lot::{Mutex, RwLock};
use serde::Deserialize;
use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, OnceLock},
};
use tokio::{
    sync::{Notify, mpsc},
    task::AbortHandle,
};

/// How many requests of one client may be under way.
const MAX_REQUESTS: usize = 1024;

/// The way back to a client, for what belongs to one request or to none.
#[derive(Debug, Clone)]
pub struct Out(mpsc::Sender<Bytes>);

impl Out {
    /// Messages go through this channel, each with its end of line.
    pub fn new(to: mpsc::Sender<Bytes>) -> Self {
        Self(to)
    }

    /// Sends what must not be lost. False when nobody is there any more.
    pub async fn send(&self, message: Bytes) -> bool {
        self.0.send(message).await.is_ok()
    }

    /// Sends what may be lost on a client that does not read.
    pub(super) fn offer(&self, message: Bytes) {
        let _ = self.0.try_send(message);
    }

    /// Done when nobody is there any more.
    pub(super) async fn closed(&self) {
        self.0.closed().await;
    }
}

/// What a bridge says before its client's first word.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Hello {
    project: Option<PathBuf>,
    servers: Vec<String>,
}

/// A request under way.
#[derive(Debug, Default)]
struct Running {
    task: Option<AbortHandle>,
    /// It has no end of its own.
    lasts: bool,
}

/// One client.
#[derive(Debug)]
pub struct Client {
    context: Arc<Context>,
    agent: Arc<Agent>,
    /// Where goes what belongs to no request.
    out: Out,
    view: RwLock<View>,
    project: RwLock<Option<PathBuf>>,
    credential: Option<Credential>,
    /// Set by `initialize`.
    session: OnceLock<Session>,
    requests: Mutex<HashMap<Bytes, Running>>,
    /// Rung when a request has ended.
    ended: Notify,
    /// Rung when it has said that it has no more to ask.
    leaving: Notify,
    /// Subscriptions of the legacy era, by the client's URI.
    pub(super) subscriptions: Mutex<HashMap<String, AbortHandle>>,
    pub(super) rounds: Rounds,
    pub(super) level: Mutex<Option<LogLevel>>,
    /// Whatever goes on for as long as the client is here.
    background: Mutex<Vec<AbortHandle>>,
}

impl Client {
    /// A client that has just come.
    pub fn new(context: Arc<Context>, agent: Arc<Agent>, out: Out) -> Arc<Self> {
        Arc::new(Self {
            context,
            agent,
            out,
            view: RwLock::default(),
            project: RwLock::default(),
            credential: None,
            session: OnceLock::new(),
            requests: Mutex::default(),
            ended: Notify::new(),
            leaving: Notify::new(),
            subscriptions: Mutex::default(),
            rounds: Rounds::default(),
            level: Mutex::default(),
            background: Mutex::default(),
        })
    }

    /// Takes a message. What is about it goes to `out`.
    pub async fn receive(self: &Arc<Self>, message: &Bytes, out: &Out) {
        match envelope::parse(message) {
            Ok(Incoming::Request { id, method, params }) => {
                self.begin(id, method, params, out).await
            }
            Ok(Incoming::Notification { method, params }) => self.told(&method, &params),
            Ok(Incoming::Response { id, outcome }) => self.answered(id, outcome),
            Err(wrong) => {
                // Nobody can tell which request it was meant to be.
                let code = match wrong {
                    EnvelopeError::NotText(_) | EnvelopeError::Malformed(_) => -32700,
                    _ => INVALID_REQUEST,
                };
                let refused = outgoing::error_response(b"null", &error(code, wrong.to_string()));
                out.send(refused).await;
            }
        }
    }

    /// Waits until its requests are answered. Those that have no end of their own are not waited for.
    pub async fn finished(&self) {
        loop {
            let mut ended = std::pin::pin!(self.ended.notified());
            ended.as_mut().enable();
            if self.requests.lock().values().all(|running| running.lasts) {
                return;
            }
            ended.await;
        }
    }

    /// Done when it has said that it has no more to ask, and has its answers.
    pub async fn left(&self) {
        self.leaving.notified().await;
        self.finished().await;
    }

    /// It has gone: whatever was for it ends.
    pub fn close(&self) {
        for task in self
            .requests
            .lock()
            .drain()
            .filter_map(|(_, running)| running.task)
        {
            task.abort();
        }
        for (_, task) in self.subscriptions.lock().drain() {
            task.abort();
        }
        for task in self.background.lock().drain(..) {
            task.abort();
        }
        self.rounds.end();
        if let Some(session) = self.session.get() {
            self.agent.detach(&session.attachment);
        }
    }

    pub(super) fn router(&self) -> &Arc<Router> {
        &self.context.router
    }

    pub(super) fn catalog(&self) -> &Arc<Catalog> {
        &self.context.catalog
    }

    pub(super) fn pool(&self) -> &Arc<Pool> {
        &self.context.pool
    }

    pub(super) fn agent(&self) -> &Arc<Agent> {
        &self.agent
    }

    pub(super) fn out(&self) -> &Out {
        &self.out
    }

    pub(super) fn view(&self) -> View {
        self.view.read().clone()
    }

    /// It has introduced itself. False when it had before.
    pub(super) fn open_session(&self, session: Session) -> bool {
        self.session.set(session).is_ok()
    }

    /// Who it is towards the servers.
    pub(super) fn caller(&self) -> Caller {
        Caller {
            project: self.project.read().clone(),
            credential: self.credential.clone(),
            ..Caller::of(Arc::clone(&self.agent))
        }
    }

    /// Goes on for as long as the client is here.
    pub(super) fn keep(&self, task: AbortHandle) {
        self.background.lock().push(task);
    }

    async fn begin(self: &Arc<Self>, id: Bytes, method: String, params: Bytes, out: &Out) {
        let refused = {
            let mut requests = self.requests.lock();
            if requests.contains_key(&id) {
                Some("a request with this id is under way")
            } else if requests.len() >= MAX_REQUESTS {
                Some("too many requests are under way")
            } else {
                let lasts = method == "subscriptions/listen";
                requests.insert(id.clone(), Running { task: None, lasts });
                None
            }
        };
        if let Some(message) = refused {
            let refused = outgoing::error_response(&id, &error(INVALID_REQUEST, message));
            out.send(refused).await;
            return;
        }
        let (client, out, own) = (Arc::clone(self), out.clone(), id.clone());
        let task = tokio::spawn(async move {
            let answer = client.answer(&own, &method, &params, &out).await;
            if client.requests.lock().get(&own).is_none() {
                return; // cancelled at the last moment
            }
            let answer = match answer {
                Ok(result) => outgoing::response(&own, &result),
                Err(error) => outgoing::error_response(&own, &error),
            };
            out.send(answer).await;
            client.requests.lock().remove(&own);
            client.ended.notify_waiters();
        });
        if let Some(running) = self.requests.lock().get_mut(&id) {
            running.task = Some(task.abort_handle());
        }
    }

    async fn answer(
        self: &Arc<Self>,
        id: &Bytes,
        method: &str,
        params: &Bytes,
        out: &Out,
    ) -> Result<Bytes, RpcError> {
        let read = params::read(params)?;
        let dialect = params::dialect(method, &read.meta, self.session.get().is_some())?;
        let asked = Asked {
            client: self,
            id,
            method,
            raw: params,
            params: &read,
            dialect,
            out,
        };
        methods::answer(&asked).await
    }

    fn told(&self, method: &str, params: &[u8]) {
        match method {
            "nexus/hello" => self.hello(params),
            "nexus/bye" => self.leaving.notify_one(),
            "notifications/cancelled" => self.cancel(params),
            "notifications/roots/list_changed" => self.pool().roots_changed(self.agent.id()),
            // That it is done with its greeting changes nothing for us; what is newer is no fault.
            _ => {}
        }
    }

    fn hello(&self, params: &[u8]) {
        let hello: Hello = serde_json::from_slice(params).unwrap_or_default();
        let project = hello.project.filter(|path| path.is_absolute());
        *self.project.write() = project.map(|said| self.agent.works_in(said));
        *self.view.write() = View {
            only: hello.servers,
        };
    }

    fn cancel(&self, params: &[u8]) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            #[serde(borrow)]
            request_id: &'a serde_json::value::RawValue,
        }
        let Ok(Params { request_id }) = serde_json::from_slice::<Params<'_>>(params) else {
            return;
        };
        let running = self.requests.lock().remove(request_id.get().as_bytes());
        if let Some(task) = running.and_then(|running| running.task) {
            task.abort();
        }
    }

    /// An answer to a question of ours.
    fn answered(&self, id: u64, outcome: Result<Bytes, RpcError>) {
        if let Some(session) = self.session.get() {
            let refused = |error: RpcError| Refusal {
                code: error.code,
                message: error.message,
            };
            session.attachment.answered(id, outcome.map_err(refused));
        }
    }

    /// What a failure comes to in the era of a request.
    pub(super) fn refusal(failure: &nexus_proto::reason::Failure, dialect: Dialect) -> RpcError {
        answer::refusal(failure, dialect)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.close();
    }
}
