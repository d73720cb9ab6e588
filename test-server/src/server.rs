//! The core: takes a message, answers through an [`Out`], knows nothing of transports.

mod answer;
mod ask;
mod call;
mod conformance;
mod interact;
mod listeners;
mod session;
mod start;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::value::RawValue;

use crate::catalog::{Catalog, List};
use crate::conformance::ASKING_PROMPT;
use crate::eras::{self, Dialect, Spoken};
use crate::fault::{self, Fault, Plan};
use crate::journal::Journal;
use crate::level;
use crate::message::{self, Incoming, Params};
use crate::options::{Era, Options};
use crate::out::Out;
use crate::prompts;
use crate::reply::{self, Outcome, Reply, RpcError, quoted};
use crate::resources::{self, Changes};
use crate::tools::Memory;
use crate::wire::Wire;
use listeners::Listeners;
pub(crate) use session::Session;
pub(crate) use session::locked;

/// The server of one process: shared by all its sessions.
pub(crate) struct Server {
    pub(crate) spoken: Spoken,
    pub(crate) plan: Plan,
    catalog: Catalog,
    journal: Option<Journal>,
    cancel_journal: Option<Journal>,
    pub(crate) wire: Option<Wire>,
    /// What a modern result says of how long it may be kept.
    caching: String,
    batch: bool,
    memory: Memory,
    changes: Changes,
    pub(crate) listeners: Listeners,
    calls: AtomicU64,
    requests: AtomicU64,
    starts: AtomicU64,
    lists: AtomicU64,
    asks: AtomicU64,
    /// Set by the fault hang-all.
    muted: AtomicBool,
    /// What the fault alloc has taken.
    ballast: Mutex<Vec<u8>>,
}

/// A request whose era is known.
struct Request<'a> {
    id: &'a str,
    dialect: Dialect,
    params: Params<'a>,
    session: &'a Arc<Session>,
    out: &'a Out,
}

impl Server {
    pub(crate) fn new(options: Options) -> io::Result<Arc<Server>> {
        let plan = Plan::new(options.faults.clone());
        let era = match plan.has(Fault::ExitOnProbe) || plan.has(Fault::IgnoreUnknown) {
            true => Era::Legacy,
            false => options.era,
        };
        Ok(Arc::new(Server {
            spoken: Spoken::new(era, &options.revisions),
            wire: options.wire.as_deref().and_then(Wire::open),
            caching: reply::caching(options.ttl, options.cache_scope),
            batch: options.batch,
            catalog: Catalog::new(&options)?,
            journal: options.journal.as_deref().map(Journal::open).transpose()?,
            cancel_journal: options
                .cancel_journal
                .as_deref()
                .map(Journal::open)
                .transpose()?,
            plan,
            memory: Memory::default(),
            changes: Changes::default(),
            listeners: Listeners::default(),
            calls: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            starts: AtomicU64::new(0),
            lists: AtomicU64::new(0),
            asks: AtomicU64::new(0),
            muted: AtomicBool::new(false),
            ballast: Mutex::default(),
        }))
    }

    /// How many `tools/call` have arrived.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Handles one message. What takes long goes on after the return, and answers through `out` later.
    pub(crate) fn handle(self: &Arc<Self>, session: &Arc<Session>, message: &[u8], out: &Out) {
        let out = &match self.batch {
            true => out.batched(),
            false => out.clone(),
        };
        match message::parse(message) {
            Ok(Incoming::Request { id, method, params }) => {
                self.request(session, out, id, &method, params)
            }
            Ok(Incoming::Notification { method, params }) => {
                self.notification(session, &method, params)
            }
            Ok(Incoming::Response { id, answer }) => session.answered(id, answer),
            Err(error) => self.respond(out, "null", Dialect::Legacy, &Err(error)),
        }
    }

    /// Ends all that a session has under way.
    #[cfg(feature = "http")]
    pub(crate) fn end(&self, session: &Session) {
        for nonce in session.end() {
            self.record_cancel(nonce.as_deref());
        }
        self.listeners.remove_session(session);
    }

    fn request(
        self: &Arc<Self>,
        session: &Arc<Session>,
        out: &Out,
        id: &str,
        method: &str,
        params: Option<&RawValue>,
    ) {
        let first = self.requests.fetch_add(1, Ordering::Relaxed) == 0;
        if first && method != "initialize" && self.plan.has(Fault::ExitOnProbe) {
            fault::exit_at_probe(method);
        }
        if self.is_muted() || start::is_start(method) && self.start_fails() {
            return out.hold();
        }
        let read = message::params(params).and_then(|params| {
            Ok((
                self.dialect(session.is_initialized(), method, &params)?,
                params,
            ))
        });
        let (dialect, params) = match read {
            Ok(read) => read,
            Err(error) => return self.respond(out, id, Dialect::Legacy, &Err(error)),
        };
        let request = Request {
            id,
            dialect,
            params,
            session,
            out,
        };
        match (method, dialect) {
            ("tools/call", _) => call::call(self, &request),
            ("subscriptions/listen", Dialect::Modern) => self.listen(&request),
            ("prompts/get", _)
                if self.catalog.has_fixtures()
                    && request.params.name.as_deref() == Some(ASKING_PROMPT) =>
            {
                conformance::prompt(self, &request);
            }
            _ => match self.answer_at_once(method, &request) {
                Ok(outcome) if start::is_start(method) && self.plan.has(Fault::AskInit) => {
                    ask::before_start(self, &request, outcome);
                }
                Err(error) if error.code == -32601 && self.plan.has(Fault::IgnoreUnknown) => {
                    out.hold();
                }
                reply => self.respond(out, id, dialect, &reply),
            },
        }
    }

    /// The era of a request; the fault bad-version has it that there is none.
    pub(crate) fn dialect(
        &self,
        initialized: bool,
        method: &str,
        params: &Params<'_>,
    ) -> Result<Dialect, RpcError> {
        match self.spoken.dialect(initialized, method, params)? {
            Dialect::Modern if self.plan.has(Fault::BadVersion) => Err(eras::unsupported(
                &format!("[{}]", quoted(eras::BAD)),
                eras::MODERN,
            )),
            dialect => Ok(dialect),
        }
    }

    fn answer_at_once(&self, method: &str, request: &Request<'_>) -> Reply {
        let (params, dialect) = (&request.params, request.dialect);
        let cursor = params.cursor.as_deref();
        match (method, dialect) {
            ("tools/list", _) => self.list_tools(cursor),
            ("resources/list", _) => self.catalog.list(List::Resources, cursor),
            ("resources/templates/list", _) if self.plan.has(Fault::TemplatesMissing) => {
                Err(RpcError::method_not_found(method))
            }
            ("resources/templates/list", _) => self.catalog.list(List::Templates, cursor),
            ("prompts/list", _) => self.catalog.list(List::Prompts, cursor),
            ("resources/read", _) => {
                resources::read(params.uri.as_deref(), dialect, &self.catalog, &self.changes)
            }
            ("prompts/get", _) => {
                prompts::get(params.name.as_deref(), params.arguments, &self.catalog)
            }
            ("completion/complete", _) => prompts::complete(
                params.r#ref.as_ref(),
                params.argument.as_ref(),
                params.context.as_ref(),
                &self.catalog,
            ),
            ("server/discover", Dialect::Modern) => Ok(self.discover()),
            ("initialize", Dialect::Legacy) => Ok(self.initialize(request)),
            ("ping", Dialect::Legacy) => Ok(Outcome::complete("")),
            ("resources/subscribe", Dialect::Legacy) => {
                let uri = resources::subscribable(params.uri.as_deref(), &self.catalog)?;
                self.listeners.subscribe(request.session, uri);
                Ok(Outcome::complete(""))
            }
            ("resources/unsubscribe", Dialect::Legacy) => {
                let uri = resources::subscribable(params.uri.as_deref(), &self.catalog)?;
                self.listeners.unsubscribe(request.session, uri);
                Ok(Outcome::complete(""))
            }
            ("logging/setLevel", Dialect::Legacy) => {
                let rank = level::rank(params.level.as_deref().unwrap_or_default())?;
                request.session.set_level(rank);
                Ok(Outcome::complete(""))
            }
            _ => Err(RpcError::method_not_found(method)),
        }
    }

    fn list_tools(&self, cursor: Option<&str>) -> Reply {
        let turn = self.lists.fetch_add(1, Ordering::Relaxed) + 1;
        if self.plan.since(Fault::ListError, turn) {
            return Err(RpcError::new(
                -32603,
                "Internal error: the tools cannot be listed",
            ));
        }
        if self.plan.since(Fault::CursorLoop, turn) {
            return Ok(self.catalog.looping_page());
        }
        self.catalog.list(List::Tools, cursor)
    }

    fn notification(&self, session: &Session, method: &str, params: Option<&RawValue>) {
        if method != "notifications/cancelled" {
            return;
        }
        if let Ok(Params {
            request_id: Some(id),
            ..
        }) = message::params(params)
        {
            if let Some(nonce) = session.cancel(id.get()) {
                self.record_cancel(nonce.as_deref());
            }
            self.listeners.remove(session, id.get());
        }
    }

    fn record_cancel(&self, nonce: Option<&str>) {
        if let Some(journal) = &self.cancel_journal {
            journal.record("cancelled", nonce);
        }
    }

    fn is_muted(&self) -> bool {
        self.muted.load(Ordering::Relaxed)
    }

    /// Sends a response as it should be.
    pub(crate) fn respond(&self, out: &Out, id: &str, dialect: Dialect, reply: &Reply) {
        if self.is_muted() {
            return out.hold();
        }
        self.stray(out);
        out.answer(
            reply::render(id, dialect, &self.caching, reply),
            reply.as_ref().err().map(|error| error.code),
        );
    }

    /// The fault unknown-id: a response that nobody waits for.
    fn stray(&self, out: &Out) {
        if self.plan.has(Fault::UnknownId) {
            out.aside(br#"{"jsonrpc":"2.0","id":999999999,"result":{}}"#.to_vec());
        }
    }
}
