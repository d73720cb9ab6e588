//! POST: one message in; one message, an event stream, or a plain 202 out.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper::header::HeaderValue;
use hyper::{HeaderMap, Request, Response, StatusCode};

use super::Site;
use super::body::{self, Body, Ending};
use super::faults::Course;
use super::headers;
use super::refusal::Refusal;
use crate::eras::{self, Dialect};
use crate::message::{self, Incoming};
use crate::options::Era;
use crate::out::Kind;
use crate::server::Session;

/// The largest message taken.
pub(super) const LIMIT: usize = 64 << 20;

/// Whom a request belongs to.
enum Caller {
    /// A legacy session, with its id if it begins here.
    Session(Arc<Session>, Option<String>),
    /// Nobody in particular.
    Stateless,
}

impl Site {
    pub(super) async fn post(
        &self,
        request: Request<hyper::body::Incoming>,
    ) -> Result<Response<Body>, Refusal> {
        let (head, body) = request.into_parts();
        if !["application/json", "text/event-stream"]
            .into_iter()
            .all(|kind| headers::accepts(&head.headers, kind))
        {
            let why = "Accept must list application/json and text/event-stream";
            return Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, why));
        }
        if !headers::is_json(&head.headers) {
            return Err(Refusal::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "Content-Type must be application/json",
            ));
        }
        let message = match Limited::new(body, LIMIT).collect().await {
            Ok(collected) => collected.to_bytes(),
            Err(_) => {
                return Err(Refusal::new(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "the message is too large or incomplete",
                ));
            }
        };
        let (caller, dialect, course) =
            match message::parse(&message).map_err(|error| Refusal::bad_request("null", error))? {
                Incoming::Request { id, method, params } => {
                    let course = match self.fault(&head.headers, &method) {
                        Ok(course) => course,
                        Err(refused) => return Ok(*refused),
                    };
                    let (caller, dialect) = self.caller(&head.headers, id, &method, params)?;
                    (caller, dialect, course)
                }
                Incoming::Notification { .. } | Incoming::Response { .. } => {
                    return self.accept(&head.headers, &message);
                }
            };
        Ok(self.run(message, caller, dialect, course).await)
    }

    /// Finds out whom a request belongs to, and refuses what the core must not see.
    fn caller(
        &self,
        headers: &HeaderMap,
        id: &str,
        method: &str,
        params: Option<&serde_json::value::RawValue>,
    ) -> Result<(Caller, Dialect), Refusal> {
        let bad_request = |error| Refusal::bad_request(id, error);
        let params = message::params(params).map_err(bad_request)?;
        let in_session = headers.contains_key(headers::SESSION);
        // A version that the header does not name is a mismatch first, whatever it is.
        if let Some(version) = params.meta.version.as_deref()
            && !in_session
            && self.server.spoken.era != Era::Legacy
        {
            headers::check_version(headers, version).map_err(bad_request)?;
        }
        let dialect = self
            .server
            .dialect(in_session, method, &params)
            .map_err(bad_request)?;
        let caller = match dialect {
            Dialect::Modern => {
                headers::check(headers, method, &params).map_err(bad_request)?;
                Caller::Stateless
            }
            Dialect::Legacy if method == "initialize" => {
                let (id, session) = self.begin_session();
                Caller::Session(session, Some(id))
            }
            Dialect::Legacy => {
                self.check_legacy_version(headers)?;
                Caller::Session(self.session(headers)?, None)
            }
        };
        Ok((caller, dialect))
    }

    /// Takes a message that has no answer.
    fn accept(&self, headers: &HeaderMap, message: &[u8]) -> Result<Response<Body>, Refusal> {
        let modern = match self.server.spoken.era {
            Era::Legacy => false,
            Era::Modern => true,
            Era::Dual => headers::text(headers, headers::VERSION) == Some(eras::MODERN),
        };
        if !modern {
            // Notifications and answers send nothing back, so the core does not block here.
            self.server
                .handle(&self.session(headers)?, message, &body::channel().0);
        }
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::ACCEPTED;
        Ok(response)
    }

    /// Lets the core answer.
    async fn run(
        &self,
        message: Bytes,
        caller: Caller,
        dialect: Dialect,
        course: Course,
    ) -> Response<Body> {
        let server = self.server.clone();
        let (session, new_id, ending) = match caller {
            Caller::Session(session, id) => (session, id, None),
            Caller::Stateless => {
                let session = Arc::new(Session::new());
                (
                    session.clone(),
                    None,
                    Some(Ending {
                        server: server.clone(),
                        session,
                    }),
                )
            }
        };
        let (out, mut messages) = body::channel();
        tokio::task::spawn_blocking(move || server.handle(&session, &message, &out));
        if course.cut {
            return body::event_stream(match dialect {
                Dialect::Legacy => self.cut(course.call, messages),
                // Nobody takes it up: it ends with this.
                Dialect::Modern => Body::whole(b": cut\n\n".to_vec()),
            });
        }
        let mut response = match messages.recv().await {
            Some((answer, Kind::Answer(error))) => {
                let mut response = match course.slow {
                    Some(pause) => body::json_slowly(answer, pause),
                    None => body::json(answer),
                };
                *response.status_mut() = status(dialect, error);
                response
            }
            Some((aside, Kind::Aside | Kind::Urgent)) => {
                body::event_stream(Body::events(Some(aside), messages, ending))
            }
            // Cancelled before it said anything.
            None => body::event_stream(Body::events(None, messages, ending)),
        };
        if let Some(id) = new_id.and_then(|id| HeaderValue::from_str(&id).ok()) {
            response.headers_mut().insert(headers::SESSION, id);
        }
        response
    }

    /// Absent means 2025-03-26, which had no such header.
    fn check_legacy_version(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        match headers::text(headers, headers::VERSION) {
            Some(version) if !self.server.spoken.has_legacy(version) => Err(Refusal::new(
                StatusCode::BAD_REQUEST,
                "the header MCP-Protocol-Version is not of a legacy session",
            )),
            _ => Ok(()),
        }
    }
}

/// The status a modern error has; a legacy one is told in the body alone.
fn status(dialect: Dialect, error: Option<i32>) -> StatusCode {
    match (dialect, error) {
        (Dialect::Modern, Some(-32601)) => StatusCode::NOT_FOUND,
        (Dialect::Modern, Some(-32022..=-32020)) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}
