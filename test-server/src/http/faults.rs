//! What goes wrong between a request and the core: statuses, types, sessions and streams.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{HeaderMap, Response, StatusCode};

use super::Site;
use super::body::{Body, Messages};
use super::headers::{self, SESSION};
use super::refusal::Refusal;
use crate::fault::Fault;
use crate::server::locked;

/// What has happened so far.
#[derive(Default)]
pub(super) struct Faults {
    /// How many `tools/call` have come.
    calls: AtomicU64,
    /// How many requests each session has had.
    uses: Mutex<HashMap<String, u64>>,
    /// Nobody is let in any more.
    shut: AtomicBool,
    /// Streams that were cut, by the id of their last event.
    cut: Mutex<HashMap<String, Messages>>,
}

/// What becomes of a call.
#[derive(Debug, Default)]
pub(super) struct Course {
    /// Which call it is.
    pub(super) call: u64,
    /// Its stream is cut.
    pub(super) cut: bool,
    /// Its answer comes in two halves, so far apart.
    pub(super) slow: Option<Duration>,
}

impl Site {
    /// Refuses a request that a fault is due for.
    pub(super) fn fault(
        &self,
        headers: &HeaderMap,
        method: &str,
    ) -> Result<Course, Box<Response<Body>>> {
        let (plan, faults) = (&self.server.plan, &self.faults);
        if plan.is_empty() {
            return Ok(Course::default());
        }
        let refused = |status, why| Err(Box::new(Refusal::new(status, why).into_response()));
        let session = headers::text(headers, SESSION);
        if let (Some(limit), Some(session)) = (plan.number(Fault::HttpSession), session) {
            let mut uses = locked(&faults.uses);
            let used = uses.entry(session.to_owned()).or_default();
            *used += 1;
            if *used > limit {
                return refused(StatusCode::NOT_FOUND, "there is no such session");
            }
        }
        let is_call = method == "tools/call";
        let call = faults
            .calls
            .fetch_add(u64::from(is_call), Ordering::Relaxed)
            + 1;
        if is_call && plan.since(Fault::HttpAuth, call) {
            faults.shut.store(true, Ordering::Relaxed);
        }
        if faults.shut.load(Ordering::Relaxed) {
            return refused(StatusCode::UNAUTHORIZED, "who are you?");
        }
        if !is_call {
            return Ok(Course::default());
        }
        if plan.at(Fault::HttpLimit, call) {
            let mut limited =
                Refusal::new(StatusCode::TOO_MANY_REQUESTS, "not so fast").into_response();
            let wait = HeaderValue::from_static("1");
            limited.headers_mut().insert(RETRY_AFTER, wait);
            return Err(Box::new(limited));
        }
        if plan.at(Fault::HttpError, call) {
            return refused(StatusCode::SERVICE_UNAVAILABLE, "not now");
        }
        if plan.at(Fault::HttpPage, call) {
            let mut page = Response::new(Body::whole(b"<html>Sign in</html>".to_vec()));
            let kind = HeaderValue::from_static("text/html");
            page.headers_mut().insert(CONTENT_TYPE, kind);
            return Err(Box::new(page));
        }
        Ok(Course {
            call,
            cut: plan.at(Fault::HttpCut, call),
            slow: plan.number(Fault::HttpSlow).map(Duration::from_millis),
        })
    }

    /// Ends a stream before its answer, and keeps the rest.
    pub(super) fn cut(&self, call: u64, rest: Messages) -> Body {
        let id = format!("cut-{call}");
        locked(&self.faults.cut).insert(id.clone(), rest);
        Body::whole(format!("retry: 10\nid: {id}\ndata:\n\n").into_bytes())
    }

    /// The rest of a stream that was cut, for whoever asks for what came after its last event.
    pub(super) fn rest_of(&self, headers: &HeaderMap) -> Option<Body> {
        let last = headers::text(headers, "last-event-id")?;
        let rest = locked(&self.faults.cut).remove(last)?;
        Some(Body::events(None, rest, None))
    }
}
