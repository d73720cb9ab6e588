//! From a name to an answer: which server, is it good, which connection, and what became of it.

use crate::{
    catalog::{Catalog, Found, Named, NotFound, Tool},
    mcp::connection::{CallError, Progress},
    pool::{Admission, key::Caller},
};
use bytes::Bytes;
use nexus_proto::reason::{Failure, Reason};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, timeout},
};
use tracing::debug;

/// The longest that anybody may wait for anything.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// How long a server that might have a tool of some bare name is waited for.
const GUESS: Duration = Duration::from_secs(5);

/// A call of a tool.
#[derive(Debug)]
pub struct Call<'a> {
    /// Who calls.
    pub caller: &'a Caller,
    /// Any name of the tool.
    pub name: &'a str,
    /// JSON text; empty for none.
    pub arguments: Bytes,
    /// How long the caller waits.
    pub deadline: Option<Duration>,
    /// Where progress is told.
    pub progress: Option<mpsc::Sender<Progress>>,
}

/// The way from a name to an answer.
#[derive(Debug)]
pub struct Router {
    catalog: Arc<Catalog>,
    traffic: watch::Sender<Traffic>,
    calls: AtomicU64,
}

#[derive(Debug, Default)]
struct Traffic {
    in_flight: usize,
    closed: bool,
}

impl Router {
    /// A router for the tools of a catalog.
    pub fn new(catalog: Arc<Catalog>) -> Self {
        Self {
            catalog,
            traffic: watch::Sender::default(),
            calls: AtomicU64::new(0),
        }
    }

    /// Calls a tool. There is exactly one outcome; dropping the future cancels the call.
    pub async fn call(&self, call: Call<'_>) -> Result<Bytes, Failure> {
        let _lane = self.enter()?;
        if call.arguments.len() > crate::mcp::MAX_MESSAGE {
            return Err(Failure::new(
                Reason::TooLarge,
                format!(
                    "the arguments are too large: {} bytes, the limit is {}",
                    call.arguments.len(),
                    crate::mcp::MAX_MESSAGE
                ),
            ));
        }
        let patience = call.deadline.unwrap_or(LONGEST).min(LONGEST);
        let mut sent = false;
        let outcome = timeout(patience, async {
            let found = self.find(call.name, call.caller).await?;
            found.tool.check(&call.arguments)?;
            self.calls.fetch_add(1, Ordering::Relaxed);
            found.server.count_call();
            let limit = found.server.config().timeout;
            let answer = timeout(limit, self.deliver(&found, &call, &mut sent)).await;
            answer.unwrap_or_else(|_| {
                Err(Failure::new(
                    Reason::Deadline,
                    took_too_long(&found.tool, limit),
                ))
            })
        })
        .await;
        let outcome = outcome.unwrap_or_else(|_| {
            Err(Failure::new(
                Reason::Deadline,
                format!("{} was not answered within {patience:?}", call.name),
            ))
        });
        outcome.map_err(|failure| match failure.reason {
            Reason::Deadline => failure.with(|details| details.maybe_executed = sent),
            _ => failure,
        })
    }

    /// The tool of that name. A server whose tools are not known yet is waited for.
    pub async fn find(&self, name: &str, caller: &Caller) -> Result<Found, Failure> {
        let mut without = Vec::new();
        loop {
            match self.catalog.find(name, caller, &without) {
                Ok(found) => return Ok(found),
                Err(NotFound::Never(failure)) => return Err(failure),
                Err(NotFound::AskLater(server, named)) => {
                    let introduced = server.introduced(caller);
                    match named {
                        Named::Yes => introduced.await?,
                        // What it cannot tell soon is no reason not to ask the others.
                        Named::No => match timeout(GUESS, introduced).await {
                            Ok(Ok(())) => {}
                            Ok(Err(_)) | Err(_) => without.push(server),
                        },
                    }
                }
            }
        }
    }

    /// Sends the call, again if it was never written, and waits for what comes of it.
    async fn deliver(
        &self,
        found: &Found,
        call: &Call<'_>,
        sent: &mut bool,
    ) -> Result<Bytes, Failure> {
        let Found { server, tool } = found;
        let about = |failure: Failure| {
            failure.with(|details| {
                details.server = Some(tool.server.clone());
                details.tool = Some(tool.tool.clone());
            })
        };
        // A tool that can be called twice without harm is, if the operator believes the server in that.
        let mut may_repeat = tool.repeatable && server.config().trust_hints;
        let mut lost_before = false;
        // Once it may have been carried out, no later failure says that it was not.
        let about = |failure: Failure, lost_before: bool| {
            about(failure).with(|details| details.maybe_executed |= lost_before)
        };
        let mut admission = None;
        loop {
            let admitted: Admission = match admission.take() {
                Some(admitted) => admitted,
                None => {
                    let admitted = server.admit(call.caller).await;
                    admitted.map_err(|failure| about(failure, lost_before))?
                }
            };
            let member = Arc::clone(&admitted.member);
            let ready = member.ready(server).await;
            let connection = ready.map_err(|failure| about(failure, lost_before))?;
            let progress = call.progress.clone();
            let began = Instant::now();
            let answer = match connection.call_tool(&tool.tool, &call.arguments, progress) {
                Ok(waiting) => {
                    *sent = true;
                    waiting.await
                }
                Err(error) => Err(error),
            };
            match answer {
                Ok(result) => {
                    server.timings().add(began.elapsed());
                    return Ok(result);
                }
                // Nobody has seen it: it goes to the next process.
                Err(CallError::NotSent(_)) => *sent = lost_before,
                Err(CallError::Lost(cause)) if std::mem::take(&mut may_repeat) => {
                    debug!(
                        tool = tool.name,
                        cause = cause.message,
                        "lost: called once more"
                    );
                    lost_before = true;
                }
                Err(error) => return Err(about(call_failure(tool, error), lost_before)),
            }
            member.lost(&connection).await;
            if server.config().replicas == 1 {
                // It keeps its turn; where there are others, one of them may be faster.
                admission = Some(admitted);
            }
        }
    }

    /// How many calls are under way.
    pub fn in_flight(&self) -> usize {
        self.traffic.borrow().in_flight
    }

    /// How many calls there have been.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Whether new calls are refused.
    pub fn is_closed(&self) -> bool {
        self.traffic.borrow().closed
    }

    /// An error if new work is refused.
    pub fn check_open(&self) -> Result<(), Failure> {
        if self.is_closed() {
            return Err(shutting_down());
        }
        Ok(())
    }

    /// Refuses new calls from now on.
    pub fn close(&self) {
        self.traffic.send_modify(|traffic| traffic.closed = true);
    }

    /// Waits until no call is under way.
    pub async fn drained(&self) {
        let mut traffic = self.traffic.subscribe();
        let _ = traffic.wait_for(|traffic| traffic.in_flight == 0).await;
    }

    fn enter(&self) -> Result<Lane<'_>, Failure> {
        let mut entered = false;
        self.traffic.send_if_modified(|traffic| {
            entered = !traffic.closed;
            traffic.in_flight += usize::from(entered);
            false
        });
        if entered {
            return Ok(Lane(self));
        }
        Err(shutting_down())
    }
}

fn shutting_down() -> Failure {
    Failure::new(Reason::ShuttingDown, "the daemon is stopping")
        .with(|details| details.hint = Some("start it again with `nexusd`".to_owned()))
}

/// One call under way.
struct Lane<'a>(&'a Router);

impl Drop for Lane<'_> {
    fn drop(&mut self) {
        self.0.traffic.send_if_modified(|traffic| {
            traffic.in_flight -= 1;
            // Only whoever waits for the end wants to know.
            traffic.closed && traffic.in_flight == 0
        });
    }
}

fn took_too_long(tool: &Tool, limit: Duration) -> String {
    format!("{} did not answer within {limit:?}", tool.dotted())
}

fn call_failure(tool: &Tool, error: CallError) -> Failure {
    match error {
        CallError::Rpc(error) => Failure::new(Reason::ServerError, error.message).with(|details| {
            details.rpc_code = Some(error.code);
            if !error.data.is_empty() {
                details.rpc_data = Some(String::from_utf8_lossy(&error.data).into_owned());
            }
        }),
        CallError::NotSent(cause) => (*cause).clone(),
        CallError::Lost(cause) => Failure {
            reason: cause.reason,
            message: format!("{} was lost: {}", tool.dotted(), cause.message),
            details: cause.details.clone(),
        }
        .with(|details| {
            details.maybe_executed = true;
            details.hint = Some(
                "the server may have carried it out: look before you call it again".to_owned(),
            );
        }),
        CallError::Overloaded => Failure::new(
            Reason::Overloaded,
            format!(
                "{} cannot take more: too much waits to be read by it",
                tool.server
            ),
        ),
        CallError::TooLarge(length) => Failure::new(
            Reason::TooLarge,
            format!(
                "the answer of {} is too large: {length} bytes, the limit is {}",
                tool.dotted(),
                crate::mcp::MAX_MESSAGE
            ),
        )
        .with(|details| details.maybe_executed = true),
        CallError::Malformed(what) => Failure::new(
            Reason::ProtocolError,
            format!("the answer of {} is {what}", tool.dotted()),
        )
        .with(|details| details.maybe_executed = true),
    }
}
