//! Questions to the client: how they are put in either era, and those that a fault puts in the middle of a call.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;

use serde_json::Value;
use serde_json::value::RawValue;

use super::call::Ticket;
use super::session::Answer;
use super::{Request, Server};
use crate::fault::{Fault, Plan};
use crate::reply::{self, Outcome, Reply, RpcError, quoted};

/// A question.
pub(super) struct Ask {
    /// Its name among those that are asked at once, in the modern era.
    pub(super) key: &'static str,
    pub(super) method: &'static str,
    pub(super) needs: Needs,
    pub(super) params: Cow<'static, str>,
}

/// What the client must be able to do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    Nothing,
    Sampling,
    Roots,
    Form,
    Url,
}

impl Needs {
    /// A member of `ClientCapabilities`.
    fn capability(self) -> &'static str {
        match self {
            Needs::Nothing => "",
            Needs::Sampling => r#""sampling":{}"#,
            Needs::Roots => r#""roots":{}"#,
            Needs::Form => r#""elicitation":{}"#,
            Needs::Url => r#""elicitation":{"url":{}}"#,
        }
    }

    pub(super) fn met_by(self, declared: &Value) -> bool {
        let elicitation = declared["elicitation"].as_object();
        match self {
            Needs::Nothing => true,
            Needs::Sampling => declared["sampling"].is_object(),
            Needs::Roots => declared["roots"].is_object(),
            // An empty object is the form alone: there was nothing else once.
            Needs::Form => {
                elicitation.is_some_and(|modes| modes.is_empty() || modes.contains_key("form"))
            }
            Needs::Url => elicitation.is_some_and(|modes| modes.contains_key("url")),
        }
    }
}

const SAMPLING: Ask = Ask {
    key: "answer",
    method: "sampling/createMessage",
    needs: Needs::Sampling,
    params: Cow::Borrowed(
        r#"{"messages":[{"role":"user","content":{"type":"text","text":"Say hello."}}],"maxTokens":64}"#,
    ),
};
const ROOTS: Ask = Ask {
    key: "answer",
    method: "roots/list",
    needs: Needs::Roots,
    params: Cow::Borrowed("{}"),
};
const ELICIT: Ask = Ask {
    key: "answer",
    method: "elicitation/create",
    needs: Needs::Form,
    params: Cow::Borrowed(
        r#"{"message":"What is your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","title":"Name"}},"required":["name"]}}"#,
    ),
};
const PING: Ask = Ask {
    key: "answer",
    method: "ping",
    needs: Needs::Nothing,
    params: Cow::Borrowed("{}"),
};

/// Odd on purpose: a client must give it back byte for byte.
pub(super) const STATE: &str = "nexus-test-server \"state\" \\ ü / \u{1F600}";

impl Ask {
    /// The question that a fault puts in this call.
    pub(super) fn due(plan: &Plan, turn: u64) -> Option<Ask> {
        [
            (Fault::AskSampling, SAMPLING),
            (Fault::AskRoots, ROOTS),
            (Fault::AskElicit, ELICIT),
        ]
        .into_iter()
        .find_map(|(fault, ask)| plan.at(fault, turn).then_some(ask))
    }

    /// Legacy: asks by a request of our own and waits for the answer, or for the cancellation.
    pub(super) fn put(&self, ticket: &Ticket, inbox: &Receiver<Answer>) {
        self.send(ticket);
        if let Ok(answer) = inbox.recv() {
            ticket.finish(Outcome::text(&answer.text, ""));
        }
    }

    /// Sends the question; the answer will come to the ticket's inbox under the number that is returned.
    pub(super) fn send(&self, ticket: &Ticket) -> u64 {
        let question = ticket.server.asks.fetch_add(1, Ordering::Relaxed);
        ticket.session.ask(question, &ticket.id);
        if let Some(wire) = &ticket.server.wire {
            wire.note(&format!("asked {question} {}", self.method));
        }
        let message = reply::outgoing(Some(question), self.method, &self.params);
        ticket.out.urgent(message);
        question
    }
}

/// Modern: the call ends in questions, and the client calls again with the answers and the state.
pub(super) fn input_required(asks: &[Ask], state: &str, capabilities: Option<&RawValue>) -> Reply {
    let declared: Value = capabilities
        .and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default();
    if !asks.iter().all(|ask| ask.needs.met_by(&declared)) {
        let needs: Vec<Needs> = asks.iter().map(|ask| ask.needs).collect();
        return Err(missing(&needs));
    }
    Ok(questions(asks.iter(), Some(state)))
}

/// The error for a client that cannot be asked.
pub(super) fn missing(needs: &[Needs]) -> RpcError {
    let needed: Vec<&str> = needs.iter().map(|needs| needs.capability()).collect();
    let needed = format!("{{{}}}", needed.join(","));
    RpcError::new(-32021, format!("Missing client capability: {needed}"))
        .with_data(format!(r#"{{"requiredCapabilities":{needed}}}"#))
}

/// An answer that is questions.
pub(super) fn questions<'a>(asks: impl Iterator<Item = &'a Ask>, state: Option<&str>) -> Outcome {
    let question = |ask: &Ask| {
        let Ask {
            key,
            method,
            params,
            ..
        } = ask;
        format!(r#""{key}":{{"method":"{method}","params":{params}}}"#)
    };
    let questions: Vec<String> = asks.map(question).collect();
    let questions = questions.join(",");
    let state = state.map_or(String::new(), |state| {
        format!(r#","requestState":{}"#, quoted(state))
    });
    Outcome {
        kind: "input_required",
        ..Outcome::complete(format!(r#""inputRequests":{{{questions}}}{state}"#))
    }
}

/// The fault ask-init: a client that waits for its answer before it gives ours waits for ever.
pub(super) fn before_start(server: &Arc<Server>, request: &Request<'_>, outcome: Outcome) {
    Ticket::new(server, request, 0).on_a_thread(None, move |ticket, inbox| {
        PING.send(ticket);
        SAMPLING.send(ticket);
        if inbox.recv().and_then(|_| inbox.recv()).is_ok() {
            ticket.finish(outcome);
        }
    });
}

/// Checks that the state came back as it was given out.
pub(super) fn check_state(state: Option<&str>) -> Result<(), RpcError> {
    match state {
        Some(STATE) => Ok(()),
        _ => Err(bad_state()),
    }
}

pub(super) fn bad_state() -> RpcError {
    RpcError::invalid_params("requestState is not the one that was given out")
}
