//! A client of the legacy era: it is asked over the stream that it calls on.

use super::{
    client::Client,
    message::{Kind, Out},
};
use crate::{
    agent::{Answers, Attachment, Hello, ToAgent},
    mcp::outgoing,
};
use serde_json::json;
use std::sync::Arc;
use tokio::sync::mpsc;

/// How many questions may wait for a client that does not read.
const WAITING: usize = 64;

/// What was agreed with a client at `initialize`.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) attachment: Arc<Attachment>,
}

impl Session {
    /// Begins it: from now on the client can be asked. False when it had begun before.
    pub(super) fn begin(
        client: &Arc<Client>,
        name: String,
        version: String,
        answers: Answers,
    ) -> bool {
        let (to, questions) = mpsc::channel(WAITING);
        let hello = Hello {
            name,
            version,
            answers,
            roots: None,
        };
        let attachment = Attachment::new(hello, to);
        let session = Self {
            attachment: Arc::clone(&attachment),
        };
        if !client.open_session(session) {
            return false;
        }
        client.agent().attach(attachment);
        let asking = tokio::spawn(ask(questions, client.out().clone()));
        client.keep(asking.abort_handle());
        true
    }
}

/// Puts questions to the client as requests of our own.
async fn ask(mut questions: mpsc::Receiver<ToAgent>, out: Out) {
    while let Some(question) = questions.recv().await {
        let (message, kind) = match question {
            ToAgent::Question(number, question) => (
                outgoing::question(number, &question.method, &question.params),
                Kind::Question,
            ),
            ToAgent::Withdrawn(number) => {
                (outgoing::cancelled(number, "no longer needed"), Kind::News)
            }
            ToAgent::ElicitationComplete(_, id) => {
                let params = json!({ "elicitationId": id }).to_string();
                let method = "notifications/elicitation/complete";
                let news = outgoing::notification(method, params.as_bytes());
                (news, Kind::News)
            }
        };
        if !out.send(message, kind).await {
            return;
        }
    }
}
