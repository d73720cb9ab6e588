//! The faults ask-*: a question to the client in the middle of a call, or before there can be any.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;

use serde_json::value::RawValue;

use super::call::Ticket;
use super::{Request, Server};
use crate::fault::{Fault, Plan};
use crate::reply::{self, Outcome, Reply, RpcError, quoted};

/// A question.
#[derive(Clone, Copy)]
pub(super) struct Ask {
    method: &'static str,
    capability: &'static str,
    params: &'static str,
}

const SAMPLING: Ask = Ask {
    method: "sampling/createMessage",
    capability: "sampling",
    params: r#"{"messages":[{"role":"user","content":{"type":"text","text":"Say hello."}}],"maxTokens":64}"#,
};
const ROOTS: Ask = Ask {
    method: "roots/list",
    capability: "roots",
    params: "{}",
};
const ELICIT: Ask = Ask {
    method: "elicitation/create",
    capability: "elicitation",
    params: r#"{"message":"What is your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","title":"Name"}},"required":["name"]}}"#,
};

const PING: Ask = Ask {
    method: "ping",
    capability: "",
    params: "{}",
};

/// Odd on purpose: a client must give it back byte for byte.
const STATE: &str = "nexus-test-server \"state\" \\ ü / \u{1F600}";

impl Ask {
    /// The question that is due in this call.
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
    pub(super) fn put(self, ticket: &Ticket, inbox: &Receiver<String>) {
        self.send(ticket);
        if let Ok(answer) = inbox.recv() {
            ticket.finish(Outcome::text(&answer, ""));
        }
    }

    /// Sends the question; the answer will come to the ticket's inbox.
    fn send(self, ticket: &Ticket) {
        let question = ticket.server.asks.fetch_add(1, Ordering::Relaxed);
        ticket.session.ask(question, &ticket.id);
        ticket
            .out
            .aside(reply::outgoing(Some(question), self.method, self.params));
    }

    /// Modern: the call ends in the question, and the client calls again with the answer.
    pub(super) fn input_required(self, capabilities: Option<&RawValue>) -> Reply {
        let declared: HashMap<String, &RawValue> = capabilities
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default();
        let Ask {
            method,
            capability,
            params,
        } = self;
        if !declared.contains_key(capability) {
            let data = format!(r#"{{"requiredCapabilities":{{"{capability}":{{}}}}}}"#);
            return Err(
                RpcError::new(-32021, format!("Missing client capability: {capability}"))
                    .with_data(data),
            );
        }
        let state = quoted(STATE);
        let members = format!(
            r#""inputRequests":{{"answer":{{"method":"{method}","params":{params}}}}},"requestState":{state}"#
        );
        Ok(Outcome {
            kind: "input_required",
            ..Outcome::complete(members)
        })
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
        _ => Err(RpcError::invalid_params(
            "requestState is not the one that was given out",
        )),
    }
}
