//! A client of the modern era is asked in an answer: its request ends in questions, and it asks again with
//! what it was asked.
//!
//! A modern server asks in the same way, and its questions, answers and states are passed on as they are. For a
//! legacy one, the call that is waiting meanwhile is held under a handle.

use super::{
    super::random::random,
    methods::{Asked, Request},
    params::{INVALID_PARAMS, error},
};
use crate::{
    agent::{Agent, Answers, Attachment, Hello, Question, Refusal, Speaks, ToAgent},
    mcp::envelope::RpcError,
    pool::key::Caller,
};
use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::{
    sync::mpsc,
    task::JoinHandle,
    time::{Instant, timeout},
};

/// How many calls of one client may be held, and of all who share.
const MAX_HELD: usize = 64;
const MAX_SHARED: usize = 1024;

/// How long a call waits for its client to come back with answers.
const PATIENCE: Duration = Duration::from_secs(30 * 60);

/// What is asked at once is asked together: this long after the first question.
const TOGETHER: Duration = Duration::from_millis(5);

/// The calls that wait for answers.
#[derive(Debug)]
pub struct Rounds {
    held: Mutex<HashMap<String, Held>>,
    most: usize,
}

impl Default for Rounds {
    /// Those of one client.
    fn default() -> Self {
        Self {
            held: Mutex::default(),
            most: MAX_HELD,
        }
    }
}

/// A call that waits for answers.
#[derive(Debug)]
struct Held {
    call: JoinHandle<Result<Bytes, RpcError>>,
    attachment: Arc<Attachment>,
    /// It is known to nobody else: with it, the call's questions end.
    _party: Arc<Agent>,
    questions: mpsc::Receiver<ToAgent>,
    /// By the keys that the client was given.
    open: HashMap<String, u64>,
    method: String,
    since: Instant,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.call.abort();
    }
}

impl Rounds {
    /// Those of clients that come over any connection.
    pub fn shared() -> Self {
        Self {
            most: MAX_SHARED,
            ..Self::default()
        }
    }

    /// Nobody will come back.
    pub(super) fn end(&self) {
        self.held.lock().clear();
    }

    fn hold(&self, held: Held) -> String {
        // Not to be guessed: a handle is as good as the call that it stands for.
        let handle = format!("nexus-{}", random::<16>());
        let mut all = self.held.lock();
        all.retain(|_, held| held.since.elapsed() < PATIENCE);
        if all.len() >= self.most {
            let oldest = all.iter().min_by_key(|(_, held)| held.since);
            let oldest = oldest.map(|(handle, _)| handle.clone());
            oldest.and_then(|oldest| all.remove(&oldest));
        }
        all.insert(handle.clone(), held);
        handle
    }

    /// The call that is held under this handle. Nothing if it is none of ours: a server may know it.
    fn take(&self, handle: &str) -> Option<Held> {
        self.held.lock().remove(handle)
    }
}

/// Answers a request of a client that can be asked: with a result, or with questions.
pub(super) async fn answer(asked: &Asked<'_>, answers: Answers) -> Result<Bytes, RpcError> {
    let handle = asked.params.request_state.as_deref();
    let mut held = match handle.and_then(|handle| asked.client.rounds().take(handle)) {
        Some(held) if held.method != asked.method => {
            return Err(error(INVALID_PARAMS, "requestState is of another request"));
        }
        Some(mut held) => {
            settle(&mut held, asked.params.input_responses);
            held
        }
        None => begin(asked, answers)?,
    };
    tokio::select! {
        // Questions first: a call that asks is not done.
        biased;
        first = held.questions.recv() => {
            let mut questions = Vec::new();
            held.open.clear();
            take(&mut held.open, &mut questions, first);
            while let Ok(next) = timeout(TOGETHER, held.questions.recv()).await {
                if next.is_none() {
                    break;
                }
                take(&mut held.open, &mut questions, next);
            }
            if questions.is_empty() {
                // It was taken back as soon as it was asked.
                return finish(held).await;
            }
            held.since = Instant::now();
            let handle = asked.client.rounds().hold(held);
            Ok(input_required(&questions, &handle))
        }
        done = &mut held.call => done.unwrap_or_else(|_| Err(error(-32603, "the call was given up"))),
    }
}

async fn finish(mut held: Held) -> Result<Bytes, RpcError> {
    let gone = |_| Err(error(-32603, "the call was given up"));
    (&mut held.call).await.unwrap_or_else(gone)
}

/// Begins the call as a party of its own: what is asked because of it is asked of it.
fn begin(asked: &Asked<'_>, answers: Answers) -> Result<Held, RpcError> {
    let (to, questions) = mpsc::channel(64);
    let hello = Hello {
        answers,
        ..Hello::default()
    };
    let attachment = Attachment::new(hello, to);
    let party = Arc::new(Agent::new(asked.client.agent().pid(), Speaks::Mcp));
    party.attach(Arc::clone(&attachment));
    let caller = Caller {
        party: Arc::clone(&party),
        ..asked.client.caller()
    };
    let request = Request::new(asked)?;
    let out = asked.out.clone();
    let call = tokio::spawn(async move { request.run(caller, &out).await });
    Ok(Held {
        call,
        attachment,
        _party: party,
        questions,
        open: HashMap::new(),
        method: asked.method.to_owned(),
        since: Instant::now(),
    })
}

/// Gives the answers that the client came back with to those who asked.
fn settle(held: &mut Held, responses: Option<&RawValue>) {
    let responses: HashMap<String, &RawValue> = responses
        .and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default();
    for (key, number) in held.open.drain() {
        let answer = match responses.get(&key) {
            Some(raw) => Ok(Bytes::copy_from_slice(raw.get().as_bytes())),
            None => Err(Refusal::rejected("the client came back without an answer")),
        };
        held.attachment.answered(number, answer);
    }
}

fn take(
    open: &mut HashMap<String, u64>,
    questions: &mut Vec<(String, Question)>,
    next: Option<ToAgent>,
) {
    match next {
        Some(ToAgent::Question(number, question)) => {
            let key = format!("question-{number}");
            open.insert(key.clone(), number);
            questions.push((key, question));
        }
        Some(ToAgent::Withdrawn(number)) => {
            open.retain(|_, asked| *asked != number);
            questions.retain(|(key, _)| open.contains_key(key));
        }
        Some(ToAgent::ElicitationComplete(..)) | None => {}
    }
}

fn input_required(questions: &[(String, Question)], handle: &str) -> Bytes {
    let mut out = br#"{"resultType":"input_required","inputRequests":{"#.to_vec();
    for (n, (key, question)) in questions.iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        let method = serde_json::Value::from(question.method.as_str());
        out.extend_from_slice(format!(r#""{key}":{{"method":{method}"#).as_bytes());
        let params: &[u8] = match question.params.is_empty() {
            true => b"{}",
            false => &question.params,
        };
        out.extend_from_slice(b",\"params\":");
        out.extend_from_slice(params);
        out.push(b'}');
    }
    out.extend_from_slice(format!(r#"}},"requestState":"{handle}"}}"#).as_bytes());
    out.into()
}
