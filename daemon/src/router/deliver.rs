//! Sends a request to a process of its server, again if that cannot do harm, and answers what the server
//! wants to know first.

use super::{
    limit::{LONGEST, within},
    requests::Round,
};
use crate::{
    agent::Question,
    mcp::{
        connection::{CallError, CallEvent, OnBehalf, Terms},
        offers::Offers,
        outgoing::{Ask, Param},
        revision::Revision,
        rounds::{self, InputRequired, MAX_ROUNDS},
    },
    policy::hygiene,
    pool::{Admission, Server, key::Caller},
};
use bytes::Bytes;
use futures_util::future::try_join_all;
use nexus_proto::level::LogLevel;
use nexus_proto::reason::{Failure, Reason};
use std::{pin::pin, sync::Arc, time::Duration};
use tokio::{
    sync::mpsc,
    time::{Instant, timeout},
};
use tracing::debug;

const RESOURCE_NOT_FOUND: i64 = -32002;
const INVALID_PARAMS: i64 = -32602;
const MISSING_CAPABILITY: i64 = -32021;

/// Something that is asked of a server on behalf of an agent.
pub(super) struct Job<'a> {
    pub(super) caller: &'a Caller,
    pub(super) server: Arc<Server>,
    /// What it is, for people. Nobody asks unless it fails.
    pub(super) what: &'a (dyn Fn() -> String + Sync),
    /// The tool or prompt, for programs.
    pub(super) item: Option<&'a str>,
    pub(super) method: &'static str,
    pub(super) params: &'a [(&'static str, Param<'a>)],
    /// What a server must have declared for it.
    pub(super) needs: fn(&Offers) -> bool,
    /// It may be carried out twice.
    pub(super) repeatable: bool,
    pub(super) events: Option<mpsc::Sender<CallEvent>>,
    pub(super) log_level: Option<LogLevel>,
    /// The caller answers in rounds of its own.
    pub(super) round: Option<&'a Round>,
    /// Arguments that the server wants to have in headers too.
    pub(super) headers: Vec<(String, String)>,
}

/// Waits no longer than the caller does. `sent` is set by the work once a server may have seen it.
pub(super) async fn before_deadline<T>(
    what: &str,
    deadline: Option<Duration>,
    sent: &mut bool,
    work: impl AsyncFnOnce(&mut bool) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let outcome = match deadline.map(|deadline| deadline.min(LONGEST)) {
        // Whatever it waits for has an end of its own.
        None => work(sent).await,
        Some(patience) => timeout(patience, work(sent)).await.unwrap_or_else(|_| {
            let message = format!("{what} was not answered within {patience:?}");
            Err(Failure::new(Reason::Deadline, message))
        }),
    };
    outcome.map_err(|failure| {
        let failure = hygiene::failure(failure);
        match failure.reason {
            Reason::Deadline => failure.with(|details| details.maybe_executed |= *sent),
            _ => failure,
        }
    })
}

impl Job<'_> {
    /// Has it done within the time that its server may take.
    pub(super) async fn run(&self, sent: &mut bool) -> Result<Bytes, Failure> {
        let limit = self.server.config().timeout;
        let config = self.server.config();
        let delivered = pin!(self.deliver(sent));
        let done = within(limit, &self.caller.party, &config.name, delivered).await;
        done.unwrap_or_else(|| {
            let message = format!("{} did not answer within {limit:?}", (self.what)());
            Err(Failure::new(Reason::Deadline, message))
        })
    }

    async fn deliver(&self, sent: &mut bool) -> Result<Bytes, Failure> {
        let mut may_repeat = self.repeatable;
        let mut lost_before = false;
        let mut admission = None;
        // What the server wanted to know, and what it wants to have back.
        let Round {
            responses: mut answers,
            mut state,
        } = self.round.cloned().unwrap_or_default();
        let mut rounds = 0;
        loop {
            // Once it may have been carried out, no later failure says that it was not.
            let about = |failure| self.about(failure, lost_before);
            let admitted: Admission = match admission.take() {
                Some(admitted) => admitted,
                None => self.server.admit(self.caller).await.map_err(about)?,
            };
            let member = Arc::clone(&admitted.member);
            let connection = member.ready(&self.server).await.map_err(about)?;
            let terms = connection.terms();
            if !terms.is_some_and(|terms| (self.needs)(&terms.offers)) {
                return Err(about(self.not_offered()));
            }
            let is_modern = terms.is_some_and(|terms| terms.revision.is_modern());
            if !is_modern && !state.is_empty() {
                return Err(about(self.state_of_nobody()));
            }
            let more = [
                ("inputResponses", Param::Json(&answers)),
                ("requestState", Param::Json(&state)),
            ];
            let with_more;
            let own = self.params_for(terms);
            let params = if is_modern && !(answers.is_empty() && state.is_empty()) {
                with_more = [own, &more].concat();
                &with_more
            } else {
                own
            };
            let began = Instant::now();
            let ask = Ask {
                method: self.method,
                params,
            };
            let answer = match connection.ask_for(&ask, self.behalf()) {
                Ok(waiting) => {
                    *sent = true;
                    waiting.await
                }
                Err(error) => Err(error),
            };
            match answer {
                Ok(result) => {
                    self.server.timings().add(began.elapsed());
                    let asks = if is_modern && self.round.is_none() {
                        rounds::read(&result)
                    } else {
                        None
                    };
                    let Some(asks) = asks else {
                        return Ok(result);
                    };
                    rounds += 1;
                    let asked = asks.map_err(|error| error.to_string());
                    let asked = asked.and_then(|asked| match rounds {
                        0..=MAX_ROUNDS => Ok(asked),
                        _ => Err(format!("it asks and asks: {MAX_ROUNDS} times so far")),
                    });
                    let asked = asked.map_err(|wrong| about(self.cannot_answer(&wrong)))?;
                    answers = self.answers(&asked).await.map_err(about)?;
                    state = asked.state;
                    admission = Some(admitted);
                    continue;
                }
                // Nobody has seen it: it goes to the next process.
                Err(CallError::NotSent(_)) => *sent = lost_before,
                Err(CallError::Lost(cause)) if std::mem::take(&mut may_repeat) => {
                    let cause = &cause.message;
                    let what = (self.what)();
                    debug!(what, cause, "lost: asked once more");
                    lost_before = true;
                }
                // The connection lives: there is nothing to wait for.
                Err(CallError::Dropped(why)) if std::mem::take(&mut may_repeat) => {
                    let what = (self.what)();
                    debug!(what, why, "lost: asked once more");
                    lost_before = true;
                    admission = Some(admitted);
                    continue;
                }
                Err(error) => return Err(about(self.failed(error))),
            }
            member.lost(&connection).await;
            if self.server.config().replicas == 1 {
                // It keeps its turn; where there are others, one of them may be faster.
                admission = Some(admitted);
            }
        }
    }

    /// The params that a server of this revision knows.
    fn params_for(&self, terms: Option<Terms>) -> &[(&'static str, Param<'_>)] {
        let knows_context = terms.is_some_and(|terms| terms.revision >= Revision::V2025_06_18);
        match self.params {
            [rest @ .., ("context", _)] if !knows_context => rest,
            all => all,
        }
    }

    fn behalf(&self) -> OnBehalf {
        OnBehalf {
            agent: Arc::clone(&self.caller.party),
            events: self.events.clone(),
            log_level: self.log_level,
            repeatable: self.repeatable,
            headers: self.headers.clone(),
        }
    }

    /// Has the agent answer what the server wants to know. All at once: it wants them all.
    async fn answers(&self, asked: &InputRequired) -> Result<Bytes, Failure> {
        let server = self.server.config().name.clone();
        let answers = asked.questions.iter().map(|asked| {
            let question = Question {
                server: server.clone(),
                method: asked.method.clone(),
                params: asked.params.clone(),
            };
            async move {
                match self.caller.party.ask(question).await {
                    Ok(answer) => Ok((asked.key.clone(), answer)),
                    // Nobody said no, and nobody said yes.
                    Err(refusal) if refusal.code == -1 && asked.method == "elicitation/create" => {
                        let cancelled = Bytes::from_static(b"{\"action\":\"cancel\"}");
                        Ok((asked.key.clone(), cancelled))
                    }
                    Err(refusal) => {
                        let wrong = format!("it asks {}: {}", asked.method, refusal.message);
                        Err(self.cannot_answer(&wrong))
                    }
                }
            }
        });
        Ok(rounds::responses(&try_join_all(answers).await?).into())
    }

    fn failed(&self, error: CallError) -> Failure {
        let was_lost = matches!(error, CallError::Lost(_) | CallError::Dropped(_));
        let mut failure = error.into_failure(&(self.what)());
        match failure.details.rpc_code {
            // The modern era has no code of its own for it, and nothing else that could be wrong.
            Some(RESOURCE_NOT_FOUND | INVALID_PARAMS) if self.method == "resources/read" => {
                failure.reason = Reason::ResourceNotFound;
            }
            Some(MISSING_CAPABILITY) => {
                failure.reason = Reason::CannotAnswer;
                let hint = "it has questions: use a client that can be asked";
                failure.details.hint = Some(hint.to_owned());
            }
            _ => {}
        }
        if was_lost && !self.repeatable {
            let hint = "the server may have carried it out: look before you call it again";
            failure.details.hint = Some(hint.to_owned());
        }
        failure
    }

    fn cannot_answer(&self, wrong: &str) -> Failure {
        let message = format!("{} cannot go on: {wrong}", (self.what)());
        Failure::new(Reason::CannotAnswer, message)
    }

    fn state_of_nobody(&self) -> Failure {
        let message = "requestState is not known: ask anew";
        Failure::new(Reason::InvalidRequest, message)
    }

    fn not_offered(&self) -> Failure {
        let name = self.server.config().name.clone();
        let method = self.method;
        let message = format!("the server {name:?} does not offer {method}");
        Failure::new(Reason::NotSupported, message)
    }

    fn about(&self, failure: Failure, lost_before: bool) -> Failure {
        failure.with(|details| {
            details.server = Some(self.server.config().name.clone());
            details.tool = self.item.map(str::to_owned);
            details.maybe_executed |= lost_before;
        })
    }
}
