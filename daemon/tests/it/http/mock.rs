//! A server over HTTP that does what a test wants at each request, and else what a good server does.

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::{
    body::{Frame, Incoming},
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    sync::mpsc,
    task::JoinHandle,
};
use tokio_rustls::TlsAcceptor;
use tokio_stream::wrappers::ReceiverStream;

/// A request, as the server saw it.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) verb: Method,
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Value,
    /// Whose connection it came over.
    pub(super) from: SocketAddr,
    /// Which one it is of those with the same method, from 1.
    pub(super) nth: usize,
}

impl Seen {
    pub(super) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    pub(super) fn is(&self, method: &str) -> bool {
        self.method() == method
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// What a good server answers.
    pub(super) fn result(&self, result: Value) -> Value {
        json!({"jsonrpc": "2.0", "id": self.body["id"], "result": result})
    }

    pub(super) fn error(&self, code: i64, message: &str) -> Value {
        let error = json!({"code": code, "message": message});
        json!({"jsonrpc": "2.0", "id": self.body["id"], "error": error})
    }

    /// The echo that was asked for.
    pub(super) fn echo(&self) -> Value {
        let said = &self.body["params"]["arguments"]["message"];
        self.result(json!({"content": [{"type": "text", "text": said}], "resultType": "complete"}))
    }
}

/// A part of a body.
pub(super) enum Part {
    Text(String),
    Wait(u64),
    /// The connection breaks here.
    Cut,
    /// Nothing more comes, and no end.
    Hang,
}

/// What the server does.
pub(super) struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    parts: Vec<Part>,
}

impl Answer {
    pub(super) fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            parts: Vec::new(),
        }
    }

    pub(super) fn json(body: &Value) -> Self {
        let kind = Self::status(200).with("content-type", "application/json");
        kind.part(Part::Text(body.to_string()))
    }

    /// A stream of events: an id (empty for none) and what it says.
    pub(super) fn events() -> Self {
        Self::status(200).with("content-type", "text/event-stream")
    }

    pub(super) fn event(self, id: &str, data: &Value) -> Self {
        let id = if id.is_empty() {
            String::new()
        } else {
            format!("id: {id}\n")
        };
        let data = if data.is_null() {
            String::new()
        } else {
            data.to_string()
        };
        self.part(Part::Text(format!("{id}data: {data}\n\n")))
    }

    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn code(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    pub(super) fn part(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    fn into_response(self) -> Response<Body> {
        let (to, from) = mpsc::channel(4);
        tokio::spawn(async move {
            for part in self.parts {
                let frame = match part {
                    Part::Text(text) => Ok(Frame::data(Bytes::from(text))),
                    Part::Wait(ms) => {
                        tokio::time::sleep(Duration::from_millis(ms)).await;
                        continue;
                    }
                    Part::Cut => {
                        // What came before it is to arrive.
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        Err(io::Error::other("cut"))
                    }
                    Part::Hang => std::future::pending().await,
                };
                if to.send(frame).await.is_err() {
                    return;
                }
            }
        });
        let mut response = Response::new(StreamBody::new(ReceiverStream::new(from)));
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap();
        for (name, value) in self.headers {
            let name: http::HeaderName = name.parse().unwrap();
            response.headers_mut().append(name, value.parse().unwrap());
        }
        response
    }
}

type Body = StreamBody<ReceiverStream<Piece>>;

type Piece = Result<Frame<Bytes>, io::Error>;

type Script = dyn Fn(&Seen) -> Option<Answer> + Send + Sync;

/// The server. It ends with the test.
pub(super) struct Mock {
    pub(super) url: String,
    pub(super) port: u16,
    site: Site,
    task: JoinHandle<()>,
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    Legacy,
    Modern,
    /// One stream of events for everything.
    Old,
}

impl Mock {
    /// A good server, except where the script says otherwise.
    pub(super) async fn start(
        era: Era,
        script: impl Fn(&Seen) -> Option<Answer> + Send + Sync + 'static,
    ) -> Self {
        Self::start_with(era, 0, None, script).await
    }

    pub(super) async fn start_with(
        era: Era,
        port: u16,
        tls: Option<TlsAcceptor>,
        script: impl Fn(&Seen) -> Option<Answer> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let site = Site {
            era,
            script: Arc::new(script),
            log: Arc::default(),
            stream: Arc::default(),
        };
        let ours = site.clone();
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            loop {
                let (stream, from) = listener.accept().await.unwrap();
                stream.set_nodelay(true).unwrap();
                let (site, tls) = (site.clone(), tls.clone());
                connections.spawn(async move {
                    match tls {
                        None => site.serve(stream, from).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                match stream.get_ref().1.alpn_protocol() {
                                    Some(b"h2") => site.serve_h2(stream, from).await,
                                    _ => site.serve(stream, from).await,
                                }
                            }
                        }
                    }
                });
            }
        });
        Self {
            url: format!("{scheme}://localhost:{port}/mcp"),
            port,
            site: ours,
            task,
        }
    }

    /// Ends the one stream of an old server.
    pub(super) fn hang_up(&self) {
        self.site.hang_up();
    }

    /// What it has seen of one method.
    pub(super) fn seen(&self, method: &str) -> Vec<Seen> {
        let log = self.site.log.lock().unwrap();
        log.iter().filter(|seen| seen.is(method)).cloned().collect()
    }

    /// All that it has seen.
    pub(super) fn all(&self) -> Vec<Seen> {
        self.site.log.lock().unwrap().clone()
    }
}

#[derive(Clone)]
struct Site {
    era: Era,
    script: Arc<Script>,
    log: Arc<Mutex<Vec<Seen>>>,
    stream: Arc<Mutex<Option<mpsc::Sender<Piece>>>>,
}

impl Site {
    async fn serve(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        from: SocketAddr,
    ) {
        let service = service_fn(move |request| {
            let site = self.clone();
            async move { Ok::<_, Infallible>(site.answer(request, from).await) }
        });
        let _ = http1::Builder::new()
            .serve_connection(TokioIo::new(stream), service)
            .await;
    }

    async fn serve_h2(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        from: SocketAddr,
    ) {
        let service = service_fn(move |request| {
            let site = self.clone();
            async move { Ok::<_, Infallible>(site.answer(request, from).await) }
        });
        let _ = http2::Builder::new(TokioExecutor::new())
            .serve_connection(TokioIo::new(stream), service)
            .await;
    }

    async fn answer(&self, request: Request<Incoming>, from: SocketAddr) -> Response<Body> {
        let (head, body) = request.into_parts();
        let Ok(body) = body.collect().await else {
            return Answer::status(400).into_response();
        };
        let body: Value = serde_json::from_slice(&body.to_bytes()).unwrap_or_default();
        let seen = {
            let mut log = self.log.lock().unwrap();
            let same =
                |other: &&Seen| other.body["method"] == body["method"] && other.verb == head.method;
            let nth = log.iter().filter(same).count() + 1;
            let seen = Seen {
                verb: head.method,
                path: head.uri.to_string(),
                headers: head.headers,
                body,
                from,
                nth,
            };
            log.push(seen.clone());
            seen
        };
        if let Some(answer) = (self.script)(&seen) {
            return answer.into_response();
        }
        if self.era != Era::Old {
            return self.good(&seen).into_response();
        }
        let event = |text: String| Ok(Frame::data(Bytes::from(text)));
        match (seen.verb.as_str(), seen.path.as_str()) {
            ("GET", "/mcp") => {
                let (to, events) = mpsc::channel(100);
                let place = "event: endpoint\ndata: messages?s=1\n\n".to_owned();
                to.send(event(place)).await.unwrap();
                *self.stream.lock().unwrap() = Some(to);
                let mut response = Response::new(StreamBody::new(ReceiverStream::new(events)));
                let kind = "text/event-stream".parse().unwrap();
                response.headers_mut().insert("content-type", kind);
                response
            }
            ("POST", "/messages?s=1") => {
                let said = self.good(&seen).parts.into_iter().next();
                let to = self.stream.lock().unwrap().clone();
                if let (Some(Part::Text(said)), Some(to)) = (said, to) {
                    let _ = to
                        .send(event(format!("event: message\ndata: {said}\n\n")))
                        .await;
                }
                Answer::status(202).into_response()
            }
            _ => Answer::status(405).into_response(),
        }
    }

    /// Ends the one stream of an old server.
    fn hang_up(&self) {
        self.stream.lock().unwrap().take();
    }

    /// What a good server does.
    fn good(&self, seen: &Seen) -> Answer {
        if seen.verb != Method::POST {
            return Answer::status(405);
        }
        let offers = json!({"tools": {}, "resources": {"subscribe": true}});
        let tool = |name: &str, safe: bool| {
            let hints = json!({"readOnlyHint": safe});
            json!({"name": name, "inputSchema": {"type": "object"}, "annotations": hints})
        };
        let answer = match (seen.method(), self.era) {
            (method, _) if method.is_empty() || method.starts_with("notifications/") => {
                return Answer::status(202);
            }
            ("server/discover", Era::Modern) => seen.result(json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": offers,
                "ttlMs": 600_000, "cacheScope": "public",
            })),
            ("initialize", Era::Legacy | Era::Old) => {
                let info = json!({"name": "mock", "version": "1"});
                let result = seen.result(json!({
                    "protocolVersion": "2025-11-25", "capabilities": offers, "serverInfo": info,
                }));
                let session = format!("session-{}", seen.nth);
                return Answer::json(&result).with("mcp-session-id", &session);
            }
            ("tools/list", _) => seen.result(json!({
                "tools": [tool("echo", false), tool("look", true)], "ttlMs": 600_000, "cacheScope": "public",
            })),
            ("resources/list", _) => seen.result(json!({"resources": [{"uri": "x:///a", "name": "a"}], "ttlMs": 600_000})),
            ("resources/templates/list", _) => {
                seen.result(json!({"resourceTemplates": [], "ttlMs": 600_000}))
            }
            ("resources/read", _) => {
                seen.result(json!({"contents": [{"uri": "x:///a", "text": "a"}], "ttlMs": 0}))
            }
            ("resources/subscribe" | "ping" | "logging/setLevel", Era::Legacy | Era::Old) => {
                seen.result(json!({}))
            }
            ("tools/call", _) => seen.echo(),
            _ => seen.error(-32601, "Method not found"),
        };
        let is_unknown = self.era == Era::Modern && answer["error"]["code"] == -32601;
        Answer::json(&answer).code(if is_unknown { 404 } else { 200 })
    }
}
