//! Streams of events: answers that come in parts, what a server says unasked, and the old way of speaking.

use super::{
    Trouble, client,
    events::{Event, EventSplitter},
    exchange::carry,
    headers::{self, LAST_EVENT, Media},
    site::{Place, Site, Task},
};
use crate::transport::{lines::Line, outbox::Frame};
use bytes::Bytes;
use http::{HeaderValue, Method, Response};
use hyper::body::Incoming;
use nexus_proto::reason::{Failure, Reason};
use std::{
    collections::HashSet,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};
use tokio::time::{Instant, sleep, timeout};
use tracing::debug;

/// How often in a row a stream that broke is taken up again in vain.
const MAX_RESUMES: u32 = 6;

/// How many events are remembered, so that none is taken twice.
const MAX_SEEN: usize = 4096;

/// How long an old server may take to say where messages go.
const ENDPOINT: Duration = Duration::from_secs(10);

/// A stream that broke is opened again after this long where the server says nothing else, or later.
const REOPEN: Duration = Duration::from_secs(1);
const LONGEST_REOPEN: Duration = Duration::from_secs(30);

/// A stream that lasted longer was a good one.
const GOOD_STREAM: Duration = Duration::from_secs(5);

/// What is known of a stream, also while it is broken.
pub(super) struct Stream {
    max: usize,
    /// The last event that had an id.
    pub(super) last: Option<String>,
    retry: Option<Duration>,
    seen: HashSet<String>,
    /// Something has come since it was last taken up.
    moved: bool,
}

/// What became of a stream.
pub(super) enum Pumped {
    /// It has brought what was waited for.
    Answered,
    Broke(String),
    TooLarge(u64),
}

impl Stream {
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            last: None,
            retry: None,
            seen: HashSet::new(),
            moved: false,
        }
    }

    /// Hands over what a stream brings, until it ends or has brought an answer to `id`.
    pub(super) async fn pump(
        &mut self,
        site: &Arc<Site>,
        body: &mut Incoming,
        id: Option<u64>,
    ) -> Pumped {
        // A message, and what an event has around it.
        let mut splitter = EventSplitter::new(self.max + 1024);
        loop {
            let part = if splitter.is_partial() {
                let late = "the server began an event and never ended it";
                timeout(client::UNFINISHED, client::more(body))
                    .await
                    .unwrap_or_else(|_| Err(late.to_owned()))
            } else {
                client::more(body).await
            };
            match part {
                Ok(Some(bytes)) => splitter.push(&bytes),
                Ok(None) => {
                    return Pumped::Broke("the server ended the stream before it answered".into());
                }
                Err(why) => return Pumped::Broke(format!("the stream broke: {why}")),
            }
            loop {
                match splitter.next_event() {
                    Ok(Some(event)) => self.take(site, event),
                    Ok(None) => break,
                    Err(too_large) => return Pumped::TooLarge(too_large.0),
                }
            }
            self.retry = splitter.retry().or(self.retry);
            if id.is_some_and(|id| !site.peer.waits_for(id)) {
                return Pumped::Answered;
            }
        }
    }

    fn take(&mut self, site: &Arc<Site>, event: Event) {
        self.moved = true;
        if let Some(id) = event.id {
            if self.seen.len() >= MAX_SEEN {
                self.seen.clear();
            }
            // A server that takes up its stream may begin with what has arrived already.
            if !self.seen.insert(id.clone()) {
                return;
            }
            self.last = Some(id);
        }
        let is_message = matches!(event.kind.as_str(), "" | "message");
        if is_message && !event.data.is_empty() {
            site.peer.receive(Line::Whole(event.data));
        }
    }
}

/// Asks for a stream; where `after` is an event, for what came after it.
async fn get(
    site: &Arc<Site>,
    after: Option<&str>,
) -> Result<(Response<Incoming>, u64), client::SendError> {
    let (mut headers, session) = site.headers_of_stream();
    if let Some(after) = after.and_then(|after| HeaderValue::from_str(after).ok()) {
        headers.insert(&LAST_EVENT, after);
    }
    let taken = Arc::new(AtomicBool::new(false));
    let sent = site
        .client
        .send(Method::GET, &site.spec.url, headers, Bytes::new(), &taken);
    let response = sent.await?;
    site.hit();
    Ok((response, session.number))
}

fn is_stream(response: &Response<Incoming>) -> bool {
    response.status().is_success()
        && headers::media(response.headers()) == Media::Events
        && headers::coding(response.headers()).is_none()
}

/// Takes up a stream that broke before it had brought the answer to `id`.
pub(super) async fn resume(
    site: &Arc<Site>,
    stream: &mut Stream,
    id: u64,
    mut why: String,
) -> Result<(), Trouble> {
    let mut vain = 0;
    while vain < MAX_RESUMES {
        vain += 1;
        sleep(stream.retry.unwrap_or_else(|| site.pause(vain - 1))).await;
        site.may_speak(true).await?;
        let last = stream.last.clone();
        let (response, _) = match get(site, last.as_deref()).await {
            Ok(got) => got,
            Err(error) if error.unsent => {
                site.missed(error).await;
                continue;
            }
            Err(error) => {
                why = error.message;
                continue;
            }
        };
        let status = response.status().as_u16();
        match status {
            _ if is_stream(&response) => {}
            401 => site.denied(status, response.headers()).await,
            429 | 500..=599 => {
                let wait = headers::retry_after(response.headers());
                site.quiet(wait.unwrap_or_else(|| site.pause(vain)));
                why = format!("the server answered HTTP {status}");
                continue;
            }
            _ => {
                let why = format!("{why}; the rest of it cannot be had (HTTP {status})");
                return Err(Trouble::Dropped(why));
            }
        }
        stream.moved = false;
        let mut body = response.into_body();
        match stream.pump(site, &mut body, Some(id)).await {
            Pumped::Answered => return Ok(()),
            Pumped::TooLarge(size) => return Err(Trouble::TooLarge(size)),
            Pumped::Broke(again) => why = again,
        }
        if stream.moved {
            vain = 0;
        }
    }
    Err(Trouble::Dropped(why))
}

/// Says that we have introduced ourselves, and listens from then on to what the server says unasked.
pub(super) async fn introduce(site: &Arc<Site>, frame: Frame) {
    let taken = Arc::new(AtomicBool::new(false));
    // Whatever it says to that, it has been told.
    let _ = carry(site, &frame, &taken).await;
    if matches!(site.place(), Place::Streamable) {
        let task = tokio::spawn(listen(Arc::clone(site)));
        *site.listening.lock() = Some(Task(task));
    }
    site.introduced.send_modify(|times| *times += 1);
}

/// Listens to what a server says unasked, for as long as it lets us.
async fn listen(site: Arc<Site>) {
    let mut stream = Stream::new(site.max);
    let mut pause = REOPEN;
    let mut opened = false;
    loop {
        let began = Instant::now();
        let (response, session) = match get(&site, stream.last.as_deref()).await {
            Ok(got) => got,
            Err(error) if error.unsent => {
                site.missed(error).await;
                continue;
            }
            Err(error) => {
                debug!(reason = error.message, "no stream");
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST_REOPEN);
                continue;
            }
        };
        let status = response.status().as_u16();
        match status {
            _ if is_stream(&response) => {
                opened = true;
                let mut body = response.into_body();
                stream.pump(&site, &mut body, None).await;
            }
            401 => site.denied(status, response.headers()).await,
            // Where there has never been a stream, this only says that there is none.
            404 if opened && site.session().id.is_some() => {
                // A task of its own: this one ends with the session.
                tokio::spawn(async move { site.renew(session).await });
                return;
            }
            429 | 500..=599 => {
                if let Some(wait) = headers::retry_after(response.headers()) {
                    site.quiet(wait);
                }
            }
            // It has nothing to say unasked, or only to those who asked.
            _ => return,
        }
        if began.elapsed() > GOOD_STREAM {
            pause = REOPEN;
        }
        sleep(stream.retry.unwrap_or(pause)).await;
        if stream.retry.is_none() {
            pause = (pause * 2).min(LONGEST_REOPEN);
        }
        let _ = site.may_speak(false).await;
    }
}

/// Opens the one stream of a server that speaks in the old way, and learns where messages go.
pub(super) async fn open_old(site: &Arc<Site>) -> Result<(), Failure> {
    let not_old = |why: String| Failure::new(Reason::HandshakeFailed, why);
    let (response, _) = match get(site, None).await {
        Ok(got) => got,
        Err(error) => return Err(Failure::new(Reason::Unreachable, error.message)),
    };
    let status = response.status();
    if !is_stream(&response) {
        if status == 401 || status == 403 {
            site.denied(status.as_u16(), response.headers()).await;
        }
        let message = format!("the server has no stream of events (HTTP {status})");
        return Err(not_old(message));
    }
    let mut body = response.into_body();
    let mut splitter = EventSplitter::new(site.max + 1024);
    let first = timeout(ENDPOINT, async {
        loop {
            match splitter.next_event() {
                Ok(Some(event)) if event.kind == "endpoint" => return Ok(event.data),
                Ok(Some(_)) => {}
                Err(_) => return Err("its first event has no end".to_owned()),
                Ok(None) => match client::more(&mut body).await? {
                    Some(bytes) => splitter.push(&bytes),
                    None => return Err("its stream ended".to_owned()),
                },
            }
        }
    })
    .await;
    let first = first.unwrap_or_else(|_| Err("it does not say so".to_owned()));
    let first = first
        .map_err(|why| not_old(format!("the server does not tell where messages go: {why}")))?;
    let text = String::from_utf8_lossy(&first).into_owned();
    let to = site.spec.url.join(&text);
    let to = to.map_err(|error| not_old(format!("the server tells us a bad place: {error}")))?;
    if !to.is_same_origin(&site.spec.url) {
        let other = to.origin();
        let message = format!("the server sends our messages to {other}, which is not followed");
        return Err(not_old(message));
    }
    *site.place.lock() = Place::Sse(to);
    let task = tokio::spawn({
        let site = Arc::clone(site);
        async move {
            let mut stream = Stream::new(site.max);
            let why = loop {
                match splitter.next_event() {
                    Ok(Some(event)) => stream.take(&site, event),
                    Err(too_large) => break format!("an event of {} bytes", too_large.0),
                    Ok(None) => match client::more(&mut body).await {
                        Ok(Some(bytes)) => splitter.push(&bytes),
                        Ok(None) => break "it has an end".to_owned(),
                        Err(why) => break why,
                    },
                }
            };
            let message = format!("the server's stream of events is over: {why}");
            site.end(Failure::new(Reason::ServerExited, message));
        }
    });
    *site.listening.lock() = Some(Task(task));
    Ok(())
}

/// Tells a server that its session is no longer needed.
pub(super) async fn end_session(site: &Arc<Site>) {
    let (headers, session) = site.headers_of_stream();
    if session.id.is_none() || !matches!(site.place(), Place::Streamable) {
        return;
    }
    let taken = Arc::new(AtomicBool::new(false));
    let sent = site.client.send(
        Method::DELETE,
        &site.spec.url,
        headers,
        Bytes::new(),
        &taken,
    );
    // Whether it minds is its business.
    let _ = sent.await;
}
