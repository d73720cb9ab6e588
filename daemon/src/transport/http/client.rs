//! One request and its response: sent to one server, followed nowhere else, read within bounds.

use super::{
    Memory,
    connector::{Connector, Way},
    headers,
    spec::{Endpoint, HttpSpec},
    tls::{self, TlsError},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper_util::{
    client::legacy,
    rt::{TokioExecutor, TokioTimer},
};
use std::{
    error::Error,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// An idle connection is not kept for longer: many servers end theirs after five seconds, and a request
/// that crosses with that is lost.
const IDLE: Duration = Duration::from_secs(4);

/// A connection that carries many streams is asked so often whether it is there.
const PING: Duration = Duration::from_secs(20);

/// How often a server may send us on to another place of its own.
const MAX_HOPS: usize = 3;

/// How long a body may stay unfinished while nothing more of it comes.
pub(super) const UNFINISHED: Duration = Duration::from_secs(60);

/// Speaks to one server.
pub(super) struct Client {
    inner: legacy::Client<Connector, Outgoing>,
    base: HeaderMap,
    pub(super) to: Endpoint,
    uri: http::Uri,
    /// Nothing more is sent.
    stopped: Arc<AtomicBool>,
}

/// Why there is no response.
#[derive(Debug)]
pub(super) struct SendError {
    /// Nobody has seen the request.
    pub(super) unsent: bool,
    /// It took too long to connect.
    pub(super) late: bool,
    /// The server sends us where we do not go.
    pub(super) refused: bool,
    pub(super) message: String,
}

impl Client {
    /// Reads the files that TLS needs.
    pub(super) fn new(spec: &HttpSpec, memory: &Arc<Memory>) -> Result<Self, TlsError> {
        let tls = match spec.url.https {
            true => Some(TlsConnector::from(Arc::new(tls::config(&spec.tls)?))),
            false => None,
        };
        let way = Way {
            to: spec.url.clone(),
            proxy: spec.proxy.clone(),
            addresses: Arc::clone(memory),
            tls,
            timeout: spec.connect_timeout,
        };
        let inner = legacy::Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .http2_keep_alive_interval(PING)
            .http2_keep_alive_while_idle(true)
            .build(Connector(Arc::new(way)));
        Ok(Self {
            inner,
            base: base_headers(spec),
            to: spec.url.clone(),
            uri: spec.url.to_url().parse().unwrap_or_default(),
            stopped: Arc::default(),
        })
    }

    /// Sends nothing more: what has not left by now never will.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// What goes with every request.
    pub(super) fn headers(&self) -> HeaderMap {
        self.base.clone()
    }

    /// Sends a request. `taken` is set when the first byte of it may have left.
    pub(super) async fn send(
        &self,
        method: Method,
        to: &Endpoint,
        headers: HeaderMap,
        body: Bytes,
        taken: &Arc<AtomicBool>,
    ) -> Result<Response<Incoming>, SendError> {
        let mut moved: Option<Endpoint> = None;
        let mut hops = 0;
        loop {
            let to = moved.as_ref().unwrap_or(to);
            let outgoing = Outgoing {
                body: Some(body.clone()).filter(|body| !body.is_empty()),
                taken: Arc::clone(taken),
                stopped: Arc::clone(&self.stopped),
            };
            let mut request = Request::new(outgoing);
            *request.method_mut() = method.clone();
            *request.uri_mut() = match to == &self.to {
                true => self.uri.clone(),
                false => {
                    let uri = to.to_url().parse();
                    uri.map_err(|error: http::uri::InvalidUri| never(error.to_string()))?
                }
            };
            *request.headers_mut() = headers.clone();
            taken.store(body.is_empty(), Ordering::Relaxed);
            let response = match self.inner.request(request).await {
                Ok(response) => response,
                Err(error) => return Err(self.failed(&error, taken)),
            };
            taken.store(true, Ordering::Relaxed);
            if !response.status().is_redirection() {
                return Ok(response);
            }
            moved = Some(self.follow(to, &response).map_err(never)?);
            hops += 1;
            if hops > MAX_HOPS {
                return Err(never("the server sends us round in circles".to_owned()));
            }
        }
    }

    /// Where a redirection leads, if it may be followed.
    fn follow(&self, from: &Endpoint, response: &Response<Incoming>) -> Result<Endpoint, String> {
        let status = response.status();
        let place = response.headers().get(header::LOCATION);
        let place = place.and_then(|place| place.to_str().ok());
        let place = place.and_then(|place| from.join(place).ok());
        let Some(place) = place else {
            return Err(format!(
                "the server redirects us to nowhere (HTTP {status})"
            ));
        };
        if !place.is_same_origin(&self.to) {
            let other = place.origin();
            return Err(format!(
                "the server redirects us to {other}, which is not followed"
            ));
        }
        match status {
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => Ok(place),
            _ => Err(format!(
                "the server redirects us to {place} in a way that loses the request (HTTP {status})"
            )),
        }
    }

    fn failed(&self, error: &legacy::Error, taken: &AtomicBool) -> SendError {
        let mut causes = Vec::new();
        let mut next: Option<&(dyn Error + 'static)> = Some(error);
        let mut late = false;
        while let Some(cause) = next {
            let io = cause.downcast_ref::<io::Error>();
            late |= io.is_some_and(|error| error.kind() == io::ErrorKind::TimedOut);
            causes.push(cause.to_string());
            next = cause.source();
        }
        // The last says most; what hyper says first is "client error".
        let cause = causes.pop().unwrap_or_default();
        let unsent = error.is_connect() || !taken.load(Ordering::Relaxed);
        let here = &self.to;
        let message = if unsent {
            format!("{here} cannot be reached: {cause}")
        } else {
            format!("the connection to {here} broke: {cause}")
        };
        SendError {
            unsent,
            late: late && error.is_connect(),
            refused: false,
            message,
        }
    }
}

fn never(message: String) -> SendError {
    SendError {
        unsent: false,
        late: false,
        refused: true,
        message,
    }
}

fn base_headers(spec: &HttpSpec) -> HeaderMap {
    let mut map = HeaderMap::new();
    let secret = |text: &str| {
        let value = HeaderValue::from_str(text).ok();
        value.map(|mut value| {
            value.set_sensitive(true);
            value
        })
    };
    for (name, value) in &spec.headers {
        let Ok(name) = HeaderName::try_from(name.as_str()) else {
            continue;
        };
        if !headers::is_reserved(name.as_str())
            && let Some(value) = secret(value.expose())
        {
            map.append(name, value);
        }
    }
    let basic = spec.url.user.as_ref();
    let basic = basic.map(|user| format!("Basic {}", STANDARD.encode(user.expose())));
    let bearer = spec.bearer.as_ref();
    let bearer = bearer.map(|token| format!("Bearer {}", token.expose()));
    let forwarded = spec.forwarded.as_ref();
    let forwarded = forwarded.map(|shown| shown.expose().to_owned());
    let shown = if spec.forward_auth {
        // What is configured is not shown for somebody who shows nothing.
        map.remove(header::AUTHORIZATION);
        forwarded
    } else {
        bearer.or(basic)
    };
    if let Some(shown) = shown.and_then(|shown| secret(&shown)) {
        map.insert(header::AUTHORIZATION, shown);
    }
    let own = concat!("nexus/", env!("CARGO_PKG_VERSION"));
    map.entry(header::USER_AGENT)
        .or_insert(HeaderValue::from_static(own));
    // What is not packed need not be unpacked, and cannot be a bomb.
    map.insert(
        header::ACCEPT_ENCODING,
        HeaderValue::from_static("identity"),
    );
    map
}

/// What is sent. Whether anything of it was taken is known at every moment.
pub(super) struct Outgoing {
    body: Option<Bytes>,
    taken: Arc<AtomicBool>,
    stopped: Arc<AtomicBool>,
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        // It is sent by a task of the connection's, which may be late to hear that nobody waits for it.
        if self.body.is_some() && self.stopped.load(Ordering::Relaxed) {
            return Poll::Ready(Some(Err(io::Error::other("it is no longer wanted"))));
        }
        self.taken.store(true, Ordering::Relaxed);
        Poll::Ready(self.body.take().map(|body| Ok(Frame::data(body))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.body.as_ref().map_or(0, |body| body.len() as u64))
    }
}

/// Why a body is of no use.
#[derive(Debug)]
pub(super) enum BodyError {
    TooLarge(u64),
    Broken(String),
}

/// More of a body; `None` at its end.
pub(super) async fn more(body: &mut Incoming) -> Result<Option<Bytes>, String> {
    loop {
        match body.frame().await {
            None => return Ok(None),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data()
                    && !data.is_empty()
                {
                    return Ok(Some(data));
                }
            }
            Some(Err(error)) => {
                let cause = error.source().map(ToString::to_string);
                return Err(cause.unwrap_or_else(|| error.to_string()));
            }
        }
    }
}

/// All of a body, if it is not larger than allowed.
pub(super) async fn whole(mut body: Incoming, max: usize) -> Result<Bytes, BodyError> {
    let length = body.size_hint().lower();
    if length > max as u64 {
        return Err(BodyError::TooLarge(length));
    }
    let broken = |why: String| BodyError::Broken(format!("the answer broke off: {why}"));
    let next = async |body: &mut Incoming| match timeout(UNFINISHED, more(body)).await {
        Ok(part) => part.map_err(broken),
        Err(_) => {
            let why = "the server began an answer and never ended it";
            Err(BodyError::Broken(why.to_owned()))
        }
    };
    let Some(first) = next(&mut body).await? else {
        return Ok(Bytes::new());
    };
    if body.is_end_stream() {
        return check(first, max);
    }
    let Some(second) = next(&mut body).await? else {
        return check(first, max);
    };
    let mut all = BytesMut::with_capacity((length as usize).max(first.len() + second.len()));
    all.extend_from_slice(&first);
    all.extend_from_slice(&second);
    while let Some(part) = next(&mut body).await? {
        if all.len() + part.len() > max {
            return Err(BodyError::TooLarge((all.len() + part.len()) as u64));
        }
        all.extend_from_slice(&part);
    }
    check(all.freeze(), max)
}

fn check(body: Bytes, max: usize) -> Result<Bytes, BodyError> {
    match body.len() > max {
        true => Err(BodyError::TooLarge(body.len() as u64)),
        false => Ok(body),
    }
}
