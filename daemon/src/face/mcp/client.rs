//! One MCP client: its requests under way, and what it has said of itself.

use super::{
    message::{Kind, Message, Out},
    methods::{self, Asked},
    params::{self, Dialect, INVALID_REQUEST, error},
    questions::Session,
    rounds::Rounds,
    subscribe,
};
use crate::{
    agent::{Agent, Answers, Refusal, folder},
    api::Context,
    catalog::Catalog,
    mcp::{
        envelope::{EnvelopeError, Incoming, RpcError},
        outgoing,
    },
    nearest::nearest,
    pool::{
        Chosen, Pool, Sight,
        key::{Caller, Credential},
    },
    router::Router,
};
use bytes::Bytes;
use nexus_config::model::ToolsMode;
use nexus_proto::{
    level::LogLevel,
    reason::{Failure, Reason},
};
use parking_lot::{Mutex, RwLock};
use serde::Deserialize;
use std::{
    collections::HashMap,
    ops::Deref,
    path::PathBuf,
    sync::{Arc, OnceLock},
};
use tokio::{sync::Notify, task::AbortHandle};

/// How many requests of one client may be under way.
const MAX_REQUESTS: usize = 1024;

/// What a bridge says before its client's first word.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Hello {
    project: Option<PathBuf>,
    servers: Vec<String>,
    tools: String,
    profile: Option<String>,
}

/// What a client says of itself, or a door of it.
#[derive(Debug, Default)]
pub struct Introduction {
    /// It sees these servers only, by any of their names; all when there are none.
    pub servers: Vec<String>,
    /// It works in this folder.
    pub project: Option<PathBuf>,
    /// What it shows to servers.
    pub credential: Option<Credential>,
    /// How it wants its tools.
    pub tools: Option<ToolsMode>,
    /// It wants this profile.
    pub profile: Option<String>,
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
    rounds: Arc<Rounds>,
    /// They end with it: nobody else can come back to them.
    owns_rounds: bool,
    /// Who it is towards the servers.
    caller: RwLock<Caller>,
    /// The profile that it wants.
    profile: RwLock<Option<String>>,
    /// Set by `initialize`.
    session: OnceLock<Session>,
    requests: Mutex<HashMap<Bytes, Running>>,
    /// Rung when a request has ended.
    ended: Notify,
    /// Rung when it has said that it has no more to ask.
    leaving: Notify,
    /// Subscriptions of the legacy era, by the client's URI.
    pub(super) subscriptions: Mutex<HashMap<String, AbortHandle>>,
    pub(super) level: Mutex<Option<LogLevel>>,
    /// Whatever goes on for as long as the client is here.
    background: Mutex<Vec<AbortHandle>>,
}

impl Client {
    /// A client that has just come. `rounds`: those that it shares with others.
    pub fn arrive(
        context: Arc<Context>,
        agent: Arc<Agent>,
        out: Out,
        rounds: Option<Arc<Rounds>>,
    ) -> Present {
        let caller = RwLock::new(Caller::of(Arc::clone(&agent)));
        let client = Self {
            context,
            agent,
            out,
            owns_rounds: rounds.is_none(),
            rounds: rounds.unwrap_or_default(),
            caller,
            profile: RwLock::default(),
            session: OnceLock::new(),
            requests: Mutex::default(),
            ended: Notify::new(),
            leaving: Notify::new(),
            subscriptions: Mutex::default(),
            level: Mutex::default(),
            background: Mutex::default(),
        };
        Present(Arc::new(client))
    }

    /// Takes a message. What is about it goes to `out`.
    pub async fn receive(self: &Arc<Self>, message: Incoming, out: &Out) {
        match message {
            Incoming::Request { id, method, params } => self.begin(id, method, params, out).await,
            Incoming::Notification { method, params } => self.told(&method, &params),
            Incoming::Response { id, outcome } => self.answered(id, outcome),
        }
    }

    /// It has said what it works on, and with which servers.
    pub fn introduce(&self, introduction: Introduction) {
        let project = introduction.project;
        let project = project.map(|said| self.agent.works_in(said));
        *self.profile.write() = introduction.profile;
        let mut caller = self.caller.write();
        caller.project = project;
        caller.credential = introduction.credential;
        caller.sight = Arc::new(Sight::of(introduction.servers).with_tools(introduction.tools));
    }

    /// Begins a session of the legacy era: from now on the client can be asked. False when it had begun.
    pub fn greet(self: &Arc<Self>, name: String, version: String, answers: Answers) -> bool {
        self.agent.called(&name);
        let has_begun = Session::begin(self, name, version, answers);
        if has_begun {
            subscribe::tell_changes(self);
        }
        has_begun
    }

    /// Who it says it is, and what it can be asked, once a session has begun.
    pub fn greeted(&self) -> Option<(String, Answers)> {
        let hello = &self.session.get()?.attachment.hello;
        Some((hello.name.clone(), hello.answers))
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
        if self.owns_rounds {
            self.rounds.end();
        }
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

    pub(super) fn rounds(&self) -> &Rounds {
        &self.rounds
    }

    pub(super) fn out(&self) -> &Out {
        &self.out
    }

    /// It has introduced itself. False when it had before.
    pub(super) fn open_session(&self, session: Session) -> bool {
        self.session.set(session).is_ok()
    }

    /// Who it is towards the servers.
    pub(super) fn caller(&self) -> Caller {
        let mut caller = self.caller.read().clone();
        let config = Arc::clone(&self.context.config.read());
        let policy = &self.context.policy;
        let standing = policy.standing(&self.agent, caller.project.as_deref());
        let wanted = standing.profile.clone();
        let wanted = wanted.or_else(|| self.profile.read().clone());
        // It is found anew each time: the configuration may have changed, and the client may say who it is.
        if wanted.is_some() || !config.profiles.is_empty() {
            let profile = Chosen::of(
                &config.profiles,
                wanted.as_deref(),
                &self.agent.name(),
                caller.project.as_deref(),
                config.home.as_deref(),
            );
            if !matches!(profile, Chosen::None) {
                caller.sight = Arc::new(caller.sight.with_profile(profile));
            }
        }
        caller.standing = standing;
        caller
    }

    /// What whoever wants a profile that there is not is told.
    pub(super) fn no_such_profile(&self, name: &str) -> Failure {
        let config = Arc::clone(&self.context.config.read());
        let names: Vec<&str> = config.profiles.iter().map(|p| p.name.as_str()).collect();
        let near = nearest(name, names.iter().copied());
        let message = format!("there is no profile {name:?}");
        Failure::new(Reason::InvalidRequest, message).with(|details| {
            details.suggestion = near.map(str::to_owned);
            details.hint = Some(match names.is_empty() {
                true => "profiles stand under [profiles] in nexus.toml".to_owned(),
                false => format!("the profiles are: {}", names.join(", ")),
            });
        })
    }

    /// Goes on for as long as the client is here.
    pub fn keep(&self, task: AbortHandle) {
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
            let kind = Kind::Answer(Some(INVALID_REQUEST));
            out.send(refused, kind).await;
            return;
        }
        let (client, out, own) = (Arc::clone(self), out.clone(), id.clone());
        let task = tokio::spawn(async move {
            // Boxed: a task is moved several times before it runs.
            let outcome = Box::pin(client.answer(&own, &method, &params, &out)).await;
            let answer = Message {
                kind: Kind::Answer(outcome.as_ref().err().map(|error| error.code)),
                text: match outcome {
                    Ok(result) => outgoing::response(&own, &result),
                    Err(error) => outgoing::error_response(&own, &error),
                },
            };
            // It counts until there is room for its answer. Whoever has the answer may use the id again.
            let room = out.room().await;
            let was_there = client.requests.lock().remove(&own).is_some();
            if let Some(room) = room
                && was_there
            {
                room.send(answer);
            }
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
        if let Some(name) = read.meta.client_name() {
            self.agent.called(&name);
        }
        let dialect = params::dialect(method, &read.meta, self.session.get().is_some())?;
        if let Dialect::Modern { answers, .. } = dialect {
            self.agent.declare(answers);
        }
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
        self.introduce(Introduction {
            servers: hello.servers,
            project: hello.project.as_deref().and_then(folder),
            credential: None,
            // A newer bridge may know of more modes: what we do not know is the usual one.
            tools: ToolsMode::parse(&hello.tools),
            profile: hello.profile,
        });
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
        self.ended.notify_waiters();
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
}

/// A client that is here. When this goes, whatever goes on for the client ends.
#[derive(Debug)]
pub struct Present(Arc<Client>);

impl Deref for Present {
    type Target = Arc<Client>;

    fn deref(&self) -> &Arc<Client> {
        &self.0
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// What whoever sends something that is no message is told.
pub fn not_a_message(wrong: &EnvelopeError) -> (Bytes, Kind) {
    let code = match wrong {
        EnvelopeError::NotText(_) | EnvelopeError::Malformed(_) => -32700,
        _ => INVALID_REQUEST,
    };
    // Nobody can tell which request it was meant to be.
    let refused = outgoing::error_response(b"null", &error(code, wrong.to_string()));
    (refused, Kind::Answer(Some(code)))
}
