//! MCP over HTTP/1.1: on the endpoint, and where it is wanted on a loopback address.
//!
//! Requests of the modern era stand alone. Those of the legacy era belong to a session, which outlives the
//! connections that it is spoken over, and the daemon.

mod body;
mod guard;
mod headers;
mod route;
mod session;
mod sessions;
mod tcp;
mod token;

pub use guard::Way;
pub use tcp::{BindError, Loopback};
pub use token::Token;

use super::mcp::{Client, Introduction, Kind, Message, Out, Rounds, Says, not_a_message};
use crate::{
    agent::Agent,
    api::Context,
    mcp::{
        MAX_MESSAGE,
        envelope::{self, Incoming, RpcError},
        outgoing,
    },
};
use body::{Body, Events, Keeps};
use bytes::Bytes;
use headers::Accepts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use hyper::{body::Incoming as Sent, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use route::Route;
use session::Session;
use sessions::Sessions;
use std::{convert::Infallible, io, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::timeout,
};

/// How long a client may take to send a request that it has begun.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long a client that is being left may take to read its last answers.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How many messages about one request may wait for a client that is slow to read.
const WAITING: usize = 64;

/// What all connections share.
#[derive(Debug)]
pub struct Face {
    context: Arc<Context>,
    sessions: Sessions,
    /// A client may come back with its answers over any connection.
    rounds: Arc<Rounds>,
}

impl Face {
    /// Nobody has come yet.
    pub fn new(context: Arc<Context>) -> Arc<Self> {
        Arc::new(Self {
            context,
            sessions: Sessions::default(),
            rounds: Arc::new(Rounds::shared()),
        })
    }

    /// Serves a connection until it ends, or the doors close.
    pub async fn serve<S>(
        self: &Arc<Self>,
        stream: S,
        agent: Arc<Agent>,
        way: Way,
    ) -> io::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let service = service_fn(|request| {
            let (face, agent, way) = (Arc::clone(self), Arc::clone(&agent), way.clone());
            async move { Ok::<_, Infallible>(face.answer(request, agent, &way).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(PATIENCE)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        let served = tokio::select! {
            served = &mut connection => served,
            () = self.context.shutdown.api_closes() => {
                connection.as_mut().graceful_shutdown();
                // Streams have no end of their own.
                timeout(LAST_WORDS, connection).await.unwrap_or(Ok(()))
            }
        };
        self.context.agents.remove(agent.id());
        served.map_err(io::Error::other)
    }

    async fn answer(&self, request: Request<Sent>, agent: Arc<Agent>, way: &Way) -> Response<Body> {
        let answered = self.handle(request, agent, way).await;
        answered.unwrap_or_else(|refusal| *refusal)
    }

    async fn handle(
        &self,
        request: Request<Sent>,
        agent: Arc<Agent>,
        way: &Way,
    ) -> Result<Response<Body>, Refusal> {
        let (parts, body) = request.into_parts();
        guard::check(&parts.headers, way)?;
        let route = Route::of(parts.uri.path()).ok_or_else(|| {
            let text = "there is nothing here: MCP is at /mcp, and one server at /mcp/NAME";
            plain(StatusCode::NOT_FOUND, text)
        })?;
        let introduction = Introduction {
            servers: route.servers,
            project: headers::project(&parts.headers),
            credential: guard::credential(&parts.headers, way),
            tools: route::tools(parts.uri.query()),
            profile: route::profile(parts.uri.query()),
        };
        match parts.method {
            Method::POST => {
                let message = read(&parts.headers, body).await?;
                self.post(&parts.headers, message, introduction, agent)
                    .await
            }
            Method::GET => {
                if !headers::accepts(&parts.headers).events {
                    let text = "a GET is for streams: send Accept: text/event-stream";
                    return Err(plain(StatusCode::NOT_ACCEPTABLE, text));
                }
                let session = self.session(&parts.headers, introduction, &agent)?;
                let (out, from) = Out::new(WAITING);
                session.listen(out);
                let events = Events::new(None, from, Keeps::Session(session.open()));
                Ok(body::stream(events))
            }
            Method::DELETE => {
                let id = headers::session(&parts.headers).ok_or_else(no_session)?;
                match self.sessions.end(id, introduction.credential.as_ref()) {
                    true => Ok(body::empty(StatusCode::NO_CONTENT)),
                    false => Err(unknown_session()),
                }
            }
            _ => {
                let mut refused = plain(StatusCode::METHOD_NOT_ALLOWED, "GET, POST or DELETE");
                let allowed = HeaderValue::from_static("GET, POST, DELETE");
                refused.headers_mut().insert(header::ALLOW, allowed);
                Err(refused)
            }
        }
    }

    async fn post(
        &self,
        headers: &HeaderMap,
        message: Incoming,
        introduction: Introduction,
        agent: Arc<Agent>,
    ) -> Result<Response<Body>, Refusal> {
        if let Incoming::Request { id, method, params } = &message {
            let bad = |error: RpcError| rpc_error(StatusCode::BAD_REQUEST, id, &error);
            let says = Says::read(method, params).map_err(bad)?;
            if method == "initialize" && !says.is_modern {
                return self.initialize(headers, message, introduction, agent).await;
            }
            if says.is_modern || headers::is_modern(headers) {
                headers::check(headers, method, says).map_err(bad)?;
                return Ok(self.modern(headers, message, introduction, agent).await);
            }
        } else if headers::session(headers).is_none() {
            // News of a client that has no session: that it has given up, which it says by closing too.
            return match message {
                Incoming::Notification { .. } => Ok(body::empty(StatusCode::ACCEPTED)),
                _ => Err(no_session()),
            };
        }
        headers::check_legacy(headers)?;
        let session = self.session(headers, introduction, &agent)?;
        if !matches!(message, Incoming::Request { .. }) {
            let (out, _) = Out::new(1);
            session.client().receive(message, &out).await;
            return Ok(body::empty(StatusCode::ACCEPTED));
        }
        let accepts = headers::accepts(headers);
        let (out, from) = Out::new(WAITING);
        let open = session.open_for(accepts.events.then(|| out.downgrade()));
        session.client().receive(message, &out).await;
        drop(out);
        Ok(reply(from, accepts, Keeps::Session(open), |_| StatusCode::OK).await)
    }

    /// A request that stands alone.
    async fn modern(
        &self,
        headers: &HeaderMap,
        message: Incoming,
        introduction: Introduction,
        agent: Arc<Agent>,
    ) -> Response<Body> {
        self.context.agents.add(&agent);
        let (out, from) = Out::new(WAITING);
        let rounds = Some(Arc::clone(&self.rounds));
        let client = Client::arrive(Arc::clone(&self.context), agent, out.clone(), rounds);
        client.introduce(introduction);
        client.receive(message, &out).await;
        let accepts = headers::accepts(headers);
        // Whoever goes has given up: the client ends with the answer's body.
        reply(from, accepts, Keeps::Client(client), headers::status).await
    }

    async fn initialize(
        &self,
        headers: &HeaderMap,
        message: Incoming,
        introduction: Introduction,
        agent: Arc<Agent>,
    ) -> Result<Response<Body>, Refusal> {
        let session = Session::new(&self.context, introduction, agent.pid());
        let (out, from) = Out::new(WAITING);
        let open = session.open();
        session.client().receive(message, &out).await;
        drop(out);
        let accepts = headers::accepts(headers);
        let mut response = reply(from, accepts, Keeps::Session(open), |_| StatusCode::OK).await;
        let Some(id) = session.id() else {
            return Ok(response); // it was refused
        };
        self.sessions.keep(id.clone(), session)?;
        let id = HeaderValue::from_str(id.as_str()).map_err(|_| no_session())?;
        response.headers_mut().insert(headers::SESSION, id);
        Ok(response)
    }

    fn session(
        &self,
        headers: &HeaderMap,
        introduction: Introduction,
        agent: &Agent,
    ) -> Result<Arc<Session>, Refusal> {
        let id = headers::session(headers).ok_or_else(no_session)?;
        self.sessions
            .find(id, &self.context, introduction, agent.pid())?
            .ok_or_else(unknown_session)
    }
}

/// A whole response that says no.
type Refusal = Box<Response<Body>>;

fn plain(status: StatusCode, text: &str) -> Refusal {
    Box::new(body::text(status, text))
}

fn rpc_error(status: StatusCode, id: &[u8], error: &RpcError) -> Refusal {
    Box::new(body::json(status, outgoing::error_response(id, error)))
}

fn no_session() -> Refusal {
    let text = "the header Mcp-Session-Id is missing: begin with initialize";
    let error = RpcError::new(-32600, text);
    rpc_error(StatusCode::BAD_REQUEST, b"null", &error)
}

fn unknown_session() -> Refusal {
    let error = RpcError::new(-32001, "the session has ended: begin with initialize");
    rpc_error(StatusCode::NOT_FOUND, b"null", &error)
}

/// The message of a request's body.
async fn read(headers: &HeaderMap, body: Sent) -> Result<Incoming, Refusal> {
    if !headers::is_json(headers) {
        let text = "send Content-Type: application/json";
        return Err(plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
    }
    let body = timeout(PATIENCE, Limited::new(body, MAX_MESSAGE).collect()).await;
    let body: Bytes = match body {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(wrong)) if wrong.is::<http_body_util::LengthLimitError>() => {
            let text = format!("a message has no more than {MAX_MESSAGE} bytes");
            return Err(plain(StatusCode::PAYLOAD_TOO_LARGE, &text));
        }
        Ok(Err(_)) | Err(_) => {
            return Err(plain(StatusCode::REQUEST_TIMEOUT, "the body did not come"));
        }
    };
    envelope::parse(&body).map_err(|wrong| {
        let (text, _) = not_a_message(&wrong);
        Box::new(body::json(StatusCode::BAD_REQUEST, text))
    })
}

/// The answer to a request: its result alone if that comes first, else a stream that ends with it.
async fn reply(
    mut from: tokio::sync::mpsc::Receiver<Message>,
    accepts: Accepts,
    keeps: Keeps,
    status: impl Fn(Option<i64>) -> StatusCode,
) -> Response<Body> {
    loop {
        match from.recv().await {
            Some(message) => match message.kind {
                Kind::Answer(error) if accepts.json || !accepts.events => {
                    return body::json(status(error), message.text);
                }
                // Whoever cannot be sent a stream gets the answer alone.
                Kind::News | Kind::Question if !accepts.events => {}
                _ => return body::stream(Events::new(Some(message), from, keeps)),
            },
            // It was cancelled.
            None => return body::empty(StatusCode::ACCEPTED),
        }
    }
}
