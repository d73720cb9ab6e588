//! One message to the server, and what comes back.

use super::{
    Trouble,
    breaker::MAX_RETRIES,
    client::{self, BodyError},
    headers::{self, Media},
    site::{Place, Session, Site, is_greeting, limited},
    streams::{self, Pumped, Stream},
};
use crate::transport::{
    lines::Line,
    outbox::{Frame, Head},
};
use bytes::Bytes;
use http::{HeaderMap, Method, Response, StatusCode};
use hyper::body::Incoming;
use memchr::memmem;
use nexus_proto::reason::{Failure, Reason};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::{sleep, timeout};

/// How much of the body of an error is read.
const MAX_ERROR: usize = 64 * 1024;

/// How much of it is told.
const MAX_TOLD: usize = 300;

/// How often a server may say that it has too much to do.
const MAX_LIMITED: u32 = 5;

/// How many sessions may end under one request before anything was known to be done in them, and how many in
/// any case: nothing is carried out in a session that is over, so each time it may be sent again.
const FEW_RENEWALS: u32 = 3;
const MAX_RENEWALS: u32 = 100;

/// An answer has been read: the rest of its stream may take so long.
const REST: Duration = Duration::from_millis(500);

/// Errors of the modern era that say: it is modern, and something else is wrong.
const MODERN_ERRORS: [&[u8]; 3] = [b"-32020", b"-32021", b"-32022"];

/// Carries a message, and hands over what comes back. `taken`: the server may have seen it.
pub(super) async fn carry(
    site: &Arc<Site>,
    frame: &Frame,
    taken: &Arc<AtomicBool>,
) -> Result<(), Trouble> {
    let is_request = frame.head.request.is_some();
    let body = without_end(&frame.bytes);
    let unseen = || taken.store(false, Ordering::Relaxed);
    let mut tries = 0;
    let mut limits = 0;
    let mut renewals = 0;
    loop {
        site.may_speak(is_request).await?;
        if !frame.head.modern && !is_greeting(frame) {
            site.in_session().await;
        }
        let place = site.place();
        let to = match &place {
            Place::Streamable => &site.spec.url,
            Place::Sse(to) => to,
        };
        let (headers, session) = site.headers_of(&frame.head);
        let sent = site
            .client
            .send(Method::POST, to, headers, body.clone(), taken);
        let response = match sent.await {
            Ok(response) => response,
            Err(error) if error.refused => {
                let failure = Failure::new(Reason::HttpError, error.message);
                return Err(Trouble::Refused(failure));
            }
            Err(error) if error.unsent => {
                unseen();
                Box::pin(site.missed(error)).await;
                continue;
            }
            Err(error) => return Err(Trouble::Dropped(error.message)),
        };
        site.hit();
        let status = response.status();
        let code = status.as_u16();
        if !status.is_server_error() {
            site.answered(true, code);
        }
        if let Some(session) = &session
            && status.is_success()
            && !is_greeting(frame)
        {
            site.used(session.number);
        }
        match code {
            200..=299 => return read(site, frame, &place, response).await,
            401 => {
                unseen();
                Box::pin(site.denied(code, response.headers())).await;
            }
            403 if !site.is_introduced() && is_greeting(frame) => {
                unseen();
                Box::pin(site.denied(code, response.headers())).await;
            }
            429 => {
                unseen();
                limits += 1;
                let wait = headers::retry_after(response.headers());
                let wait = wait.unwrap_or_else(|| site.pause(limits));
                site.quiet(wait);
                if limits >= MAX_LIMITED {
                    return Err(Trouble::Refused(limited(wait)));
                }
                continue;
            }
            _ => {}
        }
        if status.is_server_error() {
            if let Some(wait) = headers::retry_after(response.headers()) {
                site.quiet(wait);
            }
            site.answered(false, code);
            if frame.head.repeatable && tries < MAX_RETRIES && site.may_retry() {
                sleep(site.pause(tries)).await;
                tries += 1;
                continue;
            }
            return Err(Box::pin(refused(response)).await);
        }
        let trouble = Box::pin(refused(response)).await;
        if let Some(session) = session
            && !is_greeting(frame)
            && (renewals < FEW_RENEWALS || renewals < MAX_RENEWALS && site.was_used(session.number))
            && has_ended(&session, code, &trouble)
        {
            // Whoever does not know the session has not done anything in it.
            unseen();
            renewals += 1;
            Box::pin(site.renew(session.number)).await;
            if is_request {
                continue;
            }
            return Ok(());
        }
        let is_old = matches!(code, 400 | 404 | 405)
            && frame.head.method == "initialize"
            && site.may_be_old()
            && !is_modern_error(&trouble);
        if is_old && matches!(place, Place::Streamable) {
            let opened = Box::pin(streams::open_old(site)).await;
            if opened.is_ok() {
                continue;
            }
        }
        return Err(trouble);
    }
}

/// Whether the server has ended the session. Some say so with 400.
fn has_ended(session: &Session, code: u16, trouble: &Trouble) -> bool {
    session.id.is_some()
        && match (code, trouble) {
            (404, _) => true,
            (400, Trouble::Status(body, _)) => {
                let text = String::from_utf8_lossy(body).to_ascii_lowercase();
                text.contains("session") && !is_modern_error(trouble)
            }
            _ => false,
        }
}

fn is_modern_error(trouble: &Trouble) -> bool {
    let Trouble::Status(body, _) = trouble else {
        return false;
    };
    let found = |code: &[u8]| memmem::find(body, code).is_some();
    MODERN_ERRORS.into_iter().any(found)
}

/// The message without its end of line.
fn without_end(bytes: &Bytes) -> Bytes {
    match bytes.last() {
        Some(b'\n') => bytes.slice(..bytes.len() - 1),
        _ => bytes.clone(),
    }
}

/// Hands over what the server has answered.
async fn read(
    site: &Arc<Site>,
    frame: &Frame,
    place: &Place,
    response: Response<Incoming>,
) -> Result<(), Trouble> {
    let (Some(id), Place::Streamable) = (frame.head.request, place) else {
        // There is nothing to be read, and what there is would only keep the connection.
        let _ = timeout(REST, client::whole(response.into_body(), MAX_ERROR)).await;
        return Ok(());
    };
    let (parts, body) = response.into_parts();
    if let Some(coding) = headers::coding(&parts.headers) {
        return Err(Trouble::NotMcp(format!(
            "packed ({coding}), which was not asked for"
        )));
    }
    if frame.head.method == "initialize" {
        let begun = headers::session(&parts.headers).map_err(Trouble::NotMcp)?;
        site.session.lock().id = begun;
    }
    match headers::media(&parts.headers) {
        Media::Json => {
            let body = client::whole(body, site.max).await.map_err(broken)?;
            site.peer.receive(Line::Whole(body));
            let other = Trouble::NotMcp("not an answer to it".to_owned());
            site.peer.settle(id, other);
            Ok(())
        }
        // Kept apart, as all that is rare: the way of most calls is to be short.
        Media::Events => Box::pin(events(site, &frame.head, id, body)).await,
        Media::Other => Err(Trouble::NotMcp(strange(parts.status, &parts.headers))),
    }
}

fn strange(status: StatusCode, headers: &HeaderMap) -> String {
    let kind = headers.get(http::header::CONTENT_TYPE);
    let kind = kind.map(|kind| String::from_utf8_lossy(kind.as_bytes()).into_owned());
    match kind {
        Some(kind) => {
            format!("of the type {kind:?}, not JSON or a stream of events (HTTP {status})")
        }
        None => format!("empty (HTTP {status})"),
    }
}

fn broken(error: BodyError) -> Trouble {
    match error {
        BodyError::TooLarge(size) => Trouble::TooLarge(size),
        BodyError::Broken(why) => Trouble::Dropped(why),
    }
}

/// Reads a stream until it has brought the answer. One that breaks is taken up again where a server has
/// numbered its events.
async fn events(site: &Arc<Site>, head: &Head, id: u64, mut body: Incoming) -> Result<(), Trouble> {
    let mut stream = Stream::new(site.max);
    let why = match stream.pump(site, &mut body, Some(id)).await {
        Pumped::Answered => {
            // A connection whose stream is read to its end can be used again.
            let rest = async { while let Ok(Some(_)) = client::more(&mut body).await {} };
            let _ = timeout(REST, rest).await;
            return Ok(());
        }
        Pumped::TooLarge(size) => return Err(Trouble::TooLarge(size)),
        Pumped::Broke(why) => why,
    };
    drop(body);
    if head.modern || stream.last.is_none() {
        return Err(Trouble::Dropped(why));
    }
    streams::resume(site, &mut stream, id, why).await
}

/// What a response comes to that is an error.
async fn refused(response: Response<Incoming>) -> Trouble {
    let status = response.status();
    let media = headers::media(response.headers());
    let challenge = headers::challenge(response.headers());
    let body = client::whole(response.into_body(), MAX_ERROR).await;
    let body = body.unwrap_or_default();
    let is_protocol = media == Media::Json && !status.is_server_error();
    let said = if is_protocol {
        String::new()
    } else {
        told(&body)
    };
    let said = challenge.unwrap_or(said);
    let said = if said.is_empty() {
        said
    } else {
        format!(": {said}")
    };
    let message = format!("the server answered HTTP {status}{said}");
    let reason = match status {
        StatusCode::FORBIDDEN => Reason::Forbidden,
        // There is nothing of that kind here, whoever asks.
        StatusCode::BAD_REQUEST
        | StatusCode::NOT_FOUND
        | StatusCode::METHOD_NOT_ALLOWED
        | StatusCode::NOT_ACCEPTABLE
        | StatusCode::GONE
        | StatusCode::UNSUPPORTED_MEDIA_TYPE
        | StatusCode::UNPROCESSABLE_ENTITY
        | StatusCode::NOT_IMPLEMENTED => Reason::NotSupported,
        _ => Reason::HttpError,
    };
    let executed = status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED;
    let failure = Failure::new(reason, message).with(|details| details.maybe_executed = executed);
    match is_protocol {
        true => Trouble::Status(body, failure),
        false => Trouble::Refused(failure),
    }
}

/// The first line of a text, if it is one for people.
fn told(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let line = text.trim().lines().next().unwrap_or_default();
    if line.starts_with('<') {
        return String::new();
    }
    let plain = line.chars().filter(|c| !c.is_control());
    plain.take(MAX_TOLD).collect()
}
