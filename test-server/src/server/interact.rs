//! What the tools of `--interactive` do.

use std::collections::HashMap;
use std::sync::mpsc::Receiver;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::ask::{Ask, Needs, STATE, bad_state, input_required};
use super::call::Ticket;
use super::session::Answer;
use crate::catalog::List;
use crate::eras::Dialect;
use crate::interactive::{Asking, Interactive, Kind};
use crate::level;
use crate::message::Params;
use crate::odd;
use crate::reply::{self, Outcome, Reply, RpcError, quoted};
use crate::resources;

const ERROR: &str = r#""isError":true"#;

/// What a modern call of `ask` comes to.
pub(super) enum Step {
    /// Another question.
    Asked(Outcome),
    /// All answers.
    Told(Outcome),
}

/// What a modern call of `ask` has given the client to keep, after the odd text that it begins with.
#[derive(Deserialize)]
struct State<'a> {
    kind: Kind,
    text: String,
    rounds: usize,
    /// The answers of the rounds before.
    #[serde(borrow)]
    told: Vec<&'a RawValue>,
}

impl Asking {
    /// Legacy: asks by requests of our own, round after round; the call may be cancelled meanwhile.
    pub(super) fn put(&self, ticket: &Ticket, inbox: &Receiver<Answer>) {
        let mut told = Vec::new();
        for _ in 0..self.rounds {
            let (pid, call, round) = (std::process::id(), ticket.turn, told.len() + 1);
            let elicitation = format!("elicitation-{pid}-{call}-{round}");
            let asks = self.asks(Some(&elicitation));
            let mut answers: HashMap<u64, String> = HashMap::new();
            let numbers: Vec<u64> = asks.iter().map(|ask| ask.send(ticket)).collect();
            while answers.len() < asks.len() {
                let Ok(answer) = inbox.recv() else { return };
                answers.insert(answer.question, bare(&answer.text).to_owned());
            }
            let answers: Vec<&str> = numbers.iter().map(|number| &*answers[number]).collect();
            if self.kind == Kind::Url && is_accepted(answers[0]) {
                let params = format!(r#"{{"elicitationId":{}}}"#, quoted(&elicitation));
                let method = "notifications/elicitation/complete";
                ticket.out.aside(reply::outgoing(None, method, &params));
            }
            told.push(together(&asks, &answers));
        }
        ticket.finish(self.outcome(&told));
    }

    /// Why it cannot be asked in a legacy revision.
    pub(super) fn too_new_for(&self, revision: &str) -> Option<Outcome> {
        let since = match self.kind {
            Kind::Sampling | Kind::Roots => return None,
            Kind::Elicitation | Kind::Both => "2025-06-18",
            Kind::Url => "2025-11-25",
        };
        let why = format!("This cannot be asked in {revision}: it came with {since}");
        (revision < since).then(|| Outcome::text(&why, ERROR))
    }

    /// Modern: one round. All that is known of those before comes with the call.
    pub(super) fn step(&self, params: &Params<'_>) -> Result<Step, RpcError> {
        let asks = self.asks(None);
        let mut told = Vec::new();
        if params.request_state.is_some() || params.input_responses.is_some() {
            told = self.told_before(params.request_state.as_deref())?;
            let answers = answers(&asks, params.input_responses)?;
            told.push(together(&asks, &answers));
        }
        if told.len() == self.rounds {
            return Ok(Step::Told(self.outcome(&told)));
        }
        let state = self.state(&told);
        input_required(&asks, &state, params.meta.capabilities).map(Step::Asked)
    }

    /// What is asked at once; a legacy elicitation by URL has an id.
    fn asks(&self, elicitation: Option<&str>) -> Vec<Ask> {
        let text = quoted(&self.text);
        let sampling = || {
            let message = format!(r#"{{"role":"user","content":{{"type":"text","text":{text}}}}}"#);
            let params = format!(r#"{{"messages":[{message}],"maxTokens":64}}"#);
            ("sampling/createMessage", Needs::Sampling, params)
        };
        let form = || {
            let schema = r#"{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"]}"#;
            let params = format!(r#"{{"message":{text},"requestedSchema":{schema}}}"#);
            ("elicitation/create", Needs::Form, params)
        };
        let url = || {
            let id = elicitation.map_or(String::new(), |id| {
                format!(r#","elicitationId":{}"#, quoted(id))
            });
            let params =
                format!(r#"{{"mode":"url","message":{text},"url":"https://example.com/ask"{id}}}"#);
            ("elicitation/create", Needs::Url, params)
        };
        let roots = || ("roots/list", Needs::Roots, "{}".to_owned());
        let asks = match self.kind {
            Kind::Sampling => vec![("sampling", sampling())],
            Kind::Elicitation => vec![("elicitation", form())],
            Kind::Url => vec![("url", url())],
            Kind::Roots => vec![("roots", roots())],
            Kind::Both => vec![("elicitation", form()), ("roots", roots())],
        };
        let ask = |(key, (method, needs, params)): (_, (_, _, String))| Ask {
            key,
            method,
            needs,
            params: params.into(),
        };
        asks.into_iter().map(ask).collect()
    }

    fn state(&self, told: &[String]) -> String {
        let kind = match self.kind {
            Kind::Sampling => "sampling",
            Kind::Elicitation => "elicitation",
            Kind::Url => "url",
            Kind::Roots => "roots",
            Kind::Both => "both",
        };
        let (text, rounds, told) = (quoted(&self.text), self.rounds, told.join(","));
        format!(r#"{STATE} {{"kind":"{kind}","text":{text},"rounds":{rounds},"told":[{told}]}}"#)
    }

    /// The answers of the rounds before, from the state of a call that is made again.
    fn told_before(&self, state: Option<&str>) -> Result<Vec<String>, RpcError> {
        let kept = state.and_then(|state| state.strip_prefix(STATE));
        let state: State<'_> = kept
            .and_then(|kept| serde_json::from_str(kept).ok())
            .ok_or_else(bad_state)?;
        let asked = Asking {
            kind: state.kind,
            text: state.text,
            rounds: state.rounds,
        };
        if asked != *self || state.told.len() >= self.rounds {
            return Err(bad_state());
        }
        let told = state.told.iter().map(|raw| raw.get().to_owned());
        Ok(told.collect())
    }

    fn outcome(&self, told: &[String]) -> Outcome {
        match told {
            [one] => Outcome::text(one, ""),
            all => Outcome::text(&format!("[{}]", all.join(",")), ""),
        }
    }
}

/// The answers to all that was asked, in its order.
fn answers<'a>(asks: &[Ask], responses: Option<&'a RawValue>) -> Result<Vec<&'a str>, RpcError> {
    let responses: HashMap<String, &RawValue> = responses
        .and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default();
    let answer = |ask: &Ask| {
        let found = responses.get(ask.key).map(|raw| raw.get());
        found.ok_or_else(|| RpcError::invalid_params(format!("inputResponses lacks {}", ask.key)))
    };
    asks.iter().map(answer).collect()
}

/// One answer as it is, several as an object.
fn together(asks: &[Ask], answers: &[&str]) -> String {
    if let [answer] = answers {
        return (*answer).to_owned();
    }
    let members: Vec<String> = asks
        .iter()
        .zip(answers)
        .map(|(ask, answer)| format!(r#""{}":{answer}"#, ask.key))
        .collect();
    format!("{{{}}}", members.join(","))
}

/// The result of an answer, or the answer itself if it is an error.
fn bare(answer: &str) -> &str {
    let result = answer.strip_prefix(r#"{"result":"#);
    result
        .and_then(|rest| rest.strip_suffix('}'))
        .unwrap_or(answer)
}

fn is_accepted(answer: &str) -> bool {
    let answer: Value = serde_json::from_str(answer).unwrap_or_default();
    answer["action"] == "accept"
}

impl Ticket {
    /// Executes a call and answers; a modern `ask` has been answered before.
    pub(super) fn interact(self, job: Interactive, nonce: Option<&str>, params: &Params<'_>) {
        let reply = match job {
            Interactive::Ask(asking) => {
                let revision = self.session.revision().unwrap_or_default();
                match asking.too_new_for(revision) {
                    Some(refusal) => Ok(refusal),
                    None => {
                        return self.on_a_thread(nonce, move |ticket, inbox| {
                            asking.put(ticket, &inbox);
                        });
                    }
                }
            }
            Interactive::Log {
                rank,
                message,
                count,
            } => self.log(rank, &message, count, params.meta.log_level.as_deref()),
            Interactive::Touch(uri) => Ok(self.touch(&uri)),
            Interactive::Grow(list) => Ok(self.grow(list)),
            Interactive::Odd(n) => Ok(odd(n)),
        };
        self.deliver(reply);
    }

    /// The rank of the least log messages that are wanted; nothing if none are.
    pub(super) fn least_level(&self, wanted: Option<&str>) -> Result<Option<usize>, RpcError> {
        Ok(match (self.dialect, wanted) {
            (Dialect::Legacy, _) => Some(self.session.level()),
            (Dialect::Modern, None) => None,
            (Dialect::Modern, Some(level)) => Some(level::rank(level)?),
        })
    }

    /// The tool `log`. A legacy session hears of all, until it has said from what level on; a modern call only if
    /// it says so itself.
    fn log(&self, rank: usize, message: &str, count: Option<u32>, wanted: Option<&str>) -> Reply {
        let least = self.least_level(wanted)?;
        if least.is_none_or(|least| rank < least) {
            return Ok(Outcome::text("0", ""));
        }
        for number in 1..=count.unwrap_or(1) {
            let text = match count {
                None => message.to_owned(),
                Some(_) => format!("{message} {number}"),
            };
            self.out.aside(level::message(rank, &text));
        }
        Ok(Outcome::text(&count.unwrap_or(1).to_string(), ""))
    }

    /// The tool `touch`.
    fn touch(&self, uri: &str) -> Outcome {
        if !resources::exists(uri, &self.server.catalog) {
            return Outcome::text(&format!("There is no resource {uri}"), ERROR);
        }
        self.server.changes.add(uri);
        let told = self.server.listeners.resource_updated(uri);
        Outcome::text(&told.to_string(), "")
    }

    /// The tool `grow`.
    pub(super) fn grow(&self, list: List) -> Outcome {
        let name = self.server.catalog.grow(list);
        self.server.listeners.list_changed(list);
        Outcome::text(&name, "")
    }
}

/// The tool `odd`.
fn odd(n: usize) -> Outcome {
    match odd::odd_result(n) {
        Some(result) => Outcome::whole(result),
        None => Outcome::text(&format!("There is no odd result {n}"), ERROR),
    }
}
