//! One HTTP/2 connection to the daemon, made again when it is lost.
//!
//! Not tonic's `Channel`: that has a task of its own between caller and connection, and cannot
//! tell whether a request had been sent when the connection died. Here a request that was not sent
//! comes back and goes out on the next connection; one that may have been sent never does.

use crate::{
    AgentInfo, Error, Root,
    agent::attach::{Attachment, attach},
    retry::Retry,
};
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
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    sync::watch,
    time::{Instant, timeout, timeout_at},
};
use tonic::body::Body;
use tower_service::Service;

const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 8 << 20;
const MAX_HEADERS: u32 = 64 << 10;
const KEEP_ALIVE: Duration = Duration::from_secs(30);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(10);
const AGENT: HeaderValue =
    HeaderValue::from_static(concat!("nexus-client/", env!("CARGO_PKG_VERSION")));

/// Nobody waits longer than this for somebody else's attempt to connect.
const LONGEST_ATTEMPT: Duration = Duration::from_secs(60);

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
    /// Who answers what servers ask.
    pub(crate) agent: Option<AgentInfo>,
}

/// The connection, as the generated clients use it. Clones share it.
#[derive(Clone)]
pub(crate) struct Transport(Arc<Shared>);

struct Shared {
    settings: Settings,
    line: Mutex<Line>,
    // Whoever holds it is connecting, for everybody.
    connecting: tokio::sync::Mutex<()>,
    // The folders of the agent. Attachments end with it.
    roots: watch::Sender<Vec<Root>>,
}

#[derive(Default)]
struct Line {
    sender: Option<SendRequest<Body>>,
    /// How many connections there have been.
    number: u64,
    last_use: Option<Instant>,
}

/// A client that somebody may have.
#[derive(Clone)]
pub(crate) struct WeakTransport(Weak<Shared>);

impl WeakTransport {
    pub(crate) fn upgrade(&self) -> Option<Transport> {
        self.0.upgrade().map(Transport)
    }
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
        let roots = settings.agent.as_ref().map(AgentInfo::first_roots);
        Self(Arc::new(Shared {
            roots: watch::Sender::new(roots.unwrap_or_default()),
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
        connected.map(drop).map_err(|error| self.unreachable(error))
    }

    /// How long this client may look for the daemon, from now on.
    pub(crate) fn budget(&self) -> Retry {
        let budget = if self.line().number > 0 {
            self.settings().reconnect_for
        } else {
            self.settings().wait_for_daemon
        };
        Retry::new(Instant::now(), budget)
    }

    async fn send(self, mut request: Request<Body>) -> Result<Response<Incoming>, TransportError> {
        introduce(&mut request, &self.settings().introduction);
        if self.was_idle() {
            // Lets the runtime read what has come meanwhile: the end of the connection, perhaps. All
            // who come before that has been done do the same.
            tokio::task::yield_now().await;
        }
        self.line().last_use = Some(Instant::now());
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
        // Who has no time to wait for the daemon has it for an attempt that is under way. Who waits in
        // vain still makes an attempt of its own, and so learns why.
        let attempt = Instant::now() + self.settings().connect_timeout.min(LONGEST_ATTEMPT);
        let until = retry.until().max(attempt);
        let _connecting = timeout_at(until, self.0.connecting.lock()).await;
        loop {
            if let Some(sender) = self.live() {
                return Ok(sender);
            }
            let error = match self.open().await {
                Ok(sender) => return Ok(sender),
                Err(error) => error,
            };
            // Somebody else's socket does not become ours by waiting.
            if error.kind() == io::ErrorKind::PermissionDenied || !retry.pause().await {
                return Err(error);
            }
        }
    }

    /// Makes sure that there is a connection, with one attempt.
    pub(crate) fn revive(&self) -> Pin<Box<dyn Future<Output = io::Result<()>> + Send + '_>> {
        // Boxed: what a connection brings with it ends in making another one.
        Box::pin(async {
            let _connecting = self.0.connecting.lock().await;
            match self.live() {
                Some(_) => Ok(()),
                None => self.open().await.map(drop),
            }
        })
    }

    /// Makes a new connection the one that is used. Nothing goes out on it before the agent is known.
    async fn open(&self) -> io::Result<SendRequest<Body>> {
        let (sender, attachment) = self.dial().await?;
        let number = {
            let mut line = self.line();
            line.sender = Some(sender.clone());
            line.number += 1;
            line.last_use = Some(Instant::now());
            line.number
        };
        if let Some(attachment) = attachment {
            let client = WeakTransport(Arc::downgrade(&self.0));
            tokio::spawn(attachment.run(client, number));
        }
        Ok(sender)
    }

    /// Uses that connection no more for what comes; what is under way there goes on.
    pub(crate) fn forget(&self, number: u64) {
        let mut line = self.line();
        if line.number == number {
            line.sender = None;
        }
    }

    pub(crate) fn roots(&self) -> &watch::Sender<Vec<Root>> {
        &self.0.roots
    }

    async fn dial(&self) -> io::Result<(SendRequest<Body>, Option<Attachment>)> {
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
            let Some(agent) = &settings.agent else {
                return Ok((sender, None));
            };
            let connection = Connection {
                sender: sender.clone(),
                introduction: settings.introduction.clone(),
            };
            let attachment = attach(agent, self.0.roots.subscribe(), connection).await?;
            Ok((sender, attachment))
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
        let last = self.line().last_use;
        last.is_some_and(|last| last.elapsed() > STALE)
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.0.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn introduce(request: &mut Request<Body>, introduction: &HeaderMap) {
    request.headers_mut().insert(USER_AGENT, AGENT);
    for (name, value) in introduction {
        request.headers_mut().insert(name, value.clone());
    }
}

/// One connection, and no other once that is lost.
pub(crate) struct Connection {
    sender: SendRequest<Body>,
    introduction: HeaderMap,
}

impl Service<Request<Body>> for Connection {
    type Response = Response<Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        introduce(&mut request, &self.introduction);
        Box::pin(self.sender.send_request(request))
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
