//! One HTTP/2 connection to the daemon, made again when it is lost.
//!
//! Not tonic's `Channel`: that has a task of its own between caller and connection, and cannot
//! tell whether a request had been sent when the connection died. Here a request that was not sent
//! comes back and goes out on the next connection; one that may have been sent never does.

use crate::{Error, retry::Retry};
use http::{HeaderMap, HeaderValue, Request, Response, header::USER_AGENT};
use hyper::{
    body::Incoming,
    client::conn::http2::{self, SendRequest},
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use nexus_proto::endpoint::Endpoint;
use std::{
    fmt,
    future::Future,
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::{Instant, timeout, timeout_at};
use tonic::body::Body;
use tower_service::Service;

const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 8 << 20;
const MAX_HEADERS: u32 = 64 << 10;
const KEEP_ALIVE: Duration = Duration::from_secs(30);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(10);
const AGENT: HeaderValue =
    HeaderValue::from_static(concat!("nexus-client/", env!("CARGO_PKG_VERSION")));

/// A connection that has been idle this long may have died unseen.
const STALE: Duration = Duration::from_millis(100);

/// How the connection is made, and for how long it is tried.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) endpoint: Endpoint,
    /// How long one attempt may take.
    pub(crate) connect_timeout: Duration,
    /// How long a daemon that has never been there is waited for.
    pub(crate) wait_for_daemon: Duration,
    /// How long a daemon that had been there is waited for.
    pub(crate) reconnect_for: Duration,
    /// What every request says of who sends it.
    pub(crate) introduction: HeaderMap,
}

/// The connection, as the generated clients use it. Clones share it.
#[derive(Clone)]
pub(crate) struct Transport(Arc<Shared>);

struct Shared {
    settings: Settings,
    line: Mutex<Line>,
    // Whoever holds it is connecting, for everybody.
    connecting: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Line {
    sender: Option<SendRequest<Body>>,
    was_connected: bool,
    last_use: Option<Instant>,
}

/// Why a request has no response. It has no source: tonic would look into it and lose the type.
#[derive(Debug)]
pub(crate) enum TransportError {
    /// There is no connection; the request was not sent.
    Unreachable(io::Error),
    /// The connection was lost; the request may have been sent.
    Lost(hyper::Error),
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(error) => error.fmt(f),
            Self::Lost(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TransportError {}

impl Transport {
    pub(crate) fn new(settings: Settings) -> Self {
        Self(Arc::new(Shared {
            settings,
            line: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
        }))
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// Makes sure that there is a connection.
    pub(crate) async fn connect(&self) -> Result<(), Error> {
        let connected = self.sender(&mut self.budget()).await;
        connected.map(drop).map_err(|source| Error::Unreachable {
            endpoint: self.settings().endpoint.path().to_owned(),
            source,
        })
    }

    /// How long this client may look for the daemon, from now on.
    pub(crate) fn budget(&self) -> Retry {
        let budget = if self.line().was_connected {
            self.settings().reconnect_for
        } else {
            self.settings().wait_for_daemon
        };
        Retry::new(Instant::now(), budget)
    }

    async fn send(self, mut request: Request<Body>) -> Result<Response<Incoming>, TransportError> {
        request.headers_mut().insert(USER_AGENT, AGENT);
        for (name, value) in &self.settings().introduction {
            request.headers_mut().insert(name, value.clone());
        }
        if self.was_idle() {
            // Lets the runtime read what has come meanwhile: the end of the connection, perhaps.
            tokio::task::yield_now().await;
        }
        let mut retry = None;
        loop {
            let sent = match self.live() {
                Some(mut sender) => sender.try_send_request(request).await,
                None => {
                    let retry = retry.get_or_insert_with(|| self.budget());
                    let sender = self.sender(retry).await;
                    let mut sender = sender.map_err(TransportError::Unreachable)?;
                    sender.try_send_request(request).await
                }
            };
            let mut error = match sent {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            // The request comes back if, and only if, nothing of it was sent.
            request = match error.take_message() {
                Some(request) => request,
                None => return Err(TransportError::Lost(error.into_error())),
            };
            let retry = retry.get_or_insert_with(|| self.budget());
            if !retry.pause().await {
                let error = io::Error::other(error.into_error());
                return Err(TransportError::Unreachable(error));
            }
        }
    }

    /// The connection there is, else a new one: made once, for all who wait.
    async fn sender(&self, retry: &mut Retry) -> io::Result<SendRequest<Body>> {
        // Who waits in vain still makes an attempt of its own, and so learns why.
        let _connecting = timeout_at(retry.until(), self.0.connecting.lock()).await;
        loop {
            if let Some(sender) = self.live() {
                return Ok(sender);
            }
            let error = match self.dial().await {
                Ok(sender) => {
                    let mut line = self.line();
                    line.sender = Some(sender.clone());
                    line.was_connected = true;
                    return Ok(sender);
                }
                Err(error) => error,
            };
            // Somebody else's socket does not become ours by waiting.
            if error.kind() == io::ErrorKind::PermissionDenied || !retry.pause().await {
                return Err(error);
            }
        }
    }

    async fn dial(&self) -> io::Result<SendRequest<Body>> {
        let settings = self.settings();
        let dial = async {
            let stream = settings.endpoint.connect().await?;
            let (sender, connection) = http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .initial_stream_window_size(STREAM_WINDOW)
                .initial_connection_window_size(CONNECTION_WINDOW)
                .max_header_list_size(MAX_HEADERS)
                .keep_alive_interval(KEEP_ALIVE)
                .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
                .handshake(TokioIo::new(stream))
                .await
                .map_err(io::Error::other)?;
            // It ends with the connection; whoever waits for an answer learns of it then.
            tokio::spawn(connection);
            Ok(sender)
        };
        timeout(settings.connect_timeout, dial)
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    fn live(&self) -> Option<SendRequest<Body>> {
        let line = self.line();
        line.sender.clone().filter(|sender| !sender.is_closed())
    }

    fn was_idle(&self) -> bool {
        let now = Instant::now();
        let last = self.line().last_use.replace(now);
        last.is_some_and(|last| now - last > STALE)
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.0.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Service<Request<Body>> for Transport {
    type Response = Response<Incoming>;
    type Error = TransportError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().send(request))
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let connected = self.live().is_some();
        f.debug_struct("Transport")
            .field("endpoint", &self.settings().endpoint)
            .field("connected", &connected)
            .finish()
    }
}
