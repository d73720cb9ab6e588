//! HTTP+SSE, as the first revision had it: one stream of events for everything that the server says.

use std::sync::Arc;

use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};

use super::Site;
use super::body::{self, Body};
use super::refusal::Refusal;
use crate::server::locked;

/// Where the stream is.
pub(super) const STREAM: &str = "/sse";

/// Where messages go.
pub(super) const MESSAGES: &str = "/message";

impl Site {
    pub(super) async fn old(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Refusal> {
        match (request.method(), request.uri().path()) {
            (&Method::GET, STREAM) => {
                let (id, session) = self.begin_session();
                let (out, receiver) = body::channel();
                session.speak_through(&out);
                self.server.listeners.add_legacy(&session, &out);
                let place = format!("event: endpoint\ndata: {MESSAGES}?sessionId={id}\n\n");
                Ok(body::event_stream(Body::old(place, receiver)))
            }
            (&Method::POST, MESSAGES) => {
                let query = request.uri().query().unwrap_or_default();
                let id = query.strip_prefix("sessionId=").unwrap_or_default();
                let known = locked(&self.sessions).get(id).cloned();
                let unknown = || Refusal::new(StatusCode::NOT_FOUND, "there is no such session");
                let session = known.ok_or_else(unknown)?;
                let out = session.out().ok_or_else(unknown)?;
                let message = Limited::new(request.into_body(), super::post::LIMIT);
                let message = message.collect().await.map_err(|_| {
                    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "the message is too large")
                })?;
                let (server, message) = (self.server.clone(), message.to_bytes());
                tokio::task::spawn_blocking(move || server.handle(&session, &message, &out));
                let mut accepted = Response::new(Body::whole(b"Accepted".to_vec()));
                *accepted.status_mut() = StatusCode::ACCEPTED;
                Ok(accepted)
            }
            _ => Err(Refusal::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "this method is not allowed",
            )),
        }
    }
}
