//! What the requests to one server have in common: its session, where it is spoken to, how it fares.

use super::{
    Memory, Peer, Trouble,
    breaker::Breaker,
    client::{Client, SendError},
    headers::{self, METHOD, NAME, PARAM, SESSION, VERSION},
    spec::{Endpoint, HttpSpec, Kind},
};
use crate::transport::outbox::{Frame, Head};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use nexus_proto::reason::{Failure, Reason};
use parking_lot::Mutex;
use std::{
    hash::{BuildHasher as _, RandomState},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};
use tracing::{debug, info};

/// A caller waits so long for a server that wants to be left alone, and no longer.
const WORTH_WAITING: Duration = Duration::from_secs(5);

/// How often in a row a server that has been reached before may be missed.
const MAX_MISSES: u32 = 3;

/// How long a new session may take to begin.
const RENEWAL: Duration = Duration::from_secs(30);

/// What a modern request says of its revision.
const MODERN: &str = "2026-07-28";

/// A task that ends with whoever holds it.
pub(super) struct Task(pub(super) JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The session of a legacy server. Each has a number, which the requests made in it are known by.
#[derive(Debug, Clone, Default)]
pub(super) struct Session {
    pub(super) id: Option<HeaderValue>,
    pub(super) number: u64,
    /// Something has been done in it.
    pub(super) used: bool,
}

/// Where messages are posted.
#[derive(Debug, Clone)]
pub(super) enum Place {
    /// Where the server is: the answers are in the responses.
    Streamable,
    /// Where the server has said: the answers come over its one stream.
    Sse(Endpoint),
}

pub(super) struct Site {
    pub(super) spec: HttpSpec,
    pub(super) client: Client,
    pub(super) peer: Arc<dyn Peer>,
    pub(super) memory: Arc<Memory>,
    /// The largest message that is taken.
    pub(super) max: usize,
    pub(super) session: Mutex<Session>,
    pub(super) place: Mutex<Place>,
    /// Held while a new session is begun: requests wait for that.
    renewal: tokio::sync::Mutex<()>,
    /// Counts how often we have introduced ourselves.
    pub(super) introduced: watch::Sender<u64>,
    /// What listens to the server.
    pub(super) listening: Mutex<Option<Task>>,
    breaker: Mutex<Breaker>,
    born: Instant,
    reached: AtomicBool,
    misses: AtomicU32,
    end: watch::Sender<Option<Failure>>,
}

impl Site {
    pub(super) fn new(
        spec: HttpSpec,
        client: Client,
        peer: Arc<dyn Peer>,
        memory: Arc<Memory>,
        max: usize,
    ) -> Arc<Self> {
        Arc::new(Self {
            spec,
            client,
            peer,
            memory,
            max,
            session: Mutex::default(),
            place: Mutex::new(Place::Streamable),
            renewal: tokio::sync::Mutex::default(),
            introduced: watch::channel(0).0,
            listening: Mutex::default(),
            breaker: Mutex::new(Breaker::new(RandomState::new().hash_one(()))),
            born: Instant::now(),
            reached: AtomicBool::new(false),
            misses: AtomicU32::new(0),
            end: watch::channel(None).0,
        })
    }

    pub(super) fn session(&self) -> Session {
        self.session.lock().clone()
    }

    /// Something has been done in a session.
    pub(super) fn used(&self, number: u64) {
        let mut session = self.session.lock();
        session.used |= session.number == number;
    }

    /// Whether that was so: one that is over was.
    pub(super) fn was_used(&self, number: u64) -> bool {
        let session = self.session.lock();
        session.used || session.number != number
    }

    pub(super) fn place(&self) -> Place {
        self.place.lock().clone()
    }

    /// Whether the server may be one that speaks in the old way only.
    pub(super) fn may_be_old(&self) -> bool {
        self.spec.kind == Kind::Any && !self.is_introduced()
    }

    pub(super) fn is_introduced(&self) -> bool {
        *self.introduced.borrow() > 0
    }

    /// The first reason to end is the one that counts. Whoever says so waits to be ended.
    pub(super) async fn give_up(&self, failure: Failure) -> ! {
        self.end(failure);
        std::future::pending().await
    }

    pub(super) fn end(&self, failure: Failure) {
        self.client.stop();
        self.end.send_if_modified(|end| {
            let first = end.is_none();
            if first {
                debug!(reason = failure.message, "given up");
                *end = Some(failure);
            }
            first
        });
    }

    /// Done when there is a reason to end.
    pub(super) async fn ended(&self) -> Failure {
        let mut end = self.end.subscribe();
        let failure = end.wait_for(Option::is_some).await;
        let failure = failure.ok().and_then(|failure| failure.clone());
        failure.unwrap_or_else(|| Failure::new(Reason::Internal, "the connection went away"))
    }

    /// The server wants to be shown something, or something else.
    pub(super) async fn denied(&self, status: u16, headers: &HeaderMap) -> ! {
        let wants = headers::challenge(headers).map(|wants| format!(": {wants}"));
        let wants = wants.unwrap_or_default();
        let shows = self.client.headers().contains_key(header::AUTHORIZATION);
        let message = if shows {
            format!(
                "the server does not accept the credential that it is shown (HTTP {status}{wants})"
            )
        } else {
            format!("the server wants to be shown a credential (HTTP {status}{wants})")
        };
        let hint = if self.spec.forward_auth {
            "show a token that is good for it: `authorization` in the metadata of the call"
        } else {
            "give it a \"bearer_token\" in the config, or what it wants in \"headers\"; `nexusctl restart` tries \
             it again"
        };
        let failure = Failure::new(Reason::NeedsAuth, message);
        self.give_up(failure.with(|details| details.hint = Some(hint.to_owned())))
            .await
    }

    /// It was reached.
    pub(super) fn hit(&self) {
        self.reached.store(true, Ordering::Relaxed);
        self.misses.store(0, Ordering::Relaxed);
    }

    /// It was not reached. Returns when it may be tried again.
    pub(super) async fn missed(&self, error: SendError) {
        let misses = self.misses.fetch_add(1, Ordering::Relaxed) + 1;
        if error.late || !self.reached.load(Ordering::Relaxed) || misses >= MAX_MISSES {
            self.give_up(Failure::new(Reason::Unreachable, error.message))
                .await;
        }
        debug!(reason = error.message, misses, "missed");
        sleep(self.pause(misses)).await;
    }

    pub(super) fn pause(&self, tries: u32) -> Duration {
        self.breaker.lock().pause(tries)
    }

    /// It answered, well or with an error of its own. Too many of those are the end.
    pub(super) fn answered(&self, well: bool, status: u16) {
        if self.breaker.lock().answered(self.born.elapsed(), well) {
            let message = format!("the server answers with errors (HTTP {status})");
            self.end(Failure::new(Reason::HttpError, message));
        }
    }

    pub(super) fn may_retry(&self) -> bool {
        self.breaker.lock().may_retry(self.born.elapsed())
    }

    /// The server wants to be left alone.
    pub(super) fn quiet(&self, wait: Duration) {
        let until = Instant::now() + wait;
        let mut quiet_until = self.memory.quiet_until.lock();
        if quiet_until.is_none_or(|before| before < until) {
            info!(server = %self.spec.url, ?wait, "wants to be left alone");
            *quiet_until = Some(until);
        }
    }

    /// Waits until the server may be spoken to. Whoever would wait for long is told instead.
    pub(super) async fn may_speak(&self, is_request: bool) -> Result<(), Trouble> {
        loop {
            let until = *self.memory.quiet_until.lock();
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let Some(left) = left.filter(|left| !left.is_zero()) else {
                return Ok(());
            };
            if is_request && left > WORTH_WAITING {
                return Err(Trouble::Refused(limited(left)));
            }
            let jitter = self.breaker.lock().jitter(left / 10);
            sleep(left + jitter).await;
        }
    }

    /// Waits until there is a session to make requests in.
    pub(super) async fn in_session(&self) {
        drop(self.renewal.lock().await);
    }

    /// The server has ended a session: begins another, once.
    pub(super) async fn renew(self: &Arc<Self>, number: u64) {
        let site = Arc::clone(self);
        // Not by whoever noticed: it may go away meanwhile.
        let renewed = tokio::spawn(async move {
            let _turn = site.renewal.lock().await;
            {
                let mut session = site.session.lock();
                if session.number != number {
                    return;
                }
                *session = Session {
                    number: number + 1,
                    ..Session::default()
                };
            }
            info!(server = %site.spec.url, "has ended the session: begun anew");
            *site.listening.lock() = None;
            let mut introduced = site.introduced.subscribe();
            introduced.mark_unchanged();
            let renewal = async {
                site.peer.renew().await?;
                introduced
                    .changed()
                    .await
                    .map_err(|error| error.to_string())
            };
            let renewed = timeout(RENEWAL, renewal).await;
            let renewed = renewed.unwrap_or_else(|_| Err("it takes too long".to_owned()));
            if let Err(why) = renewed {
                let message = format!("the server ended the session, and a new one failed: {why}");
                site.end(Failure::new(Reason::HandshakeFailed, message));
            }
        });
        let _ = renewed.await;
    }

    /// The headers of a message, and the session that it belongs to.
    pub(super) fn headers_of(&self, head: &Head) -> (HeaderMap, Option<Session>) {
        let mut map = self.client.headers();
        let both = HeaderValue::from_static("application/json, text/event-stream");
        let json = HeaderValue::from_static("application/json");
        map.insert(header::ACCEPT, both);
        map.insert(header::CONTENT_TYPE, json);
        if head.modern {
            map.insert(&VERSION, HeaderValue::from_static(MODERN));
            map.insert(&METHOD, HeaderValue::from_static(head.method));
            if let Some(name) = &head.name {
                map.insert(&NAME, headers::encode(name));
            }
            for (name, value) in &head.params {
                if let Ok(name) = HeaderName::try_from(format!("{PARAM}{name}")) {
                    map.insert(name, headers::encode(value));
                }
            }
            return (map, None);
        }
        if head.method == "initialize" {
            return (map, None);
        }
        let session = self.put_session(&mut map);
        (map, Some(session))
    }

    /// The headers of a request for a stream.
    pub(super) fn headers_of_stream(&self) -> (HeaderMap, Session) {
        let mut map = self.client.headers();
        let events = HeaderValue::from_static("text/event-stream");
        map.insert(header::ACCEPT, events);
        let session = self.put_session(&mut map);
        (map, session)
    }

    fn put_session(&self, map: &mut HeaderMap) -> Session {
        if let Some(revision) = self.peer.revision() {
            map.insert(&VERSION, HeaderValue::from_static(revision));
        }
        let session = self.session();
        if let Some(id) = &session.id {
            map.insert(&SESSION, id.clone());
        }
        session
    }
}

/// Whether a message belongs to the beginning of a session, and so cannot wait for it.
pub(super) fn is_greeting(frame: &Frame) -> bool {
    matches!(
        frame.head.method,
        "initialize" | "notifications/initialized" | "server/discover"
    )
}

/// What whoever would have to wait for too long is told.
pub(super) fn limited(left: Duration) -> Failure {
    let message = format!("the server wants to be left alone for {left:.0?}");
    Failure::new(Reason::Overloaded, message).with(|details| details.retry_after = Some(left))
}
