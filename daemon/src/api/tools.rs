//! The service `Tools`.

use super::{Context, caller, convert, deadline};
use crate::{
    catalog::{self, Tool},
    mcp::connection::Progress,
    pool::{Server, key::Caller},
    router::Call,
    supervisor::status::Readiness,
};
use nexus_proto::{
    reason::{Failure, Reason},
    v1::{self, tools_call_stream_response::Event, tools_server},
};
use std::{sync::Arc, time::Duration};
use tokio::{sync::mpsc, time::timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

/// How long a list waits for servers that are starting.
const LIST_PATIENCE: Duration = Duration::from_secs(20);

/// The longest query.
const MAX_QUERY: usize = 1024;

/// How many events of one call may wait for a slow reader.
const EVENTS: usize = 64;

pub(super) struct Tools(pub(super) Arc<Context>);

#[tonic::async_trait]
impl tools_server::Tools for Tools {
    async fn list(
        &self,
        request: Request<v1::ToolsListRequest>,
    ) -> Result<Response<v1::ToolsListResponse>, Status> {
        let caller = caller::of(&request);
        let name = request.into_inner().server;
        let servers = if name.is_empty() {
            self.0.pool.servers().values().cloned().collect()
        } else {
            vec![self.0.pool.get(&name)?]
        };
        let (tools, missing) = self.known_tools(&servers, &caller).await;
        Ok(Response::new(v1::ToolsListResponse {
            tools: tools.iter().map(|tool| convert::tool(tool)).collect(),
            missing,
        }))
    }

    async fn get(
        &self,
        request: Request<v1::ToolsGetRequest>,
    ) -> Result<Response<v1::ToolsGetResponse>, Status> {
        let caller = caller::of(&request);
        let name = request.into_inner().name;
        let found = self.0.router.find(&name, &caller).await?;
        Ok(Response::new(v1::ToolsGetResponse {
            tool: Some(convert::tool(&found.tool)),
        }))
    }

    async fn search(
        &self,
        request: Request<v1::ToolsSearchRequest>,
    ) -> Result<Response<v1::ToolsSearchResponse>, Status> {
        let caller = caller::of(&request);
        let v1::ToolsSearchRequest { query, limit } = request.into_inner();
        if query.len() > MAX_QUERY {
            let message = format!("a query is no longer than {MAX_QUERY} bytes");
            return Err(Failure::new(Reason::InvalidRequest, message).into());
        }
        let limit = if limit == 0 { 10 } else { limit as usize };
        let servers: Vec<_> = self.0.pool.servers().values().cloned().collect();
        let (tools, _) = self.known_tools(&servers, &caller).await;
        let matches = catalog::search(&tools, &query, limit);
        Ok(Response::new(v1::ToolsSearchResponse {
            matches: matches
                .iter()
                .map(|(tool, score)| v1::ToolMatch {
                    tool: Some(convert::tool(tool)),
                    score: *score,
                })
                .collect(),
        }))
    }

    async fn call(
        &self,
        request: Request<v1::ToolsCallRequest>,
    ) -> Result<Response<v1::ToolsCallResponse>, Status> {
        let deadline = deadline::of(request.metadata());
        let caller = caller::of(&request);
        let v1::ToolsCallRequest { name, arguments } = request.into_inner();
        let call = Call {
            caller: &caller,
            name: &name,
            arguments,
            deadline,
            progress: None,
        };
        let result = self.0.router.call(call).await?;
        Ok(Response::new(v1::ToolsCallResponse { result }))
    }

    type CallStreamStream = ReceiverStream<Result<v1::ToolsCallStreamResponse, Status>>;

    async fn call_stream(
        &self,
        request: Request<v1::ToolsCallStreamRequest>,
    ) -> Result<Response<Self::CallStreamStream>, Status> {
        let deadline = deadline::of(request.metadata());
        let caller = caller::of(&request);
        let v1::ToolsCallStreamRequest { name, arguments } = request.into_inner();
        let router = Arc::clone(&self.0.router);
        let (events, stream) = mpsc::channel(EVENTS);
        tokio::spawn(async move {
            let (progress, told) = mpsc::channel(EVENTS);
            let call = Call {
                caller: &caller,
                name: &name,
                arguments,
                deadline,
                progress: Some(progress),
            };
            tokio::select! {
                // Whoever ends the stream cancels the call.
                () = events.closed() => {}
                () = stream_call(router.call(call), told, &events) => {}
            }
        });
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}

impl Tools {
    /// The tools of these servers, and the servers whose tools are not known.
    async fn known_tools(
        &self,
        servers: &[Arc<Server>],
        caller: &Caller,
    ) -> (Vec<Arc<Tool>>, Vec<v1::MissingServer>) {
        let all_settled = futures_util::future::join_all(servers.iter().map(|s| s.settled(caller)));
        let _ = timeout(LIST_PATIENCE, all_settled).await;
        let mut tools = Vec::new();
        let mut missing = Vec::new();
        for server in servers {
            match self.0.catalog.tools_of(server, caller) {
                Some(known) => tools.extend(known.list.iter().cloned()),
                None => missing.push(missing_server(server, caller)),
            }
        }
        (tools, missing)
    }
}

async fn stream_call(
    call: impl Future<Output = Result<bytes::Bytes, Failure>>,
    mut told: mpsc::Receiver<Progress>,
    events: &mpsc::Sender<Result<v1::ToolsCallStreamResponse, Status>>,
) {
    let event = |event| v1::ToolsCallStreamResponse { event: Some(event) };
    let mut call = std::pin::pin!(call);
    let outcome = loop {
        tokio::select! {
            biased;
            Some(progress) = told.recv() => {
                // Not waited for: a reader that is slow must not stop the clock of the call.
                let _ = events.try_send(Ok(event(Event::Progress(wire_progress(progress)))));
            }
            outcome = &mut call => break outcome,
        }
    };
    while let Ok(progress) = told.try_recv() {
        let _ = events
            .send(Ok(event(Event::Progress(wire_progress(progress)))))
            .await;
    }
    let last = outcome.map(|result| event(Event::Result(result)));
    let _ = events.send(last.map_err(Status::from)).await;
}

fn wire_progress(progress: Progress) -> v1::Progress {
    v1::Progress {
        progress: progress.progress,
        total: progress.total,
        message: progress.message.unwrap_or_default(),
    }
}

fn missing_server(server: &Server, caller: &Caller) -> v1::MissingServer {
    let name = server.config().name.clone();
    let (reason, message) = match server.readiness_for(caller) {
        Readiness::Refused(failure) => (failure.reason.as_str(), failure.message),
        _ => (
            Reason::ServerStarting.as_str(),
            "it is still starting".to_owned(),
        ),
    };
    v1::MissingServer {
        server: name,
        reason: reason.to_owned(),
        message,
    }
}
