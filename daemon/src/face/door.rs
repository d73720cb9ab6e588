//! Lets clients in, finds out what they speak, and serves them until they leave.

use super::{
    http, lines,
    rewind::Rewind,
    sniff::{Protocol, sniff},
};
use crate::{
    agent::{Agent, Registry, Speaks},
    api::Context,
};
use bytes::BytesMut;
use hyper::{
    server::conn::http2,
    service::{Service as _, service_fn},
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use nexus_proto::{
    endpoint::{AcceptError, Listener, Peer, Stream},
    linger::{Passing, Way},
};
use std::{
    io,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::{
    io::AsyncReadExt as _,
    sync::Semaphore,
    time::{sleep, timeout},
};
use tonic::service::Routes;
use tracing::{debug, warn};

/// How many clients may be connected at once.
const MAX_CONNECTIONS: usize = 1024;

/// How many requests of one client may be under way at once.
const MAX_STREAMS: u32 = 1024;

/// How long a client may take to say what it speaks.
const FIRST_WORD: Duration = Duration::from_secs(10);

const STREAM_WINDOW: u32 = 1024 * 1024;
const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;

/// Lets clients in until it is dropped.
pub async fn serve(
    mut listener: Listener,
    routes: Routes,
    context: Arc<Context>,
    http: Arc<http::Face>,
) {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, peer)) => {
                let (routes, context) = (routes.clone(), Arc::clone(&context));
                let http = Arc::clone(&http);
                tokio::spawn(async move {
                    context.connections.fetch_add(1, Ordering::Relaxed);
                    if let Err(error) = welcome(stream, peer, routes, &context, &http).await {
                        debug!(pid = peer.pid, %error, "a client was lost");
                    }
                    context.connections.fetch_sub(1, Ordering::Relaxed);
                    drop(place);
                });
            }
            Err(told @ (AcceptError::Foreign { .. } | AcceptError::Restored)) => warn!("{told}"),
            Err(AcceptError::Lost(error)) => {
                warn!(%error, "the socket has been removed, and cannot be made anew");
            }
            Err(AcceptError::Io(error)) => {
                // Out of file descriptors, as a rule: it passes, and trying harder makes it worse.
                warn!(%error, "cannot accept a connection");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn welcome(
    mut stream: Stream,
    peer: Peer,
    routes: Routes,
    context: &Arc<Context>,
    http: &Arc<http::Face>,
) -> io::Result<()> {
    let mut seen = BytesMut::with_capacity(64);
    let protocol = timeout(FIRST_WORD, async {
        loop {
            if let Some(protocol) = sniff(&seen) {
                return io::Result::Ok(protocol);
            }
            if seen.len() > 64 || stream.read_buf(&mut seen).await? == 0 {
                return Ok(Protocol::Unknown);
            }
        }
    })
    .await
    .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
    let seen = seen.freeze();
    let stream = Rewind::new(seen.clone(), Passing::new(Way::Down, stream));
    match protocol {
        Protocol::Grpc => grpc(stream, peer, routes, context).await,
        Protocol::McpLines => {
            let agent = Arc::new(Agent::new(peer.pid, Speaks::Mcp));
            let _here = Here::new(&context.agents, &agent);
            lines::serve(stream, agent, context).await
        }
        Protocol::Http1 => {
            let agent = Arc::new(Agent::new(peer.pid, Speaks::Mcp));
            http.serve(stream, agent, http::Way::Endpoint).await
        }
        Protocol::Unknown => {
            if !seen.is_empty() {
                debug!(pid = peer.pid, "a client speaks no protocol that we know");
            }
            Ok(())
        }
    }
}

async fn grpc(
    stream: Rewind<Passing<Stream>>,
    peer: Peer,
    routes: Routes,
    context: &Context,
) -> io::Result<()> {
    // One connection is one agent: what is its own ends when it leaves.
    let agent = Arc::new(Agent::new(peer.pid, Speaks::Grpc));
    let _here = Here::new(&context.agents, &agent);
    let routes = TowerToHyperService::new(routes);
    let routes = service_fn(move |mut request| {
        request.extensions_mut().insert(Arc::clone(&agent));
        routes.call(request)
    });
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(10))
        .serve_connection(TokioIo::new(stream), routes);
    let mut connection = std::pin::pin!(connection);
    let served = tokio::select! {
        served = &mut connection => served,
        () = context.shutdown.api_closes() => {
            // Answers that are being written go out; nothing new is taken.
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    served.map_err(io::Error::other)
}

/// Somebody who is connected, for as long as this is held.
struct Here<'a> {
    agents: &'a Registry,
    id: u64,
}

impl<'a> Here<'a> {
    fn new(agents: &'a Registry, agent: &Arc<Agent>) -> Self {
        agents.add(agent);
        Self {
            agents,
            id: agent.id(),
        }
    }
}

impl Drop for Here<'_> {
    fn drop(&mut self) {
        self.agents.remove(self.id);
    }
}
