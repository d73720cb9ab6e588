//! What a legacy server asks its client, and who answers it.
//!
//! A question comes over the one stream that all requests share, and nothing in it tells which of them it
//! is about. What could have caused it is taken down when it comes; it is put to an agent only when nothing
//! but that agent's calls is left of that.

use super::{Connection, Pending};
use crate::{
    agent::{Agent, Question, Refusal},
    mcp::{envelope::RpcError, outgoing},
};
use bytes::Bytes;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{
    borrow::Cow,
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{sync::Notify, task::AbortHandle, time::sleep};

/// What only an agent can answer, not a go-between.
const AGENTS_QUESTIONS: [&str; 3] = ["sampling/createMessage", "elicitation/create", "roots/list"];

/// How many questions of one server may be open at once.
const MAX_OPEN: usize = 64;

/// Where every request that is left may be waiting for an answer, waiting longer makes nothing plainer.
const STUCK: Duration = Duration::from_secs(2);

/// How many pages that somebody was sent to are remembered.
const MAX_PAGES: usize = 64;

/// The questions of a server that are being answered.
#[derive(Debug, Default)]
pub(super) struct Questions {
    open: Mutex<HashMap<Bytes, Open>>,
    /// How many there are: most servers never ask, and nobody is to take a lock for them.
    count: AtomicUsize,
    /// Rung when fewer requests could have caused one of them.
    plainer: Notify,
    /// Who was sent to a page, under the server's id for it. The oldest first.
    pages: Mutex<VecDeque<(String, Weak<Agent>)>>,
}

#[derive(Debug)]
struct Open {
    task: Option<AbortHandle>,
    /// The requests that could have caused it, and have not been answered.
    candidates: HashMap<u64, Candidate>,
}

/// Whose a request is that could have caused a question.
#[derive(Debug, Clone)]
pub(super) enum Candidate {
    /// Our own.
    Us,
    /// An agent's.
    Agent(Arc<Agent>),
    /// That of an agent which has given it up; the server may not have.
    Ghost(u64),
}

/// Whom a question goes to.
enum Culprit {
    Agent(Arc<Agent>),
    Nobody,
    /// A request that was given up, perhaps.
    Ghost,
    /// It cannot be told yet. `stuck`: all that are left may be waiting for an answer.
    Wait {
        stuck: bool,
    },
}

impl Questions {
    /// A request has been answered: what is asked from now on, and what was asked before, is not its.
    pub(super) fn answered(&self, id: u64) {
        self.change(|candidates| candidates.remove(&id).is_some());
    }

    /// A request has been given up, and the server was told. It may have caused what was asked before.
    pub(super) fn given_up(&self, id: u64, agent: u64) {
        self.change(|candidates| match candidates.get_mut(&id) {
            Some(candidate) => {
                *candidate = Candidate::Ghost(agent);
                true
            }
            None => false,
        });
    }

    fn change(&self, change: impl Fn(&mut HashMap<u64, Candidate>) -> bool) {
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut plainer = false;
        for open in self.open.lock().values_mut() {
            plainer |= change(&mut open.candidates);
        }
        if plainer {
            self.plainer.notify_waiters();
        }
    }

    /// Nobody waits for an answer any more.
    pub(super) fn end(&self) {
        let open = std::mem::take(&mut *self.open.lock());
        self.count.store(0, Ordering::Relaxed);
        for task in open.into_values().filter_map(|open| open.task) {
            task.abort();
        }
        // One whose task is not known yet sees that it is gone.
        self.plainer.notify_waiters();
    }

    fn close(&self, id: &[u8]) -> Option<Open> {
        let mut open = self.open.lock();
        let closed = open.remove(id);
        self.count.store(open.len(), Ordering::Relaxed);
        closed
    }

    fn culprit(&self, id: &[u8]) -> Option<Culprit> {
        let open = self.open.lock();
        let candidates = &open.get(id)?.candidates;
        let mut agents: Vec<&Arc<Agent>> = Vec::new();
        let (mut us, mut ghosts) = (false, Vec::new());
        for candidate in candidates.values() {
            match candidate {
                Candidate::Us => us = true,
                Candidate::Agent(agent) => {
                    if agents.iter().all(|known| known.id() != agent.id()) {
                        agents.push(agent);
                    }
                }
                Candidate::Ghost(agent) => ghosts.push(*agent),
            }
        }
        let stuck = open.len() >= candidates.len();
        Some(match &*agents {
            [] if us => Culprit::Wait { stuck },
            [] if ghosts.is_empty() => Culprit::Nobody,
            [] => Culprit::Ghost,
            [only] if ghosts.iter().all(|ghost| *ghost == only.id()) => match us {
                true => Culprit::Wait { stuck },
                false => Culprit::Agent(Arc::clone(only)),
            },
            // What was given up may be answered late, or never.
            _ if !ghosts.is_empty() => Culprit::Ghost,
            _ => Culprit::Wait { stuck },
        })
    }

    /// Whether a call of this agent's that could have caused it is still waited for.
    fn concerns(&self, id: &[u8], agent: &Agent) -> bool {
        let open = self.open.lock();
        let is_its = |candidate: &Candidate| matches!(candidate, Candidate::Agent(own) if own.id() == agent.id());
        open.get(id)
            .is_some_and(|open| open.candidates.values().any(is_its))
    }

    /// Remembers who was sent to a page, so that it can be told when that is done.
    fn note_page(&self, id: String, agent: &Arc<Agent>) {
        let mut pages = self.pages.lock();
        // Whoever was sent there before under the same id is not told of what somebody else did.
        pages.retain(|(known, _)| *known != id);
        if pages.len() >= MAX_PAGES {
            pages.pop_front();
        }
        pages.push_back((id, Arc::downgrade(agent)));
    }
}

/// The part of a question that sends somebody to a page.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    #[serde(borrow)]
    elicitation_id: Cow<'a, str>,
}

impl Connection {
    pub(super) fn asked(self: &Arc<Self>, id: Bytes, method: String, params: Bytes) {
        if self.is_modern() {
            // A modern server puts its questions into its answers, and is not to be answered.
            return self.odd();
        }
        if method == "ping" {
            return self.respond(outgoing::response(&id, b"{}"));
        }
        let refuse = |code, message: &str| {
            let error = RpcError::new(code, message);
            self.respond(outgoing::error_response(&id, &error));
        };
        if !AGENTS_QUESTIONS.contains(&method.as_str()) {
            return refuse(-32601, "Method not found");
        }
        {
            // Both at once: a request that is given up meanwhile is either a ghost already, or becomes one.
            let mut table = self.table.lock();
            let candidates = table.candidates();
            let mut open = self.questions.open.lock();
            if open.contains_key(&id) {
                drop((open, table));
                return self.odd();
            }
            if open.len() >= MAX_OPEN {
                drop((open, table));
                return refuse(-32603, "too many questions are open");
            }
            let in_a_call = candidates
                .values()
                .any(|c| matches!(c, Candidate::Agent(_)));
            if in_a_call {
                self.host.asks.store(true, Ordering::Relaxed);
                if method == "roots/list" {
                    self.host.asks_roots.store(true, Ordering::Relaxed);
                }
            }
            let task = None;
            open.insert(id.clone(), Open { task, candidates });
            self.questions.count.store(open.len(), Ordering::Relaxed);
        }
        let task = tokio::spawn(answer(Arc::clone(self), id.clone(), method, params));
        if let Some(open) = self.questions.open.lock().get_mut(&id) {
            open.task = Some(task.abort_handle());
        }
    }

    /// The server does not want an answer any more.
    pub(super) fn taken_back(&self, params: &[u8]) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            #[serde(borrow)]
            request_id: &'a RawValue,
        }
        let Ok(Params { request_id }) = serde_json::from_slice::<Params<'_>>(params) else {
            return self.odd();
        };
        let id = request_id.get();
        if let Ok(id) = id.parse()
            && self.listen_ended(id, || None)
        {
            return;
        }
        match self.questions.close(id.as_bytes()) {
            Some(open) => {
                if let Some(task) = open.task {
                    task.abort();
                }
            }
            // It was answered a moment ago, as a rule.
            None => self.odd(),
        }
    }

    /// What somebody was sent to a page for is done: whoever it was is told.
    pub(super) fn page_done(&self, params: &[u8]) {
        let Ok(Page { elicitation_id }) = serde_json::from_slice::<Page<'_>>(params) else {
            return self.odd();
        };
        let mut pages = self.questions.pages.lock();
        let at = pages.iter().position(|(id, _)| *id == elicitation_id);
        let sent = at.and_then(|at| pages.remove(at));
        drop(pages);
        if let Some(agent) = sent.and_then(|(_, agent)| agent.upgrade()) {
            agent.elicitation_complete(&self.host.server, &elicitation_id);
        }
    }

    /// A call that cannot go on before somebody has been to a page ends in an error that names it.
    pub(super) fn note_pages(&self, pending: &Pending, error: &RpcError) {
        const PAGE_FIRST: i64 = -32042;
        #[derive(Deserialize)]
        struct Data<'a> {
            #[serde(borrow)]
            elicitations: Vec<Page<'a>>,
        }
        let Some(call) = pending.call.as_ref().filter(|_| error.code == PAGE_FIRST) else {
            return;
        };
        if let Ok(data) = serde_json::from_slice::<Data<'_>>(&error.data) {
            for page in data.elicitations {
                let id = page.elicitation_id.into_owned();
                self.questions.note_page(id, &call.agent);
            }
        }
    }

    /// The agent whose call caused a question, once that is plain.
    async fn culprit(&self, id: &[u8]) -> Result<Arc<Agent>, Refusal> {
        let given_up = || Refusal::rejected("the call that this could be for was given up");
        loop {
            let mut plainer = std::pin::pin!(self.questions.plainer.notified());
            plainer.as_mut().enable();
            match self.questions.culprit(id) {
                Some(Culprit::Agent(agent)) => return Ok(agent),
                Some(Culprit::Nobody) => {
                    let nobody = "no call is under way that this could be for";
                    return self.owner().ok_or_else(|| Refusal::rejected(nobody));
                }
                // Taken back, or its server has gone: nobody will be told.
                Some(Culprit::Ghost) | None => return Err(given_up()),
                // Whoever asked waits, and others are answered: what is left is its.
                Some(Culprit::Wait { stuck: false }) => plainer.await,
                Some(Culprit::Wait { stuck: true }) => tokio::select! {
                    () = plainer => {}
                    () = sleep(STUCK) => {
                        let message = "calls of several clients are under way: whose this is cannot be told";
                        return Err(Refusal::rejected(message));
                    }
                },
            }
        }
    }

    /// Done when no call of this agent's that could have caused a question is waited for.
    async fn unconcerned(&self, id: &[u8], agent: &Agent) {
        loop {
            let mut plainer = std::pin::pin!(self.questions.plainer.notified());
            plainer.as_mut().enable();
            if !self.questions.concerns(id, agent) {
                return;
            }
            plainer.await;
        }
    }
}

async fn answer(connection: Arc<Connection>, id: Bytes, method: String, params: Bytes) {
    let answer = find_answer(&connection, &id, &method, params).await;
    if connection.questions.close(&id).is_none() {
        return;
    }
    connection.respond(match answer {
        Ok(result) => outgoing::response(&id, &result),
        // A form that was never shown, or that nobody filled in, was dismissed.
        Err(refusal) if refusal.code == -1 && method == "elicitation/create" => {
            outgoing::response(&id, b"{\"action\":\"cancel\"}")
        }
        Err(refusal) => {
            let error = RpcError::new(refusal.code, refusal.message);
            outgoing::error_response(&id, &error)
        }
    });
}

async fn find_answer(
    connection: &Arc<Connection>,
    id: &[u8],
    method: &str,
    params: Bytes,
) -> Result<Bytes, Refusal> {
    let agent = connection.culprit(id).await?;
    let is_in_a_call = connection.questions.concerns(id, &agent);
    if method == "elicitation/create"
        && let Ok(page) = serde_json::from_slice::<Page<'_>>(&params)
    {
        let page = page.elicitation_id.into_owned();
        connection.questions.note_page(page, &agent);
    }
    let question = Question {
        server: connection.host.server.clone(),
        method: method.to_owned(),
        params,
    };
    let answer = agent.ask(question);
    if !is_in_a_call {
        return answer.await;
    }
    tokio::select! {
        answer = answer => answer,
        () = connection.unconcerned(id, &agent) => Err(Refusal::rejected("the call has ended")),
    }
}
