//! What the tools of `--conformance` do, and the one prompt that asks.

mod inquiry;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use super::ask::{Needs, missing};
use super::call::Ticket;
use super::session::Answer;
use super::{Request, Server};
use crate::conformance::{Fixture, Topic};
use crate::eras::Dialect;
use crate::level;
use crate::message::Params;
use crate::reply::{self, Outcome, Reply};
use inquiry::Inquiry;

/// The rank of the level `info`.
const INFO: usize = 1;

impl Ticket {
    /// Executes a call and answers.
    pub(super) fn conform(self, fixture: Fixture, nonce: Option<&str>, params: &Params<'_>) {
        let reply = match fixture {
            Fixture::Done(outcome) => Ok(outcome),
            Fixture::Grow(list) => Ok(self.grow(list)),
            Fixture::NeedsSampling => self.needs_sampling(params),
            Fixture::Ask(topic) => return self.inquire(topic, nonce, params),
            Fixture::Progress(pause) => {
                return self.on_a_thread(nonce, move |ticket, inbox| {
                    progress(ticket, &inbox, pause);
                });
            }
            Fixture::Log(pause) => match self.least_level(params.meta.log_level.as_deref()) {
                Err(error) => Err(error),
                Ok(least) => {
                    let wanted = least.is_some_and(|least| INFO >= least);
                    return self.on_a_thread(nonce, move |ticket, inbox| {
                        log(ticket, &inbox, pause, wanted);
                    });
                }
            },
        };
        self.deliver(reply);
    }

    fn needs_sampling(&self, params: &Params<'_>) -> Reply {
        match Needs::Sampling.met_by(&self.declared(params)) {
            true => Ok(Outcome::text("The client has a model.", "")),
            false => Err(missing(&[Needs::Sampling])),
        }
    }

    /// Asks the client: in answers in the modern era, by requests of our own in the others.
    fn inquire(self, topic: Topic, nonce: Option<&str>, params: &Params<'_>) {
        let inquiry = Inquiry::about(&topic).of_what_can_be_asked(&self.declared(params));
        match (self.dialect, inquiry) {
            (Dialect::Modern, Ok(inquiry)) => self.deliver(inquiry.step(params)),
            (Dialect::Legacy, Ok(inquiry)) => {
                self.on_a_thread(nonce, move |ticket, inbox| inquiry.put(ticket, &inbox));
            }
            (Dialect::Modern, Err(needs)) => self.deliver(Err(missing(&needs))),
            (Dialect::Legacy, Err(needs)) => {
                let why = missing(&needs).message;
                self.deliver(Ok(Outcome::text(&why, r#""isError":true"#)));
            }
        }
    }

    /// What the client can be asked: it says so with each request, or at `initialize`.
    fn declared(&self, params: &Params<'_>) -> serde_json::Value {
        match self.dialect {
            Dialect::Legacy => self.session.capabilities(),
            Dialect::Modern => params
                .meta
                .capabilities
                .and_then(|raw| serde_json::from_str(raw.get()).ok())
                .unwrap_or_default(),
        }
    }
}

/// Answers the prompt that asks the user first.
pub(super) fn prompt(server: &Arc<Server>, request: &Request<'_>) {
    Ticket::new(server, request, 0).inquire(Topic::Context, None, &request.params);
}

fn progress(ticket: &Ticket, inbox: &Receiver<Answer>, pause: Duration) {
    for done in [0, 50, 100] {
        if done > 0 && is_cancelled(inbox, pause) {
            return;
        }
        if let Some(token) = &ticket.token {
            ticket.out.aside(reply::progress(token, done, 100));
        }
    }
    ticket.finish(Outcome::text("Done: 100 of 100.", ""));
}

fn log(ticket: &Ticket, inbox: &Receiver<Answer>, pause: Duration, wanted: bool) {
    let steps = [
        "Tool execution started",
        "Tool processing data",
        "Tool execution completed",
    ];
    for (number, step) in steps.into_iter().enumerate() {
        if number > 0 && is_cancelled(inbox, pause) {
            return;
        }
        if wanted {
            ticket.out.aside(level::message(INFO, step));
        }
    }
    ticket.finish(Outcome::text("Done, and logged.", ""));
}

/// Waits; true if the call was cancelled meanwhile.
fn is_cancelled(inbox: &Receiver<Answer>, pause: Duration) -> bool {
    inbox.recv_timeout(pause) == Err(RecvTimeoutError::Disconnected)
}
