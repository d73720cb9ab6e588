//! The services of the fake daemon.

use super::{World, agents::Came, connection::Number};
use nexus_proto::{
    reason::{Failure, Reason, Violation},
    v1::{self, daemon_server, servers_server, tools_server},
};
use std::{
    future::pending,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
    time::Duration,
};
use tokio::sync::Notify;
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Request, Response, Status};

type Answer<T> = Result<Response<T>, Status>;
type Events<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

fn tool(tool: &str) -> v1::Tool {
    v1::Tool {
        name: format!("demo__{tool}"),
        server: "Demo".into(),
        tool: tool.into(),
        definition: format!(r#"{{"name":"{tool}","description":"does {tool}"}}"#).into(),
    }
}

/// What a call of that tool comes to.
async fn carry_out(
    world: &World,
    name: &str,
    arguments: bytes::Bytes,
    time: Option<String>,
) -> Result<bytes::Bytes, Status> {
    let refused = world
        .refusals
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
    if refused.is_ok() {
        return Err(Failure::new(Reason::ShuttingDown, "stopping").into());
    }
    let entry = (name.to_owned(), arguments.clone());
    world.executed.lock().unwrap().push(entry);
    match name {
        "demo.echo" => {
            let arguments = std::str::from_utf8(&arguments).unwrap();
            let result = format!(r#"{{"content":[],"echo":{arguments} }}"#);
            Ok(result.into())
        }
        "demo.time" => Ok(format!(r#"{{"time":"{}"}}"#, time.unwrap_or_default()).into()),
        "demo.hang" => {
            world.entered.notify_one();
            pending().await
        }
        "demo.meet" => {
            let meeting = world.meeting.lock().unwrap().clone();
            meeting.unwrap().wait().await;
            Ok(r#"{"content":[{"type":"text","text":"met"}]}"#.into())
        }
        "demo.huge" => Ok(format!(r#"{{"x":"{}"}}"#, "x".repeat(21 << 20)).into()),
        "demo.exit" => Err(Failure::new(Reason::ServerExited, "demo ended")
            .with(|details| {
                details.server = Some("demo".into());
                details.exit = Some("exit code 7".into());
                details.stderr = vec!["boom".into()];
                details.maybe_executed = true;
                details.retry_after = Some(Duration::from_secs(2));
                details.hint = Some("look at the log".into());
            })
            .into()),
        "demo.strict" => Err(Failure::new(Reason::InvalidArguments, "bad arguments")
            .with(|details| {
                details.violations = vec![Violation {
                    field: "/a".into(),
                    description: "is not a number".into(),
                }];
            })
            .into()),
        "demo.panic" => Err(Status::unknown("something else")),
        _ => Err(Failure::new(Reason::ToolNotFound, format!("there is no tool `{name}`")).into()),
    }
}

#[tonic::async_trait]
impl tools_server::Tools for World {
    type CallStreamStream = Events<v1::ToolsCallStreamResponse>;

    async fn list(&self, request: Request<v1::ToolsListRequest>) -> Answer<v1::ToolsListResponse> {
        self.lists.fetch_add(1, Ordering::SeqCst);
        if self.hang_list.swap(false, Ordering::SeqCst) {
            self.entered.notify_one();
            return pending().await;
        }
        let server = request.into_inner().server;
        if !server.is_empty() && !server.eq_ignore_ascii_case("demo") {
            let failure = Failure::new(Reason::ServerNotFound, "there is no such server");
            let failure = failure.with(|details| details.suggestion = Some("Demo".into()));
            return Err(failure.into());
        }
        Ok(Response::new(v1::ToolsListResponse {
            tools: vec![tool("echo"), tool("hang"), tool("a.b")],
            missing: vec![v1::MissingServer {
                server: "broken".into(),
                reason: "COMMAND_NOT_FOUND".into(),
                message: "no such command".into(),
            }],
        }))
    }

    async fn get(&self, request: Request<v1::ToolsGetRequest>) -> Answer<v1::ToolsGetResponse> {
        let name = request.into_inner().name;
        let Some(name) = name.strip_prefix("demo.") else {
            let failure = Failure::new(Reason::ServerNotFound, "there is no such server");
            let failure = failure.with(|details| details.suggestion = Some("Demo".into()));
            return Err(failure.into());
        };
        Ok(Response::new(v1::ToolsGetResponse {
            tool: Some(tool(name)),
        }))
    }

    async fn search(
        &self,
        request: Request<v1::ToolsSearchRequest>,
    ) -> Answer<v1::ToolsSearchResponse> {
        let request = request.into_inner();
        let matches = vec![v1::ToolMatch {
            tool: Some(tool(&request.query)),
            score: request.limit as f32,
        }];
        Ok(Response::new(v1::ToolsSearchResponse { matches }))
    }

    async fn call(&self, request: Request<v1::ToolsCallRequest>) -> Answer<v1::ToolsCallResponse> {
        self.desk.came(Number::of(&request), Came::Call);
        let time = request.metadata().get("grpc-timeout");
        let time = time.map(|time| time.to_str().unwrap().to_owned());
        let v1::ToolsCallRequest { name, arguments } = request.into_inner();
        let result = carry_out(self, &name, arguments, time).await?;
        Ok(Response::new(v1::ToolsCallResponse { result }))
    }

    async fn call_stream(
        &self,
        request: Request<v1::ToolsCallStreamRequest>,
    ) -> Answer<Self::CallStreamStream> {
        let v1::ToolsCallStreamRequest {
            name,
            arguments,
            log_level,
        } = request.into_inner();
        let progress = |progress: f64| v1::ToolsCallStreamResponse {
            event: Some(v1::tools_call_stream_response::Event::Progress(
                v1::Progress {
                    progress,
                    total: Some(3.0),
                    message: "on it".into(),
                },
            )),
        };
        let log = (!log_level.is_empty()).then(|| v1::ToolsCallStreamResponse {
            event: Some(v1::tools_call_stream_response::Event::Log(v1::LogMessage {
                level: log_level,
                logger: "demo".into(),
                data: r#"{"n": 1e400}"#.into(),
            })),
        });
        let first = [Some(progress(1.0)), log, Some(progress(2.0))];
        let first = tokio_stream::iter(first.into_iter().flatten().map(Ok));
        if name == "demo.hang" {
            self.entered.notify_one();
            let rest = Hanging(Arc::clone(&self.cancelled));
            return Ok(Response::new(Box::pin(first.chain(rest))));
        }
        let last = carry_out(self, &name, arguments, None).await;
        let last = last.map(|result| v1::ToolsCallStreamResponse {
            event: Some(v1::tools_call_stream_response::Event::Result(result)),
        });
        Ok(Response::new(Box::pin(
            first.chain(tokio_stream::once(last)),
        )))
    }
}

/// A stream without another event, that tells of its end.
struct Hanging(Arc<Notify>);

impl Stream for Hanging {
    type Item = Result<v1::ToolsCallStreamResponse, Status>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Pending
    }
}

impl Drop for Hanging {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

fn server(name: &str, state: v1::ServerState) -> v1::Server {
    v1::Server {
        name: name.into(),
        slug: name.to_lowercase(),
        state: state.into(),
        wanted: true,
        transport: "stdio".into(),
        pid: Some(42),
        restarts: 3,
        resources: 4,
        resource_templates: 5,
        prompts: 6,
        last_failure: Some(v1::ServerFailure {
            reason: "SERVER_EXITED".into(),
            message: "exit code 7".into(),
            stderr: vec!["boom".into()],
            causes: vec![],
            fixes: vec![],
            at: None,
        }),
        ..v1::Server::default()
    }
}

#[tonic::async_trait]
impl servers_server::Servers for World {
    type WatchStream = Events<v1::ServersWatchResponse>;
    type LogsStream = Events<v1::ServersLogsResponse>;

    async fn list(&self, _: Request<v1::ServersListRequest>) -> Answer<v1::ServersListResponse> {
        let servers = vec![
            server("Broken", v1::ServerState::CrashLoop),
            server("Demo", v1::ServerState::Ready),
        ];
        Ok(Response::new(v1::ServersListResponse { servers }))
    }

    async fn get(&self, request: Request<v1::ServersGetRequest>) -> Answer<v1::ServersGetResponse> {
        let server = server(&request.into_inner().server, v1::ServerState::Ready);
        Ok(Response::new(v1::ServersGetResponse {
            server: Some(server),
        }))
    }

    async fn start(
        &self,
        request: Request<v1::ServersStartRequest>,
    ) -> Answer<v1::ServersStartResponse> {
        let request = request.into_inner();
        let state = match request.wait {
            true => v1::ServerState::Ready,
            false => v1::ServerState::Starting,
        };
        Ok(Response::new(v1::ServersStartResponse {
            outcome: v1::CommandOutcome::Accepted.into(),
            server: Some(server(&request.server, state)),
        }))
    }

    async fn stop(
        &self,
        request: Request<v1::ServersStopRequest>,
    ) -> Answer<v1::ServersStopResponse> {
        let state = v1::ServerState::Stopped;
        Ok(Response::new(v1::ServersStopResponse {
            outcome: v1::CommandOutcome::AlreadyTrue.into(),
            server: Some(server(&request.into_inner().server, state)),
        }))
    }

    async fn restart(
        &self,
        _: Request<v1::ServersRestartRequest>,
    ) -> Answer<v1::ServersRestartResponse> {
        Ok(Response::new(v1::ServersRestartResponse::default()))
    }

    async fn refresh(
        &self,
        request: Request<v1::ServersRefreshRequest>,
    ) -> Answer<v1::ServersRefreshResponse> {
        let server = server(&request.into_inner().server, v1::ServerState::Ready);
        Ok(Response::new(v1::ServersRefreshResponse {
            server: Some(server),
        }))
    }

    async fn ping(&self, _: Request<v1::ServersPingRequest>) -> Answer<v1::ServersPingResponse> {
        Ok(Response::new(v1::ServersPingResponse {
            round_trip: Duration::from_micros(1500).try_into().ok(),
        }))
    }

    async fn set_log_level(
        &self,
        request: Request<v1::ServersSetLogLevelRequest>,
    ) -> Answer<v1::ServersSetLogLevelResponse> {
        let request = request.into_inner();
        if request.server == "mute" {
            return Err(Failure::new(Reason::NotSupported, "it does not log").into());
        }
        let entry = (request.server, request.level.into());
        self.executed.lock().unwrap().push(entry);
        Ok(Response::new(v1::ServersSetLogLevelResponse {}))
    }

    async fn watch(&self, _: Request<v1::ServersWatchRequest>) -> Answer<Self::WatchStream> {
        let events = [
            v1::ServersWatchResponse {
                server: Some(server("Demo", v1::ServerState::Ready)),
                removed: false,
                revision: 1,
            },
            v1::ServersWatchResponse {
                server: Some(server("Demo", v1::ServerState::Unspecified)),
                removed: true,
                revision: 1,
            },
        ];
        let events = tokio_stream::iter(events.map(Ok));
        Ok(Response::new(Box::pin(events)))
    }

    async fn logs(&self, request: Request<v1::ServersLogsRequest>) -> Answer<Self::LogsStream> {
        let request = request.into_inner();
        let line = |n| {
            Ok(v1::ServersLogsResponse {
                line: format!("line {n} of {}", request.server),
                ..v1::ServersLogsResponse::default()
            })
        };
        let lines: Vec<_> = (0..request.tail.unwrap_or(100)).map(line).collect();
        Ok(Response::new(Box::pin(tokio_stream::iter(lines))))
    }
}

#[tonic::async_trait]
impl daemon_server::Daemon for World {
    async fn status(
        &self,
        _: Request<v1::DaemonStatusRequest>,
    ) -> Answer<v1::DaemonStatusResponse> {
        Ok(Response::new(v1::DaemonStatusResponse {
            version: "1.2.3".into(),
            demo: true,
            ..v1::DaemonStatusResponse::default()
        }))
    }

    async fn reload(
        &self,
        _: Request<v1::DaemonReloadRequest>,
    ) -> Answer<v1::DaemonReloadResponse> {
        Err(Failure::new(Reason::ConfigInvalid, "no").into())
    }

    async fn shutdown(
        &self,
        _: Request<v1::DaemonShutdownRequest>,
    ) -> Answer<v1::DaemonShutdownResponse> {
        Ok(Response::new(v1::DaemonShutdownResponse {}))
    }

    async fn effective_config(
        &self,
        _: Request<v1::DaemonEffectiveConfigRequest>,
    ) -> Answer<v1::DaemonEffectiveConfigResponse> {
        Ok(Response::new(v1::DaemonEffectiveConfigResponse {
            config: r#"{ "mcpServers": {} }"#.into(),
        }))
    }
}
