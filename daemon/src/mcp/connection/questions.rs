//! What a legacy server asks its client, and who answers it.
//!
//! A question comes over the one stream that all calls share, and nothing in it tells which call it is
//! about. It is put to an agent only when no other agent's call could have caused it.

use super::Connection;
use crate::{
    agent::{Agent, Question, Refusal},
    mcp::outgoing,
};
use bytes::Bytes;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{
    borrow::Cow,
    collections::{HashMap, VecDeque},
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};
use tokio::{task::AbortHandle, time::sleep};

/// What only an agent can answer, not a go-between.
const AGENTS_QUESTIONS: [&str; 3] = ["sampling/createMessage", "elicitation/create", "roots/list"];

/// How many questions of one server may be open at once.
const MAX_OPEN: usize = 64;

/// Where every call that is under way may be waiting for an answer, waiting longer makes nothing plainer.
const STUCK: Duration = Duration::from_secs(2);

/// How many pages that somebody was sent to are remembered.
const MAX_PAGES: usize = 64;

/// The questions of a server that are being answered.
#[derive(Debug, Default)]
pub(super) struct Questions {
    open: Mutex<HashMap<Bytes, Option<AbortHandle>>>,
    /// Who was sent to a page, under the server's id for it. The oldest first.
    pages: Mutex<VecDeque<(String, Weak<Agent>)>>,
}

impl Questions {
    fn count(&self) -> usize {
        self.open.lock().len()
    }

    /// Remembers who was sent to a page, so that it can be told when that is done.
    fn note_page(&self, params: &[u8], agent: &Arc<Agent>) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params {
            elicitation_id: String,
        }
        let Ok(Params { elicitation_id }) = serde_json::from_slice(params) else {
            return;
        };
        let mut pages = self.pages.lock();
        if pages.len() >= MAX_PAGES {
            pages.pop_front();
        }
        pages.push_back((elicitation_id, Arc::downgrade(agent)));
    }

    /// Nobody waits for an answer any more.
    pub(super) fn end(&self) {
        for (_, task) in self.open.lock().drain() {
            if let Some(task) = task {
                task.abort();
            }
        }
    }
}

/// Whose calls are under way.
#[derive(Debug)]
enum Whose {
    Nobody,
    One(Arc<Agent>),
    /// Calls of several agents; so many calls.
    Many(usize),
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
        if !AGENTS_QUESTIONS.contains(&method.as_str()) {
            return self.respond(outgoing::error_response(&id, -32601, "Method not found"));
        }
        if !matches!(self.whose(), Whose::Nobody) {
            self.host.asks.store(true, Ordering::Relaxed);
        }
        {
            let mut open = self.questions.open.lock();
            if open.contains_key(&id) {
                drop(open);
                return self.odd();
            }
            if open.len() >= MAX_OPEN {
                drop(open);
                let message = "too many questions are open";
                return self.respond(outgoing::error_response(&id, -32603, message));
            }
            open.insert(id.clone(), None);
        }
        let task = tokio::spawn(answer(Arc::clone(self), id.clone(), method, params));
        if let Some(open) = self.questions.open.lock().get_mut(&id) {
            *open = Some(task.abort_handle());
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
            && self.listen_ended(id, None)
        {
            return;
        }
        match self.questions.open.lock().remove(id.as_bytes()) {
            Some(task) => {
                if let Some(task) = task {
                    task.abort();
                }
            }
            // It was answered a moment ago, as a rule.
            None => self.odd(),
        }
    }

    /// What somebody was sent to a page for is done: whoever it was is told.
    pub(super) fn page_done(&self, params: &[u8]) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            #[serde(borrow)]
            elicitation_id: Cow<'a, str>,
        }
        let Ok(Params { elicitation_id }) = serde_json::from_slice::<Params<'_>>(params) else {
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

    fn whose(&self) -> Whose {
        let table = self.table.lock();
        let mut calls = table
            .pending
            .values()
            .filter_map(|pending| pending.call.as_ref());
        let Some(first) = calls.next() else {
            return Whose::Nobody;
        };
        let mut count = 1;
        let mut many = false;
        for call in calls {
            count += 1;
            many |= call.agent.id() != first.agent.id();
        }
        if many {
            Whose::Many(count)
        } else {
            Whose::One(Arc::clone(&first.agent))
        }
    }

    /// The agent whose call caused a question, once that is plain.
    async fn culprit(&self) -> Result<Arc<Agent>, Refusal> {
        loop {
            let mut settled = std::pin::pin!(self.settled.notified());
            settled.as_mut().enable();
            match self.whose() {
                Whose::One(agent) => return Ok(agent),
                Whose::Nobody => {
                    let nobody = "no call is under way that this could be for";
                    return self.owner().ok_or_else(|| Refusal::rejected(nobody));
                }
                // Whoever asked waits, and others end: those that are left are its.
                Whose::Many(calls) if self.questions.count() < calls => settled.await,
                Whose::Many(_) => tokio::select! {
                    () = settled => {}
                    () = sleep(STUCK) => {
                        let message = "calls of several clients are under way: whose this is cannot be told";
                        return Err(Refusal::rejected(message));
                    }
                },
            }
        }
    }

    /// Done when no call of this agent's is under way.
    async fn without(&self, agent: &Arc<Agent>) {
        loop {
            let mut settled = std::pin::pin!(self.settled.notified());
            settled.as_mut().enable();
            match self.whose() {
                Whose::One(other) if other.id() == agent.id() => settled.await,
                Whose::Many(_) => settled.await,
                Whose::One(_) | Whose::Nobody => return,
            }
        }
    }
}

async fn answer(connection: Arc<Connection>, id: Bytes, method: String, params: Bytes) {
    let answer = find_answer(&connection, &method, params).await;
    if connection.questions.open.lock().remove(&id).is_none() {
        return;
    }
    connection.respond(match answer {
        Ok(result) => outgoing::response(&id, &result),
        // Nobody said no: the question was not put.
        Err(refusal) if refusal.code == -1 && method == "elicitation/create" => {
            outgoing::response(&id, b"{\"action\":\"cancel\"}")
        }
        Err(refusal) => outgoing::error_response(&id, refusal.code, &refusal.message),
    });
}

async fn find_answer(
    connection: &Arc<Connection>,
    method: &str,
    params: Bytes,
) -> Result<Bytes, Refusal> {
    let is_outside_calls = matches!(connection.whose(), Whose::Nobody);
    let agent = connection.culprit().await?;
    if method == "elicitation/create" {
        connection.questions.note_page(&params, &agent);
    }
    let question = Question {
        server: connection.host.server.clone(),
        method: method.to_owned(),
        params,
    };
    let answer = agent.ask(question);
    if is_outside_calls {
        return answer.await;
    }
    tokio::select! {
        answer = answer => answer,
        () = connection.without(&agent) => Err(Refusal::rejected("the call has ended")),
    }
}
