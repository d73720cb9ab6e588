//! `tools/call`: the one method that most faults wait for.

use std::io;
use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use super::ask::{self, Ask};
use super::interact::Step;
use super::session::Answer;
use super::{Request, Server, Session, locked};
use crate::eras::Dialect;
use crate::fault::Fault;
use crate::interactive::Interactive;
use crate::out::Out;
use crate::platform;
use crate::reply::{self, Outcome, RpcError};
use crate::tools::{self, Job, Refusal};

/// A call that is under way, and all that its answer needs.
#[derive(Clone)]
pub(super) struct Ticket {
    pub(super) server: Arc<Server>,
    pub(super) session: Arc<Session>,
    pub(super) out: Out,
    pub(super) id: String,
    pub(super) dialect: Dialect,
    /// The how-manieth call of the process it is; 0 if it is no call.
    pub(super) turn: u64,
    /// The caller's progress token, as it was written.
    pub(super) token: Option<String>,
}

/// Checks a call, executes it and answers, here or on a thread of its own.
pub(super) fn call(server: &Arc<Server>, request: &Request<'_>) {
    let turn = server.calls.fetch_add(1, Ordering::Relaxed) + 1;
    if before_call(server, turn) {
        return request.out.hold();
    }
    let params = &request.params;
    let ticket = Ticket::new(server, request, turn);
    let Some(name) = params.name.as_deref() else {
        return ticket.deliver(Err(RpcError::invalid_params("name is required")));
    };
    let arguments = params.arguments.map_or("{}", |raw| raw.get());
    if let Some(told) = server.catalog.in_file("error") {
        let message = told["message"].as_str().unwrap_or_default();
        let error = RpcError::new(-32000, message).with_data(told["data"].to_string());
        return ticket.deliver(Err(error));
    }
    let (job, nonce) = match tools::prepare(&server.catalog, name, arguments) {
        Ok(prepared) => prepared,
        Err(Refusal::UnknownTool) => {
            return ticket.deliver(Err(RpcError::new(-32602, format!("Unknown tool: {name}"))));
        }
        Err(Refusal::BadArguments(why)) => {
            return ticket.deliver(Ok(Outcome::text(&why, r#""isError":true"#)));
        }
    };
    let asked = Ask::due(&server.plan, turn);
    if ticket.dialect == Dialect::Modern
        && params.input_responses.is_none()
        && let Some(ask) = asked
    {
        let reply = ask::input_required(&[ask], ask::STATE, params.meta.capabilities);
        return ticket.deliver(reply);
    }
    let retried = match (&job, ticket.dialect, params.input_responses) {
        (Job::Interactive(Interactive::Ask(asking)), Dialect::Modern, _) => {
            match asking.step(params) {
                Ok(Step::Told(outcome)) => Some(outcome),
                Ok(Step::Asked(outcome)) => return ticket.deliver(Ok(outcome)),
                Err(error) => return ticket.deliver(Err(error)),
            }
        }
        // It reads the answers itself.
        (Job::Fixture(_), ..) => None,
        (_, Dialect::Modern, Some(responses)) => {
            match ask::check_state(params.request_state.as_deref()) {
                Ok(()) => Some(Outcome::text(responses.get(), "")),
                Err(error) => return ticket.deliver(Err(error)),
            }
        }
        _ => None,
    };
    let nonce = params.meta.nonce.as_deref().or(nonce.as_deref());
    if let Some(journal) = &server.journal {
        journal.record(name, nonce);
    }
    match (retried, asked, job) {
        (Some(outcome), ..) => ticket.deliver(Ok(outcome)),
        (None, Some(ask), _) => {
            ticket.on_a_thread(nonce, move |ticket, inbox| ask.put(ticket, &inbox))
        }
        (None, None, Job::Slow { duration, steps }) => {
            ticket.on_a_thread(nonce, move |ticket, inbox| {
                slow(ticket, &inbox, duration, steps)
            });
        }
        (None, None, Job::Quick(quick)) => ticket.deliver(Ok(tools::run(quick, &server.memory))),
        (None, None, Job::Interactive(job)) => ticket.interact(job, nonce, params),
        (None, None, Job::Fixture(fixture)) => ticket.conform(fixture, nonce, params),
    }
}

/// The faults that strike as a call arrives; true if it is not to be answered.
fn before_call(server: &Server, turn: u64) -> bool {
    let due = |fault| server.plan.at(fault, turn);
    if due(Fault::Exit) {
        exit(7);
    }
    if due(Fault::Segv) {
        platform::crash();
    }
    if due(Fault::CloseStdout) {
        platform::close_stdout();
    }
    if let Some(mebibytes) = server.plan.number(Fault::Alloc) {
        let bytes = usize::try_from(mebibytes.saturating_mul(1 << 20)).unwrap_or(usize::MAX);
        let mut ballast = locked(&server.ballast);
        // Given back before it is taken anew: there is never twice as much.
        *ballast = Vec::new();
        // Not zero, or the system would promise the pages and not give them.
        *ballast = vec![1; bytes];
    }
    due(Fault::Hang)
}

impl Ticket {
    pub(super) fn new(server: &Arc<Server>, request: &Request<'_>, turn: u64) -> Ticket {
        let token = request.params.meta.progress_token;
        Ticket {
            server: server.clone(),
            session: request.session.clone(),
            out: request.out.clone(),
            id: request.id.to_owned(),
            dialect: request.dialect,
            turn,
            token: token.map(|raw| raw.get().to_owned()),
        }
    }

    /// Goes on with the call on a thread of its own, so that other requests are answered meanwhile.
    pub(super) fn on_a_thread(
        self,
        nonce: Option<&str>,
        work: impl FnOnce(&Ticket, Receiver<Answer>) + Send + 'static,
    ) {
        let Some(inbox) = self.session.begin(&self.id, nonce) else {
            let error = RpcError::new(-32600, format!("Invalid request: id {} is in use", self.id));
            return self.deliver(Err(error));
        };
        let ticket = self.clone();
        if let Err(error) = spawn(move || work(&ticket, inbox)) {
            self.session.finish(&self.id);
            self.deliver(Err(RpcError::new(
                -32603,
                format!("Internal error: no thread: {error}"),
            )));
        }
    }

    /// Ends a call on its thread: a cancelled one is not answered.
    pub(super) fn finish(&self, outcome: Outcome) {
        if self.session.finish(&self.id) {
            self.clone().deliver(Ok(outcome));
        }
    }
}

/// Starts a thread with a small stack: hundreds may be asleep at once.
pub(super) fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new()
        .name("call".to_owned())
        .stack_size(256 * 1024)
        .spawn(work)
        .map(drop)
}

fn slow(ticket: &Ticket, inbox: &Receiver<Answer>, duration: Duration, steps: u32) {
    for step in 1..=steps {
        if inbox.recv_timeout(duration / steps) != Err(RecvTimeoutError::Timeout) {
            return;
        }
        if let Some(token) = &ticket.token {
            ticket.out.aside(reply::progress(token, step, steps));
        }
    }
    let text = format!("Done: {steps} steps in {} seconds.", duration.as_secs_f64());
    ticket.finish(Outcome::text(&text, ""));
}
