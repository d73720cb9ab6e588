//! The service `Agents`.

use super::{Context, caller, convert};
use crate::{
    agent::{Agent, Answers, Attachment, Hello, Presence, Refusal, Root, ToAgent},
    catalog::Changed,
    mcp::lists::Kind,
    pool::key::Caller,
    shutdown::Shutdown,
};
use nexus_proto::{
    reason::{Failure, Reason},
    v1::{
        self, agent_answer::Outcome, agents_attach_request::Message as FromAgent,
        agents_attach_response::Message as Wire, agents_server,
    },
};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

/// How many questions and notices may wait for an agent that is slow to read them.
const WAITING: usize = 64;

/// The longest name, and the most folders.
const MAX_NAME: usize = 256;
const MAX_ROOTS: usize = 256;

pub(super) struct Agents(pub(super) Arc<Context>);

type ToWire = mpsc::Sender<Result<v1::AgentsAttachResponse, Status>>;

#[tonic::async_trait]
impl agents_server::Agents for Agents {
    type AttachStream = ReceiverStream<Result<v1::AgentsAttachResponse, Status>>;

    async fn attach(
        &self,
        request: Request<Streaming<v1::AgentsAttachRequest>>,
    ) -> Result<Response<Self::AttachStream>, Status> {
        let caller = caller::of(&self.0, &request);
        let mut said = request.into_inner();
        let first = said.message().await?.and_then(|first| first.message);
        let Some(FromAgent::Hello(hello)) = first else {
            return Err(invalid("the first message of an agent is `hello`").into());
        };
        let wants_changes = hello.changes;
        let hello = read_hello(hello)?;
        let (to, questions) = mpsc::channel(WAITING);
        let attachment = Attachment::new(hello, to);
        let (wire, stream) = mpsc::channel(WAITING);
        caller.agent.attach(Arc::clone(&attachment));
        let attached = Wire::Attached(v1::AgentAttached {
            agent: caller.agent.id(),
        });
        let _ = wire.send(message(attached)).await;
        let attached = Attached {
            agent: Arc::clone(&caller.agent),
            attachment,
        };
        let context = Arc::clone(&self.0);
        tokio::spawn(async move {
            let shutdown = context.shutdown.clone();
            tokio::select! {
                () = listen(&context, &attached, said) => {}
                () = ask(questions, &wire) => {}
                () = tell_changes(&context, &caller, &wire), if wants_changes => {}
                () = closed(&wire, &shutdown) => {}
            }
        });
        Ok(Response::new(ReceiverStream::new(stream)))
    }

    async fn list(
        &self,
        request: Request<v1::AgentsListRequest>,
    ) -> Result<Response<v1::AgentsListResponse>, Status> {
        let caller = caller::of(&self.0, &request);
        let you = caller.agent.id();
        let mut agents = self.0.agents.all();
        if !caller.standing.is_operator() {
            agents.retain(|presence| presence.agent.id() == you);
        }
        let agents = agents.iter().map(|presence| agent(&self.0, presence, you));
        let agents = agents.collect();
        Ok(Response::new(v1::AgentsListResponse { agents }))
    }
}

/// An agent that can be asked, until this is dropped.
struct Attached {
    agent: Arc<Agent>,
    attachment: Arc<Attachment>,
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.agent.detach(&self.attachment);
    }
}

async fn closed(wire: &ToWire, shutdown: &Shutdown) {
    tokio::select! {
        () = wire.closed() => {}
        () = shutdown.api_closes() => {}
    }
}

/// Takes what an agent says, until it says no more.
async fn listen(
    context: &Context,
    attached: &Attached,
    mut said: Streaming<v1::AgentsAttachRequest>,
) {
    while let Ok(Some(message)) = said.message().await {
        match message.message {
            Some(FromAgent::Answer(answer)) => {
                let outcome = match answer.outcome {
                    Some(Outcome::Result(result)) => check_result(result),
                    Some(Outcome::Refusal(refusal)) => Err(read_refusal(refusal)),
                    None => Err(Refusal::rejected("the client gave no answer")),
                };
                attached.attachment.answered(answer.question, outcome);
            }
            Some(FromAgent::Roots(roots)) => {
                if let Ok(roots) = read_roots(roots.roots) {
                    attached.attachment.set_roots(roots);
                    context.pool.roots_changed(attached.agent.id());
                }
            }
            // Who it is does not change.
            Some(FromAgent::Hello(_)) | None => {}
        }
    }
}

/// A result goes into a message to the server as it is: it must be JSON, and one object.
fn check_result(result: bytes::Bytes) -> Result<bytes::Bytes, Refusal> {
    let is_object = result.trim_ascii_start().first() == Some(&b'{')
        && result.len() <= crate::mcp::MAX_MESSAGE
        && serde_json::from_slice::<&serde_json::value::RawValue>(&result).is_ok();
    if is_object {
        return Ok(result);
    }
    Err(Refusal {
        code: -32603,
        message: "the client gave an answer that is not a JSON object".to_owned(),
    })
}

/// Passes questions on.
async fn ask(mut questions: mpsc::Receiver<ToAgent>, wire: &ToWire) {
    while let Some(question) = questions.recv().await {
        let next = match question {
            ToAgent::Question(id, question) => Wire::Question(v1::AgentQuestion {
                id,
                server: question.server,
                method: question.method,
                params: question.params,
            }),
            ToAgent::Withdrawn(question) => Wire::Withdrawn(v1::AgentWithdrawn { question }),
            ToAgent::ElicitationComplete(server, elicitation_id) => {
                Wire::ElicitationComplete(v1::AgentElicitationComplete {
                    server,
                    elicitation_id,
                })
            }
        };
        if wire.send(message(next)).await.is_err() {
            return;
        }
    }
}

/// Tells which lists change, as this agent sees them.
async fn tell_changes(context: &Context, caller: &Caller, wire: &ToWire) {
    let mut changed = Changed::new(&context.pool);
    while let Some(lists) = changed.next(|| Some(caller.clone())).await {
        for (server, kind) in lists {
            let changed = Wire::Changed(v1::AgentListChanged {
                server,
                kind: wire_kind(kind).into(),
            });
            if wire.send(message(changed)).await.is_err() {
                return;
            }
        }
    }
}

fn wire_kind(kind: Kind) -> v1::ListKind {
    match kind {
        Kind::Tools => v1::ListKind::Tools,
        Kind::Resources => v1::ListKind::Resources,
        Kind::Templates => v1::ListKind::ResourceTemplates,
        Kind::Prompts => v1::ListKind::Prompts,
    }
}

fn message(message: Wire) -> Result<v1::AgentsAttachResponse, Status> {
    Ok(v1::AgentsAttachResponse {
        message: Some(message),
    })
}

fn invalid(message: &str) -> Failure {
    Failure::new(Reason::InvalidRequest, message)
}

fn read_hello(hello: v1::AgentHello) -> Result<Hello, Failure> {
    if hello.name.len() > MAX_NAME || hello.version.len() > MAX_NAME {
        return Err(invalid("no name is that long"));
    }
    let can = hello.capabilities.unwrap_or_default();
    Ok(Hello {
        name: hello.name,
        version: hello.version,
        answers: Answers {
            sampling: can.sampling,
            sampling_tools: can.sampling && can.sampling_tools,
            sampling_context: can.sampling && can.sampling_context,
            elicitation_form: can.elicitation_form,
            elicitation_url: can.elicitation_url,
            roots: can.roots,
        },
        roots: Some(read_roots(hello.roots)?),
    })
}

fn read_roots(roots: Vec<v1::Root>) -> Result<Vec<Root>, Failure> {
    if roots.len() > MAX_ROOTS {
        return Err(invalid("nobody works in that many folders"));
    }
    let read = |root: v1::Root| Root {
        uri: root.uri,
        name: root.name,
    };
    Ok(roots.into_iter().map(read).collect())
}

fn read_refusal(refusal: v1::AgentRefusal) -> Refusal {
    let message = match refusal.message.as_str() {
        "" => "the user rejected it",
        message => message,
    };
    match refusal.code {
        0 => Refusal::rejected(message),
        code => Refusal {
            code: code.into(),
            message: message.to_owned(),
        },
    }
}

fn agent(context: &Context, presence: &Presence, you: u64) -> v1::Agent {
    let agent = &presence.agent;
    let attachment = agent.attachment();
    let hello = attachment.as_ref().map(|attachment| &attachment.hello);
    let (in_flight, calls) = agent.counts();
    let capabilities = |answers: Answers| v1::AgentCapabilities {
        sampling: answers.sampling,
        sampling_tools: answers.sampling_tools,
        sampling_context: answers.sampling_context,
        elicitation_form: answers.elicitation_form,
        elicitation_url: answers.elicitation_url,
        roots: answers.roots,
    };
    let root = |root: Root| v1::Root {
        uri: root.uri,
        name: root.name,
    };
    let roots = attachment.as_ref().map(|attachment| attachment.roots());
    let project = agent.project();
    let standing = context.policy.standing(agent, project.as_deref());
    let rate_limit = context.policy.limits().of_agent(agent.id(), &standing);
    v1::Agent {
        id: agent.id(),
        name: agent.name(),
        version: hello.map(|hello| hello.version.clone()).unwrap_or_default(),
        pid: agent.pid(),
        project: project
            .map(|project| project.display().to_string())
            .unwrap_or_default(),
        capabilities: hello.map(|hello| capabilities(hello.answers)),
        roots: roots.unwrap_or_default().into_iter().map(root).collect(),
        since: Some(convert::timestamp(presence.since)),
        in_flight,
        calls,
        questions: agent.questions(),
        you: agent.id() == you,
        programs: agent.programs().names(),
        level: match standing.is_operator() {
            true => "operator".to_owned(),
            false => standing.level.as_str().to_owned(),
        },
        rate_limit: rate_limit.map(convert::rate_limit),
        rule: standing.rule.clone().unwrap_or_default(),
        holds: context.pool.held_by(agent.id()),
    }
}
