//! A fake of the service that asks agents.

use super::{World, connection::Number};
use nexus_proto::{
    reason::{Failure, Reason},
    v1::{
        self, agents_attach_request::Message as Says, agents_attach_response::Message as Told,
        agents_server,
    },
};
use std::{collections::HashMap, pin::Pin, sync::Mutex, time::Duration};
use tokio::sync::{Notify, mpsc};
use tokio_stream::{Stream, wrappers::UnboundedReceiverStream};
use tonic::{Request, Response, Status, Streaming};

/// What came in by a connection, in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Came {
    Attached,
    Call,
}

type Told_ = Result<v1::AgentsAttachResponse, Status>;

/// Who is attached, and what they said.
pub(crate) struct Desk {
    /// How the next attachments go; they go well when it is empty.
    pub(crate) refusals: Mutex<Vec<Status>>,
    pub(crate) hellos: Mutex<Vec<(Number, v1::AgentHello)>>,
    pub(crate) order: Mutex<Vec<(Number, Came)>>,
    /// An attachment has been made.
    pub(crate) attached: Notify,
    /// An attachment has ended.
    pub(crate) detached: Notify,
    lines: Mutex<HashMap<Number, mpsc::UnboundedSender<Told_>>>,
    said: mpsc::UnboundedSender<Says>,
    heard: tokio::sync::Mutex<mpsc::UnboundedReceiver<Says>>,
}

impl Default for Desk {
    fn default() -> Self {
        let (said, heard) = mpsc::unbounded_channel();
        Self {
            refusals: Mutex::default(),
            hellos: Mutex::default(),
            order: Mutex::default(),
            attached: Notify::default(),
            detached: Notify::default(),
            lines: Mutex::default(),
            said,
            heard: heard.into(),
        }
    }
}

impl Desk {
    pub(crate) fn came(&self, number: Number, what: Came) {
        self.order.lock().unwrap().push((number, what));
    }

    /// Tells the agent on a connection something.
    pub(crate) fn tell(&self, number: Number, told: Told) {
        let message = Some(told);
        let told = Ok(v1::AgentsAttachResponse { message });
        self.lines.lock().unwrap()[&number].send(told).unwrap();
    }

    /// Asks the agent on a connection something.
    pub(crate) fn ask(&self, number: Number, id: u64, method: &str, params: &'static str) {
        let question = v1::AgentQuestion {
            id,
            server: "Demo".into(),
            method: method.into(),
            params: params.into(),
        };
        self.tell(number, Told::Question(question));
    }

    /// Ends the attachment, and leaves the connection as it is.
    pub(crate) fn hang_up(&self, number: Number) {
        self.lines.lock().unwrap().remove(&number).unwrap();
    }

    /// What an agent says next.
    pub(crate) async fn hear(&self) -> Says {
        self.heard.lock().await.recv().await.unwrap()
    }

    /// The next answer.
    pub(crate) async fn answer(&self) -> (u64, Result<String, (i32, String)>) {
        let Says::Answer(answer) = self.hear().await else {
            panic!("not an answer");
        };
        let outcome = match answer.outcome.unwrap() {
            v1::agent_answer::Outcome::Result(json) => {
                Ok(String::from_utf8(json.to_vec()).unwrap())
            }
            v1::agent_answer::Outcome::Refusal(refusal) => Err((refusal.code, refusal.message)),
        };
        (answer.question, outcome)
    }

    /// The connection that the last agent came by.
    pub(crate) fn last(&self) -> Number {
        self.hellos.lock().unwrap().last().unwrap().0
    }
}

#[tonic::async_trait]
impl agents_server::Agents for World {
    type AttachStream = Pin<Box<dyn Stream<Item = Told_> + Send>>;

    async fn attach(
        &self,
        request: Request<Streaming<v1::AgentsAttachRequest>>,
    ) -> Result<Response<Self::AttachStream>, Status> {
        let number = Number::of(&request);
        let mut says = request.into_inner();
        if let Some(status) = self.desk.refusals.lock().unwrap().pop() {
            return Err(status);
        }
        let hello = match says.message().await?.and_then(|first| first.message) {
            Some(Says::Hello(hello)) => hello,
            _ => return Err(Failure::new(Reason::InvalidRequest, "who are you?").into()),
        };
        let (told, stream) = mpsc::unbounded_channel();
        let world = self.me.lock().unwrap().upgrade().unwrap();
        tokio::spawn(async move {
            let desk = &world.desk;
            // Whoever does not wait for it would be seen to call first.
            tokio::time::sleep(Duration::from_millis(30)).await;
            desk.hellos.lock().unwrap().push((number, hello));
            desk.came(number, Came::Attached);
            desk.lines.lock().unwrap().insert(number, told);
            let agent = number.0 as u64;
            desk.tell(number, Told::Attached(v1::AgentAttached { agent }));
            desk.attached.notify_one();
            while let Ok(Some(message)) = says.message().await {
                let _ = desk.said.send(message.message.unwrap());
            }
            desk.lines.lock().unwrap().remove(&number);
            desk.detached.notify_one();
        });
        Ok(Response::new(Box::pin(UnboundedReceiverStream::new(
            stream,
        ))))
    }

    async fn list(
        &self,
        request: Request<v1::AgentsListRequest>,
    ) -> Result<Response<v1::AgentsListResponse>, Status> {
        let me = Number::of(&request);
        let hellos = self.desk.hellos.lock().unwrap();
        let agents = hellos.iter().map(|(number, hello)| v1::Agent {
            id: number.0 as u64,
            name: hello.name.clone(),
            version: hello.version.clone(),
            pid: Some(42),
            capabilities: hello.capabilities,
            roots: hello.roots.clone(),
            calls: 7,
            you: *number == me,
            ..v1::Agent::default()
        });
        Ok(Response::new(v1::AgentsListResponse {
            agents: agents.collect(),
        }))
    }
}
