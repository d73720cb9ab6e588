//! MCP over Streamable HTTP on the loopback interface.
//!
//! Each POST is handled by the core on a blocking thread; what it sends comes back through a channel. The first
//! message decides how to answer: the answer itself is sent as JSON, anything else opens an event stream.

mod body;
mod faults;
mod headers;
mod post;
mod refusal;
mod sse;

use std::collections::HashMap;
use std::convert::Infallible;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write as _};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use crate::fault;
use crate::options::{Era, Options};
use crate::server::{Server, Session, locked};
use body::Body;
use faults::Faults;
use refusal::Refusal;

/// Serves until the process is killed.
pub(crate) fn run(options: Options, port: u16) -> io::Result<()> {
    fault::at_start(&options)?;
    // The record is of lines, which only stdio has.
    let options = Options {
        wire: None,
        ..options
    };
    let sse = options.sse;
    let server = Server::new(options)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(serve(server, port, sse))
}

async fn serve(server: Arc<Server>, port: u16, sse: bool) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let address = listener.local_addr()?;
    io::stderr().write_all(format!("listening on http://{address}/mcp\n").as_bytes())?;
    let site = Arc::new(Site {
        server,
        sessions: Mutex::default(),
        sse,
        faults: Faults::default(),
    });
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, most likely: they come back as connections end.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let site = site.clone();
        let service = service_fn(move |request| answer(site.clone(), request));
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn answer(site: Arc<Site>, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    Ok(site
        .route(request)
        .await
        .unwrap_or_else(Refusal::into_response))
}

/// The server and its legacy sessions.
struct Site {
    server: Arc<Server>,
    sessions: Mutex<HashMap<String, Arc<Session>>>,
    /// HTTP+SSE is served as well.
    sse: bool,
    faults: Faults,
}

impl Site {
    async fn route(self: Arc<Self>, request: Request<Incoming>) -> Result<Response<Body>, Refusal> {
        if self.sse && matches!(request.uri().path(), sse::STREAM | sse::MESSAGES) {
            return self.old(request).await;
        }
        if request.uri().path() != "/mcp" {
            return Err(Refusal::new(StatusCode::NOT_FOUND, "there is only /mcp"));
        }
        if !headers::origin_is_local(request.headers()) {
            return Err(Refusal::new(
                StatusCode::FORBIDDEN,
                "this Origin is not allowed",
            ));
        }
        match *request.method() {
            Method::POST => self.post(request).await,
            Method::GET if self.server.spoken.era != Era::Modern => self.open_stream(&request),
            Method::DELETE if self.server.spoken.era != Era::Modern => self.delete(&request),
            _ => Err(Refusal::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "this method is not allowed",
            )),
        }
    }

    /// The stream of a legacy session, for what belongs to no request.
    fn open_stream(&self, request: &Request<Incoming>) -> Result<Response<Body>, Refusal> {
        if !headers::accepts(request.headers(), "text/event-stream") {
            return Err(Refusal::new(
                StatusCode::NOT_ACCEPTABLE,
                "Accept must list text/event-stream",
            ));
        }
        let session = self.session(request.headers())?;
        if let Some(rest) = self.rest_of(request.headers()) {
            return Ok(body::event_stream(rest));
        }
        let (out, receiver) = body::channel();
        self.server.listeners.add_legacy(&session, &out);
        Ok(body::event_stream(Body::events(None, receiver, None)))
    }

    fn delete(&self, request: &Request<Incoming>) -> Result<Response<Body>, Refusal> {
        let session = self.session(request.headers())?;
        locked(&self.sessions).retain(|_, known| !Arc::ptr_eq(known, &session));
        self.server.end(&session);
        Ok(Response::new(Body::empty()))
    }

    /// The session a request names: 400 if it names none, 404 if there is no such session.
    fn session(&self, headers: &hyper::HeaderMap) -> Result<Arc<Session>, Refusal> {
        let id = headers::text(headers, headers::SESSION).ok_or_else(|| {
            Refusal::new(
                StatusCode::BAD_REQUEST,
                "the header Mcp-Session-Id is required",
            )
        })?;
        let known = locked(&self.sessions).get(id).cloned();
        known.ok_or_else(|| Refusal::new(StatusCode::NOT_FOUND, "there is no such session"))
    }

    /// Begins a session and gives it an id that cannot be guessed.
    fn begin_session(&self) -> (String, Arc<Session>) {
        let random = || RandomState::new().hash_one(());
        let id = format!("{:016x}{:016x}", random(), random());
        let session = Arc::new(Session::new());
        locked(&self.sessions).insert(id.clone(), session.clone());
        (id, session)
    }
}
