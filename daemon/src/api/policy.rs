//! The service `Policy`: for the operator.

use super::{Context, caller, convert, pins};
use crate::policy::{
    Change, Question,
    consent::{About, Answer},
    not_operator,
};
use nexus_proto::{
    reason::{Failure, Reason},
    v1::{self, policy_server, policy_watch_response::Change as Wire},
};
use std::sync::Arc;
use tokio::sync::{broadcast::error::RecvError, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

/// How many changes may wait for a slow reader.
const WAITING: usize = 64;

pub(super) struct Policy(pub(super) Arc<Context>);

type ToWire = mpsc::Sender<Result<v1::PolicyWatchResponse, Status>>;

#[tonic::async_trait]
impl policy_server::Policy for Policy {
    type WatchStream = ReceiverStream<Result<v1::PolicyWatchResponse, Status>>;

    async fn watch(
        &self,
        request: Request<v1::PolicyWatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        self.for_operator(&request)?;
        let (wire, stream) = mpsc::channel(WAITING);
        let context = Arc::clone(&self.0);
        tokio::spawn(async move {
            tokio::select! {
                _ = tell(&context, &wire) => {}
                () = wire.closed() => {}
                () = context.shutdown.api_closes() => {}
            }
        });
        Ok(Response::new(ReceiverStream::new(stream)))
    }

    async fn decide(
        &self,
        request: Request<v1::PolicyDecideRequest>,
    ) -> Result<Response<v1::PolicyDecideResponse>, Status> {
        self.for_operator(&request)?;
        let request = request.into_inner();
        let id = request.id;
        let answer = match request.answer() {
            v1::Answer::Once => Answer::Once,
            v1::Answer::Server => Answer::Server,
            v1::Answer::Deny => Answer::Deny,
            v1::Answer::Unspecified => {
                let message = "an answer is once, server or deny";
                return Err(Failure::new(Reason::InvalidRequest, message).into());
            }
        };
        if self.0.policy.approvals().decide(id, answer) {
            return Ok(Response::new(v1::PolicyDecideResponse {}));
        }
        let message = format!("no question {id} waits for an answer");
        let failure = Failure::new(Reason::ApprovalNotFound, message).with(|details| {
            let hint = "it was answered, or taken back; `nexusctl approvals` shows what waits";
            details.hint = Some(hint.to_owned());
        });
        Err(failure.into())
    }

    async fn forget(
        &self,
        request: Request<v1::PolicyForgetRequest>,
    ) -> Result<Response<v1::PolicyForgetResponse>, Status> {
        self.for_operator(&request)?;
        let v1::PolicyForgetRequest { agent, server } = request.into_inner();
        let agent = (agent != 0).then_some(agent);
        let server = (!server.is_empty()).then_some(server.as_str());
        let forgotten = self.0.policy.forget(agent, server);
        Ok(Response::new(v1::PolicyForgetResponse {
            forgotten: u32::try_from(forgotten).unwrap_or(u32::MAX),
        }))
    }

    async fn list_changes(
        &self,
        request: Request<v1::PolicyListChangesRequest>,
    ) -> Result<Response<v1::PolicyListChangesResponse>, Status> {
        self.for_operator(&request)?;
        let caller = caller::of(&self.0, &request);
        let changes = pins::list_changes(&self.0, &caller, &request.into_inner())?;
        Ok(Response::new(changes))
    }

    async fn approve(
        &self,
        request: Request<v1::PolicyApproveRequest>,
    ) -> Result<Response<v1::PolicyApproveResponse>, Status> {
        self.for_operator(&request)?;
        let caller = caller::of(&self.0, &request);
        let approved = pins::approve(&self.0, &caller, request.into_inner()).await?;
        Ok(Response::new(approved))
    }
}

impl Policy {
    /// Nobody answers for themselves.
    fn for_operator<T>(&self, request: &Request<T>) -> Result<(), Failure> {
        let caller = caller::of(&self.0, request);
        if caller.standing.is_operator() {
            return Ok(());
        }
        let hint = "programs of the operator's own are named in \"policy.operators\"";
        Err(not_operator(hint))
    }
}

/// Tells what waits and what changes, until nobody listens. Whoever is too slow is told all anew.
async fn tell(context: &Context, wire: &ToWire) -> Option<()> {
    loop {
        let (waiting, mut changes) = context.policy.approvals().watch();
        for question in &waiting {
            send(wire, Wire::Asked(Box::new(approval(question)))).await?;
        }
        send(wire, Wire::Told(v1::ApprovalsTold {})).await?;
        loop {
            let change = match changes.recv().await {
                Ok(Change::Asked(question)) => Wire::Asked(Box::new(approval(&question))),
                Ok(Change::Closed(id, outcome)) => Wire::Closed(v1::ApprovalClosed {
                    id,
                    outcome: outcome.as_str().to_owned(),
                }),
                Err(RecvError::Lagged(_)) => break,
                Err(RecvError::Closed) => return None,
            };
            send(wire, change).await?;
        }
    }
}

async fn send(wire: &ToWire, change: Wire) -> Option<()> {
    let change = Some(change);
    wire.send(Ok(v1::PolicyWatchResponse { change })).await.ok()
}

fn approval(question: &Question) -> v1::Approval {
    let wish = question.wish.clone();
    let call = |text: String| match question.about {
        About::Call => text,
        About::Server => String::new(),
    };
    v1::Approval {
        id: question.id,
        agent: Some(v1::ApprovalAgent {
            id: question.agent,
            name: wish.agent,
            pid: question.pid,
            project: question.project.clone().unwrap_or_default(),
        }),
        server: wish.server,
        method: call(wish.method.to_owned()),
        target: call(wish.target),
        arguments: call(wish.arguments),
        tools: wish.tools,
        since: Some(convert::timestamp(question.since)),
        until: Some(convert::timestamp(question.until)),
    }
}
