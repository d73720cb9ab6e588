//! Takes messages from an outbox and has each carried, until there is a reason to end.

use super::{
    Memory, Peer,
    client::Client,
    exchange::carry,
    site::{Site, is_greeting},
    spec::{HttpSpec, Kind},
    streams,
};
use crate::transport::outbox::Frame;
use nexus_proto::reason::{Failure, Reason};
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    task::{AbortHandle, JoinSet},
    time::timeout,
};
use tracing::warn;

/// How many requests may be under way at once: each may have a connection of its own.
const MAX_ACTIVE: usize = 256;

/// How long saying goodbye may take.
const FAREWELL: Duration = Duration::from_millis(1500);

/// What is under way when there is a reason to end has so long to come to an end of its own: what it comes to is worth
/// more than "it may have been carried out".
const GRACE: Duration = Duration::from_secs(2);

/// How often those are looked at meanwhile that have given up.
const LOOK: Duration = Duration::from_millis(15);

struct Active {
    task: AbortHandle,
    /// The server may have seen it.
    taken: Arc<AtomicBool>,
    /// Somebody waits for it.
    waited_for: bool,
}

/// Carries messages until there is a reason to end, which is returned; or until `close` is done.
pub async fn run(
    spec: HttpSpec,
    peer: Arc<dyn Peer>,
    memory: Arc<Memory>,
    max: usize,
    close: impl Future<Output = ()>,
) -> Failure {
    if spec.url.https && !spec.tls.verify {
        warn!(server = %spec.url, "anybody could answer in its place: \"verify\" is false");
    }
    let made = tokio::task::spawn_blocking({
        let (spec, memory) = (spec.clone(), Arc::clone(&memory));
        move || Client::new(&spec, &memory)
    });
    let client = match made.await {
        Ok(Ok(client)) => client,
        Ok(Err(error)) => return Failure::new(Reason::ConfigInvalid, error.to_string()),
        Err(error) => return Failure::new(Reason::Internal, error.to_string()),
    };
    let site = Site::new(spec, client, peer, memory, max);
    let _silence = Silence(Arc::clone(&site));
    let mut driver = Driver {
        site,
        active: HashMap::new(),
        tasks: JoinSet::new(),
    };
    driver.run(close).await
}

/// Nobody listens any more once the driver is gone, however it went.
struct Silence(Arc<Site>);

impl Drop for Silence {
    fn drop(&mut self) {
        *self.0.listening.lock() = None;
    }
}

struct Driver {
    site: Arc<Site>,
    /// Requests that are being carried, by their ids.
    active: HashMap<u64, Active>,
    tasks: JoinSet<Option<u64>>,
}

impl Driver {
    async fn run(&mut self, close: impl Future<Output = ()>) -> Failure {
        let mut close = std::pin::pin!(close);
        let site = Arc::clone(&self.site);
        let mut ended = std::pin::pin!(site.ended());
        if site.spec.kind == Kind::Sse {
            tokio::select! {
                biased;
                opened = streams::open_old(&site) => if let Err(failure) = opened {
                    return failure;
                },
                failure = &mut ended => return failure,
                () = &mut close => return stopped(),
            }
        }
        loop {
            let room = self.active.len() < MAX_ACTIVE;
            let wanted = |frame: &Frame| room || frame.id.is_none() || is_greeting(frame);
            tokio::select! {
                biased;
                failure = &mut ended => {
                    let _ = timeout(GRACE, self.outcomes()).await;
                    self.tasks.shutdown().await;
                    let unseen = self.active.iter().filter(|(_, active)| {
                        active.waited_for && !active.taken.load(Ordering::Relaxed)
                    });
                    site.peer.outbox().never_seen(unseen.map(|(id, _)| *id));
                    return failure;
                }
                () = &mut close => {
                    self.tasks.shutdown().await;
                    *site.listening.lock() = None;
                    let _ = timeout(FAREWELL, streams::end_session(&site)).await;
                    return stopped();
                }
                Some(done) = self.tasks.join_next() => {
                    if let Ok(Some(id)) = done {
                        self.active.remove(&id);
                    }
                }
                frame = site.peer.outbox().next(wanted) => match frame {
                    None => return stopped(),
                    Some(frame) if frame.head.method == "notifications/initialized" => {
                        // What follows is not to overtake it.
                        tokio::select! {
                            biased;
                            () = &mut close => return stopped(),
                            _ = site.ended() => {}
                            () = streams::introduce(&site, frame) => {}
                        }
                    }
                    Some(frame) => self.carry(frame),
                },
            }
        }
    }

    /// Waits until each request that the server may have seen has its outcome.
    async fn outcomes(&mut self) {
        loop {
            let is_seen = |active: &Active| active.taken.load(Ordering::Relaxed);
            if !self.active.values().any(is_seen) {
                return;
            }
            // Those that give up do not end, and say so in no other way.
            match timeout(LOOK, self.tasks.join_next()).await {
                Ok(Some(Ok(Some(id)))) => drop(self.active.remove(&id)),
                Ok(None) => return,
                Ok(Some(_)) | Err(_) => {}
            }
        }
    }

    fn carry(&mut self, frame: Frame) {
        if let Some(id) = frame.head.cancels {
            let cancelled = self.active.remove(&id);
            if let Some(active) = &cancelled {
                active.task.abort();
            }
            let unseen = cancelled.is_some_and(|it| !it.taken.load(Ordering::Relaxed));
            // Closing the stream is how a modern server is told.
            if frame.head.modern || unseen {
                return;
            }
        }
        let id = frame.head.request;
        let waited_for = frame.id.is_some();
        let taken = Arc::new(AtomicBool::new(false));
        let site = Arc::clone(&self.site);
        let task = self.tasks.spawn({
            let taken = Arc::clone(&taken);
            async move {
                // Boxed: a task is moved several times before it runs.
                let trouble = Box::pin(carry(&site, &frame, &taken)).await.err();
                if let (Some(id), Some(trouble)) = (id, trouble) {
                    site.peer.settle(id, trouble);
                }
                id
            }
        });
        if let Some(id) = id {
            let active = Active {
                task,
                taken,
                waited_for,
            };
            self.active.insert(id, active);
        }
    }
}

fn stopped() -> Failure {
    Failure::new(Reason::ServerStopped, "the connection was closed")
}
