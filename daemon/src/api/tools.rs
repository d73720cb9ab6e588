//! The service `Tools`.

use super::{Context, caller, convert, deadline, lists};
use crate::{
    catalog::{Item as _, Tool},
    mcp::connection::CallEvent,
    pool::{Server, key::Caller},
    router::Call,
};
use nexus_proto::level::LogLevel;
use nexus_proto::{
    reason::{Failure, Reason},
    v1::{self, tools_call_stream_response::Event, tools_server},
};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

/// How many tools a search finds unless it says how many.
const MATCHES: usize = 10;

/// How many events of one call may wait for a slow reader.
const EVENTS: usize = 64;

pub(super) struct Tools(pub(super) Arc<Context>);

#[tonic::async_trait]
impl tools_server::Tools for Tools {
    async fn list(
        &self,
        request: Request<v1::ToolsListRequest>,
    ) -> Result<Response<v1::ToolsListResponse>, Status> {
        let caller = caller::of(&self.0, &request);
        let servers = lists::servers(&self.0, &request.into_inner().server, &caller)?;
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
        let caller = caller::of(&self.0, &request);
        let name = request.into_inner().name;
        let found = self.0.router.find::<Tool>(&name, &caller).await;
        let found = found.map_err(|failure| caller.may_know(failure))?;
        Ok(Response::new(v1::ToolsGetResponse {
            tool: Some(convert::tool(&found.item)),
        }))
    }

    async fn search(
        &self,
        request: Request<v1::ToolsSearchRequest>,
    ) -> Result<Response<v1::ToolsSearchResponse>, Status> {
        let caller = caller::of(&self.0, &request);
        let v1::ToolsSearchRequest { query, limit } = request.into_inner();
        let limit = match limit {
            0 => MATCHES,
            limit => limit as usize,
        };
        let catalog = &self.0.catalog;
        lists::settle(&catalog.servers(&caller), &caller, Tool::KIND).await;
        let matches = catalog.search(&query, limit, &caller).await?;
        Ok(Response::new(v1::ToolsSearchResponse {
            matches: matches
                .iter()
                .map(|found| v1::ToolMatch {
                    tool: Some(convert::tool(&found.tool)),
                    score: found.score,
                })
                .collect(),
        }))
    }

    async fn call(
        &self,
        request: Request<v1::ToolsCallRequest>,
    ) -> Result<Response<v1::ToolsCallResponse>, Status> {
        let deadline = deadline::of(request.metadata());
        let caller = caller::of(&self.0, &request);
        let v1::ToolsCallRequest { name, arguments } = request.into_inner();
        let call = Call {
            caller: &caller,
            name: &name,
            arguments,
            deadline,
            round: None,
            events: None,
            log_level: None,
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
        let caller = caller::of(&self.0, &request);
        let v1::ToolsCallStreamRequest {
            name,
            arguments,
            log_level,
        } = request.into_inner();
        let log_level = match log_level.as_str() {
            "" => None,
            name => Some(level(name)?),
        };
        let router = Arc::clone(&self.0.router);
        let (events, stream) = mpsc::channel(EVENTS);
        tokio::spawn(async move {
            let call = Call {
                caller: &caller,
                name: &name,
                arguments,
                deadline,
                round: None,
                events: None,
                log_level,
            };
            let event = |event| v1::ToolsCallStreamResponse { event: Some(event) };
            // Not waited for: a reader that is slow must not stop the clock of the call.
            let tell = |told| drop(events.try_send(Ok(event(wire_event(told)))));
            let outcome = tokio::select! {
                // Whoever ends the stream cancels the call.
                () = events.closed() => return,
                outcome = router.call_telling(call, tell) => outcome,
            };
            let last = outcome.map(|result| event(Event::Result(result)));
            let _ = events.send(last.map_err(Status::from)).await;
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
        let tools = |server: &Arc<Server>| {
            let names = self.0.catalog.of::<Tool>(server, caller)?;
            Some(names.list.clone())
        };
        lists::gather(servers, caller, Tool::KIND, tools).await
    }
}

/// The level of that name.
pub(super) fn level(name: &str) -> Result<LogLevel, Failure> {
    name.parse::<LogLevel>().ok().ok_or_else(|| {
        let message = format!("there is no log level {name:?}");
        let names = LogLevel::ALL.map(LogLevel::as_str).join(", ");
        Failure::new(Reason::InvalidRequest, message)
            .with(|details| details.hint = Some(format!("the levels are: {names}")))
    })
}

fn wire_event(event: CallEvent) -> Event {
    match event {
        CallEvent::Progress(progress) => Event::Progress(v1::Progress {
            progress: progress.progress,
            total: progress.total,
            message: progress.message.unwrap_or_default(),
        }),
        CallEvent::Log(message) => Event::Log(v1::LogMessage {
            level: message.level.as_str().to_owned(),
            logger: message.logger,
            data: message.data,
        }),
    }
}
