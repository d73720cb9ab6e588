//! What an agent has said of itself, and the questions that it is asked.

use super::Answers;
use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use serde_json::json;
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::sync::{mpsc, oneshot};

/// The user rejected it, as MCP has it.
const REJECTED: i64 = -1;
const METHOD_NOT_FOUND: i64 = -32601;

/// Who an agent is.
#[derive(Debug, Clone, Default)]
pub struct Hello {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it can be asked.
    pub answers: Answers,
    /// The folders that it works in; `None` for one that is to be asked for them.
    pub roots: Option<Vec<Root>>,
}

/// A folder that an agent works in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// A `file://` URI.
    pub uri: String,
    /// A name for people; may be empty.
    pub name: String,
}

/// A question of a server's.
#[derive(Debug, Clone)]
pub struct Question {
    /// The server that asks.
    pub server: String,
    /// What it asks for.
    pub method: String,
    /// The details: JSON text, empty for none.
    pub params: Bytes,
}

/// Why a question has no answer: a JSON-RPC error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The code.
    pub code: i64,
    /// A sentence.
    pub message: String,
}

impl Refusal {
    /// It cannot be asked this.
    pub fn cannot(method: &str) -> Self {
        Self {
            code: METHOD_NOT_FOUND,
            message: format!("this client cannot be asked {method}"),
        }
    }

    /// Nobody was there to answer, or nobody wanted to.
    pub fn rejected(why: &str) -> Self {
        Self {
            code: REJECTED,
            message: why.to_owned(),
        }
    }
}

/// What an agent is sent.
#[derive(Debug)]
pub enum ToAgent {
    /// A question, under a number of its own.
    Question(u64, Question),
    /// The question of that number need not be answered any more.
    Withdrawn(u64),
    /// What this server sent somebody to a page for, under this id, is done.
    ElicitationComplete(String, String),
}

type Answer = Result<Bytes, Refusal>;

/// An agent that has said who it is, for as long as it can be asked.
#[derive(Debug)]
pub struct Attachment {
    /// What it said.
    pub hello: Hello,
    /// What it can be asked, as a client declares it.
    pub(super) declaration: Bytes,
    roots: RwLock<Option<Vec<Root>>>,
    to: mpsc::Sender<ToAgent>,
    /// `None` once it can no longer be asked.
    open: Mutex<Option<HashMap<u64, oneshot::Sender<Answer>>>>,
    last: AtomicU64,
}

impl Attachment {
    /// `to` leads to the agent.
    pub fn new(hello: Hello, to: mpsc::Sender<ToAgent>) -> Arc<Self> {
        Arc::new(Self {
            declaration: hello.answers.declaration().into(),
            roots: RwLock::new(hello.roots.clone()),
            hello,
            to,
            open: Mutex::new(Some(HashMap::new())),
            last: AtomicU64::new(0),
        })
    }

    /// The folders that it works in now.
    pub fn roots(&self) -> Vec<Root> {
        self.roots.read().clone().unwrap_or_default()
    }

    /// Its folders have changed.
    pub fn set_roots(&self, roots: Vec<Root>) {
        *self.roots.write() = Some(roots);
    }

    /// It has answered. What nobody asked, or nobody waits for any more, is let go.
    pub fn answered(&self, number: u64, answer: Answer) {
        let waiting = self
            .open
            .lock()
            .as_mut()
            .and_then(|open| open.remove(&number));
        if let Some(waiting) = waiting {
            let _ = waiting.send(answer);
        }
    }

    /// Tells it that what it was sent to a page for is done. One that does not read misses it.
    pub(super) fn elicitation_complete(&self, server: &str, id: &str) {
        let done = ToAgent::ElicitationComplete(server.to_owned(), id.to_owned());
        let _ = self.to.try_send(done);
    }

    /// It can no longer be asked: whoever waits is told so.
    pub(super) fn close(&self) {
        self.open.lock().take();
    }

    pub(super) async fn ask(&self, question: Question) -> Answer {
        if !self.hello.answers.cover(&question.method, &question.params) {
            return Err(Refusal::cannot(&question.method));
        }
        if question.method == "roots/list"
            && let Some(roots) = &*self.roots.read()
        {
            return Ok(roots_list(roots));
        }
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let (answer, mut waiting) = oneshot::channel();
        let gone = || Refusal::rejected("the client has gone");
        match &mut *self.open.lock() {
            Some(open) => open.insert(number, answer),
            None => return Err(gone()),
        };
        let mut asked = Asked {
            attachment: self,
            number,
            told: false,
        };
        // An agent that does not read what it is sent is not waited for.
        if self
            .to
            .try_send(ToAgent::Question(number, question))
            .is_err()
        {
            return Err(Refusal::rejected(
                "the client has too many questions to answer",
            ));
        }
        asked.told = true;
        (&mut waiting).await.unwrap_or_else(|_| Err(gone()))
    }
}

fn roots_list(roots: &[Root]) -> Bytes {
    let roots = roots.iter().map(|root| match root.name.as_str() {
        "" => json!({ "uri": root.uri }),
        name => json!({ "uri": root.uri, "name": name }),
    });
    json!({ "roots": roots.collect::<Vec<_>>() })
        .to_string()
        .into()
}

/// A question that was put. Whoever goes away takes it back.
struct Asked<'a> {
    attachment: &'a Attachment,
    number: u64,
    told: bool,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let open = self
            .attachment
            .open
            .lock()
            .as_mut()
            .and_then(|open| open.remove(&self.number));
        if open.is_some() && self.told {
            // If this does not get through, an answer comes that nobody waits for.
            let _ = self.attachment.to.try_send(ToAgent::Withdrawn(self.number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attachment(answers: Answers, room: usize) -> (Arc<Attachment>, mpsc::Receiver<ToAgent>) {
        let (to, from) = mpsc::channel(room);
        let root = |uri: &str, name: &str| Root {
            uri: uri.into(),
            name: name.into(),
        };
        let hello = Hello {
            answers,
            roots: Some(vec![root("file:///a", ""), root("file:///b", "B")]),
            ..Hello::default()
        };
        (Attachment::new(hello, to), from)
    }

    fn question(method: &str) -> Question {
        Question {
            server: "s".into(),
            method: method.into(),
            params: Bytes::from_static(b"{}"),
        }
    }

    #[tokio::test]
    async fn an_answer_finds_its_question() {
        let (attachment, mut from) = attachment(Answers::ALL, 8);
        let (one, two) = tokio::join!(attachment.ask(question("sampling/createMessage")), async {
            let Some(ToAgent::Question(number, asked)) = from.recv().await else {
                panic!("no question");
            };
            assert_eq!(asked.method, "sampling/createMessage");
            attachment.answered(number + 7, Ok(Bytes::from_static(b"wrong")));
            attachment.answered(number, Ok(Bytes::from_static(b"right")));
            attachment.answered(number, Ok(Bytes::from_static(b"twice")));
        });
        assert_eq!(one.unwrap(), "right");
        let () = two;
    }

    #[tokio::test]
    async fn folders_are_told_without_asking() {
        let (attachment, _from) = attachment(Answers::ALL, 8);
        let roots = attachment.ask(question("roots/list")).await.unwrap();
        let roots: serde_json::Value = serde_json::from_slice(&roots).unwrap();
        let expected = json!({"roots": [{"uri": "file:///a"}, {"uri": "file:///b", "name": "B"}]});
        assert_eq!(roots, expected);
    }

    #[tokio::test]
    async fn a_question_that_nobody_waits_for_is_taken_back() {
        let (attachment, mut from) = attachment(Answers::ALL, 8);
        {
            let mut asking = std::pin::pin!(attachment.ask(question("elicitation/create")));
            assert!(futures_util::poll!(&mut asking).is_pending());
        }
        let Some(ToAgent::Question(asked, _)) = from.recv().await else {
            panic!("no question");
        };
        assert!(matches!(from.recv().await, Some(ToAgent::Withdrawn(n)) if n == asked));
    }

    #[tokio::test]
    async fn whoever_leaves_leaves_nobody_waiting() {
        let (attachment, _from) = attachment(Answers::ALL, 1);
        let mut asking = std::pin::pin!(attachment.ask(question("elicitation/create")));
        assert!(futures_util::poll!(&mut asking).is_pending());
        let crowded = attachment.ask(question("elicitation/create")).await;
        assert_eq!(crowded.unwrap_err().code, REJECTED);
        attachment.close();
        assert_eq!(asking.await.unwrap_err().code, REJECTED);
        assert!(
            attachment
                .ask(question("elicitation/create"))
                .await
                .is_err()
        );
    }
}
