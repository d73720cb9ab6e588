//! The service `Servers`.

use super::{Context, broken, caller, convert};
use crate::{
    mcp::connection::CallError,
    pool::{Server, key::Caller},
    process::memory,
    shutdown::Shutdown,
    supervisor::{
        log::LogLine,
        machine::{Command, Outcome},
    },
};
use nexus_proto::{
    reason::{Failure, Reason},
    v1::{self, servers_server},
};
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::{
    sync::{
        broadcast::{self, error::RecvError},
        mpsc,
    },
    time::{Instant, timeout},
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

/// How long a ping may take.
const PING_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) struct Servers(pub(super) Arc<Context>);

impl Servers {
    async fn command(
        &self,
        server: &str,
        caller: &Caller,
        command: Command,
        wait: bool,
    ) -> Result<(i32, Option<v1::Server>), Status> {
        let server = self.0.pool.get(server, caller)?;
        caller.check_control()?;
        if command != Command::Stop {
            self.0.router.check_open()?;
        }
        // What it lacked may be there by now: a file, an open keyring.
        let lacked = command != Command::Stop && server.config().lacks.is_some();
        let server = match lacked {
            true => self.0.look_again(&server, caller).await?,
            false => server,
        };
        // Carried out to its end, also when whoever asked for it has gone.
        let commanded = tokio::spawn({
            let server = Arc::clone(&server);
            async move { server.command(command, wait).await }
        });
        let outcome = match commanded.await.map_err(|_| broken())? {
            // Another look has started it.
            Outcome::AlreadyTrue if lacked => Outcome::Accepted,
            outcome => outcome,
        };
        if wait && command != Command::Stop {
            // Waiting for a server that cannot start ends with the reason why.
            server.check_running()?;
        }
        let server = convert::server(&server, caller, &self.0.policy);
        Ok((convert::outcome(outcome), Some(server)))
    }
}

#[tonic::async_trait]
impl servers_server::Servers for Servers {
    async fn list(
        &self,
        request: Request<v1::ServersListRequest>,
    ) -> Result<Response<v1::ServersListResponse>, Status> {
        let caller = caller::of(&self.0, &request);
        let servers = self.0.pool.servers();
        let servers = servers.values().filter(|server| caller.oversees(server));
        let servers = servers.map(|server| convert::server(server, &caller, &self.0.policy));
        let mut servers: Vec<_> = servers.collect();
        weigh(&mut servers).await;
        Ok(Response::new(v1::ServersListResponse { servers }))
    }

    async fn get(
        &self,
        request: Request<v1::ServersGetRequest>,
    ) -> Result<Response<v1::ServersGetResponse>, Status> {
        let caller = caller::of(&self.0, &request);
        let server = self.0.pool.get(&request.into_inner().server, &caller)?;
        let mut server = [convert::server(&server, &caller, &self.0.policy)];
        weigh(&mut server).await;
        let [server] = server;
        Ok(Response::new(v1::ServersGetResponse {
            server: Some(server),
        }))
    }

    async fn start(
        &self,
        request: Request<v1::ServersStartRequest>,
    ) -> Result<Response<v1::ServersStartResponse>, Status> {
        let caller = caller::of(&self.0, &request);
        let v1::ServersStartRequest { server, wait } = request.into_inner();
        let (outcome, server) = self.command(&server, &caller, Command::Start, wait).await?;
        Ok(Response::new(v1::ServersStartResponse { outcome, server }))
    }

    async fn stop(
        &self,
        request: Request<v1::ServersStopRequest>,
    ) -> Result<Response<v1::ServersStopResponse>, Status> {
        let caller = caller::of(&self.0, &request);
        let v1::ServersStopRequest { server, wait } = request.into_inner();
        let (outcome, server) = self.command(&server, &caller, Command::Stop, wait).await?;
        Ok(Response::new(v1::ServersStopResponse { outcome, server }))
    }

    async fn restart(
        &self,
        request: Request<v1::ServersRestartRequest>,
    ) -> Result<Response<v1::ServersRestartResponse>, Status> {
        let caller = caller::of(&self.0, &request);
        let v1::ServersRestartRequest { server, wait } = request.into_inner();
        let (outcome, server) = self
            .command(&server, &caller, Command::Restart, wait)
            .await?;
        Ok(Response::new(v1::ServersRestartResponse {
            outcome,
            server,
        }))
    }

    async fn refresh(
        &self,
        request: Request<v1::ServersRefreshRequest>,
    ) -> Result<Response<v1::ServersRefreshResponse>, Status> {
        let caller = caller::of(&self.0, &request);
        let server = self.0.pool.get(&request.into_inner().server, &caller)?;
        caller.check_control()?;
        server.refresh(&caller).await?;
        Ok(Response::new(v1::ServersRefreshResponse {
            server: Some(convert::server(&server, &caller, &self.0.policy)),
        }))
    }

    async fn ping(
        &self,
        request: Request<v1::ServersPingRequest>,
    ) -> Result<Response<v1::ServersPingResponse>, Status> {
        let caller = caller::of(&self.0, &request);
        let server = self.0.pool.get(&request.into_inner().server, &caller)?;
        caller.check_control()?;
        let round_trip = timeout(PING_TIMEOUT, ping(&server, &caller))
            .await
            .unwrap_or_else(|_| {
                let name = &server.config().name;
                let message = format!("{name:?} did not answer a ping within {PING_TIMEOUT:?}");
                Err(Failure::new(Reason::Deadline, message))
            })?;
        Ok(Response::new(v1::ServersPingResponse {
            round_trip: prost_types::Duration::try_from(round_trip).ok(),
        }))
    }

    async fn set_log_level(
        &self,
        request: Request<v1::ServersSetLogLevelRequest>,
    ) -> Result<Response<v1::ServersSetLogLevelResponse>, Status> {
        let caller = caller::of(&self.0, &request);
        let v1::ServersSetLogLevelRequest { server, level } = request.into_inner();
        let level = super::tools::level(&level)?;
        let server = self.0.pool.get(&server, &caller)?;
        caller.check_control()?;
        let info = server.lists_for(&caller).info;
        if info.is_some_and(|info| !info.terms().offers.logging) {
            let name = server.config().name.clone();
            let message = format!("the server {name:?} does not log for its clients");
            let failure = Failure::new(Reason::NotSupported, message);
            return Err(failure.with(|details| details.server = Some(name)).into());
        }
        server.set_level(level);
        Ok(Response::new(v1::ServersSetLogLevelResponse {}))
    }

    type WatchStream = ReceiverStream<Result<v1::ServersWatchResponse, Status>>;

    async fn watch(
        &self,
        request: Request<v1::ServersWatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let caller = caller::of(&self.0, &request);
        let name = request.into_inner().server;
        let only = if name.is_empty() {
            None
        } else {
            Some(self.0.pool.get(&name, &caller)?.config().name.clone())
        };
        let (changes, stream) = mpsc::channel(64);
        tokio::spawn(watch(Arc::clone(&self.0), caller, only, changes));
        Ok(Response::new(ReceiverStream::new(stream)))
    }

    type LogsStream = ReceiverStream<Result<v1::ServersLogsResponse, Status>>;

    async fn logs(
        &self,
        request: Request<v1::ServersLogsRequest>,
    ) -> Result<Response<Self::LogsStream>, Status> {
        let caller = caller::of(&self.0, &request);
        let v1::ServersLogsRequest {
            server,
            tail,
            follow,
        } = request.into_inner();
        let server = self.0.pool.get(&server, &caller)?;
        // One agent's words may be in them, and another's.
        caller.check_control()?;
        let (lines, stream) = mpsc::channel(64);
        let tail = tail.map_or(usize::MAX, |n| n as usize);
        let (kept, news) = server.log().follow(tail);
        let news = follow.then_some(news);
        tokio::spawn(logs(kept, news, self.0.shutdown.clone(), lines));
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}

/// Adds how much memory each server takes.
async fn weigh(servers: &mut [v1::Server]) {
    let Ok(groups) = tokio::task::spawn_blocking(memory::of_groups).await else {
        return;
    };
    for server in servers {
        let pids = server.instances.iter().filter_map(|instance| instance.pid);
        let found: Vec<u64> = pids.filter_map(|pid| groups.get(&pid).copied()).collect();
        server.memory_bytes = (!found.is_empty()).then(|| found.iter().sum());
    }
}

async fn ping(server: &Server, caller: &Caller) -> Result<Duration, Failure> {
    let connection = server.connect(caller).await?;
    let started = Instant::now();
    let answer = match connection.probe() {
        Ok(waiting) => waiting.await,
        Err(error) => Err(error),
    };
    match answer {
        // A server that refuses to be pinged has answered all the same.
        Ok(_) | Err(CallError::Rpc(_)) => Ok(started.elapsed()),
        Err(CallError::NotSent(cause) | CallError::Lost(cause) | CallError::Refused(cause)) => {
            Err((*cause).clone())
        }
        Err(CallError::Dropped(why)) => Err(Failure::new(Reason::HttpError, why)),
        Err(CallError::Overloaded) => Err(Failure::new(
            Reason::Overloaded,
            "too much waits to be read by the server",
        )),
        Err(CallError::TooLarge(_) | CallError::Malformed(_)) => Err(Failure::new(
            Reason::ProtocolError,
            "the answer to the ping is not MCP",
        )),
    }
}

/// Sends each server once, and then again whenever it looks different.
async fn watch(
    context: Arc<Context>,
    caller: Caller,
    only: Option<String>,
    changes: mpsc::Sender<Result<v1::ServersWatchResponse, Status>>,
) {
    let mut pulse = context.pool.pulse();
    let mut told: HashMap<String, v1::Server> = HashMap::new();
    loop {
        let revision = *pulse.borrow_and_update();
        let servers = context.pool.servers();
        let is_meant = |name: &String| only.as_ref().is_none_or(|only| only == name);
        let is_seen = |name: &String| {
            let server = servers.get(name);
            server.is_some_and(|server| caller.oversees(server))
        };
        for (name, server) in servers.iter().filter(|(name, _)| is_meant(name)) {
            if !is_seen(name) {
                continue;
            }
            let now = convert::server(server, &caller, &context.policy);
            let steady = steady(&now);
            if told.get(name) != Some(&steady) {
                told.insert(name.clone(), steady);
                let change = v1::ServersWatchResponse {
                    server: Some(now),
                    removed: false,
                    revision,
                };
                if changes.send(Ok(change)).await.is_err() {
                    return;
                }
            }
        }
        let gone: Vec<String> = told.keys().filter(|name| !is_seen(name)).cloned().collect();
        for server in gone.iter().filter_map(|name| told.remove(name)) {
            let change = v1::ServersWatchResponse {
                server: Some(v1::Server {
                    name: server.name,
                    slug: server.slug,
                    ..v1::Server::default()
                }),
                removed: true,
                revision,
            };
            if changes.send(Ok(change)).await.is_err() {
                return;
            }
        }
        tokio::select! {
            () = changes.closed() => return,
            () = context.shutdown.api_closes() => return,
            changed = pulse.changed() => if changed.is_err() { return },
        }
    }
}

/// A server without what changes with every call.
fn steady(server: &v1::Server) -> v1::Server {
    let mut steady = server.clone();
    steady.calls = 0;
    steady.in_flight = 0;
    steady.waiting = 0;
    steady.call_p50 = None;
    steady.call_p99 = None;
    for limit in &mut steady.rate_limits {
        limit.refused = 0;
    }
    for instance in &mut steady.instances {
        instance.in_flight = 0;
        instance.waiting = 0;
    }
    steady
}

async fn logs(
    kept: Vec<Arc<LogLine>>,
    news: Option<broadcast::Receiver<Arc<LogLine>>>,
    shutdown: Shutdown,
    lines: mpsc::Sender<Result<v1::ServersLogsResponse, Status>>,
) {
    for line in kept {
        if lines.send(Ok(log_line(&line, 0))).await.is_err() {
            return;
        }
    }
    let Some(mut news) = news else { return };
    let mut missed = 0;
    loop {
        let line = tokio::select! {
            () = lines.closed() => return,
            () = shutdown.api_closes() => return,
            // It ends with the server: this task does not hold it.
            line = news.recv() => line,
        };
        match line {
            Ok(line) => {
                if lines
                    .send(Ok(log_line(&line, std::mem::take(&mut missed))))
                    .await
                    .is_err()
                {
                    return;
                }
            }
            Err(RecvError::Lagged(n)) => missed += n,
            Err(RecvError::Closed) => return,
        }
    }
}

fn log_line(line: &LogLine, missed: u64) -> v1::ServersLogsResponse {
    v1::ServersLogsResponse {
        line: line.text.clone(),
        at: Some(convert::timestamp(line.at)),
        generation: line.source.generation,
        instance: line.source.instance,
        missed,
    }
}
