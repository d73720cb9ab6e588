//! Who wants to know when a resource changes, whichever process tells it.
//!
//! A resource is subscribed to once, however many want to know, and for as long as one does. What is
//! wanted outlives the process that was told: the next one is told again.

mod upkeep;

pub use upkeep::keep_subscribed;

use nexus_proto::reason::{Failure, Reason};
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::sync::{mpsc, watch};

/// How many resources of one server may be subscribed to.
const MAX_RESOURCES: usize = 1000;

/// How many events may wait for a slow reader. Of more it need not know: it will read anew anyway.
const EVENTS: usize = 16;

/// What a subscriber is told.
#[derive(Debug, Clone)]
pub enum Event {
    /// The server has accepted the subscription.
    Subscribed,
    /// The resource of that URI, or one below it, has changed.
    Updated(String),
    /// It may have: the subscription had been lost for a while.
    MayHaveChanged,
    /// The server does not accept it.
    Refused(Failure),
}

#[derive(Debug, Default)]
struct Topic {
    subscribers: BTreeMap<u64, mpsc::Sender<Event>>,
    /// It has been in force before.
    known: bool,
}

/// All subscriptions to one server.
#[derive(Debug)]
pub struct Subscriptions {
    topics: Mutex<BTreeMap<String, Topic>>,
    wanted: watch::Sender<u64>,
    /// Held by whichever process is kept told: of several, one is enough.
    upkeep: tokio::sync::Mutex<()>,
}

impl Default for Subscriptions {
    fn default() -> Self {
        Self {
            topics: Mutex::default(),
            wanted: watch::channel(0).0,
            upkeep: tokio::sync::Mutex::default(),
        }
    }
}

/// The wish to know when a resource changes, until it is dropped.
#[derive(Debug)]
pub struct Subscription {
    all: Arc<Subscriptions>,
    uri: String,
    number: u64,
    events: mpsc::Receiver<Event>,
}

impl Subscription {
    /// What it is about.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// What happens next.
    pub async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut topics = self.all.topics.lock();
        let Some(topic) = topics.get_mut(&self.uri) else {
            return;
        };
        let was_there = topic.subscribers.remove(&self.number).is_some();
        if was_there && topic.subscribers.is_empty() {
            topics.remove(&self.uri);
            drop(topics);
            self.all.wanted.send_modify(|n| *n += 1);
        }
    }
}

impl Subscriptions {
    /// Somebody wants to know.
    pub fn subscribe(self: &Arc<Self>, uri: &str) -> Result<Subscription, Failure> {
        let mut topics = self.topics.lock();
        if !topics.contains_key(uri) && topics.len() >= MAX_RESOURCES {
            let message =
                format!("{MAX_RESOURCES} resources of this server are subscribed to already");
            return Err(Failure::new(Reason::Overloaded, message));
        }
        let is_first = !topics.contains_key(uri);
        let topic = topics.entry(uri.to_owned()).or_default();
        // Not counted for each topic: one that has ended leaves subscribers that are still to be dropped.
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let (to, events) = mpsc::channel(EVENTS);
        if topic.known {
            let _ = to.try_send(Event::Subscribed);
        }
        topic.subscribers.insert(number, to);
        drop(topics);
        if is_first {
            self.wanted.send_modify(|n| *n += 1);
        }
        Ok(Subscription {
            all: Arc::clone(self),
            uri: uri.to_owned(),
            number,
            events,
        })
    }

    /// Whether anybody wants to know anything.
    pub fn is_empty(&self) -> bool {
        self.topics.lock().is_empty()
    }

    /// The resources that somebody wants to know about.
    pub fn wanted(&self) -> BTreeSet<String> {
        self.topics.lock().keys().cloned().collect()
    }

    /// A way to wait for a change of that.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.wanted.subscribe()
    }

    /// A resource has changed. False if nobody wanted to know.
    pub fn updated(&self, uri: &str) -> bool {
        let topics = self.topics.lock();
        let mut anybody = false;
        for (wanted, topic) in &*topics {
            if is_below(uri, wanted) {
                anybody = true;
                topic.tell(&Event::Updated(uri.to_owned()));
            }
        }
        anybody
    }

    /// Those of them that have not been told so yet are in force.
    fn known(&self, uris: &BTreeSet<String>) {
        for (uri, topic) in &mut *self.topics.lock() {
            if !topic.known && uris.contains(uri) {
                topic.known = true;
                topic.tell(&Event::Subscribed);
            }
        }
    }

    /// A process has accepted it.
    fn established(&self, uri: &str) {
        if let Some(topic) = self.topics.lock().get_mut(uri) {
            topic.tell(&Event::Subscribed);
            if std::mem::replace(&mut topic.known, true) {
                topic.tell(&Event::MayHaveChanged);
            }
        }
    }

    /// A process does not accept it. Whoever wants it later asks anew.
    fn refused(&self, uri: &str, failure: &Failure) {
        if let Some(topic) = self.topics.lock().remove(uri) {
            topic.tell(&Event::Refused(failure.clone()));
        }
    }
}

impl Topic {
    fn tell(&self, event: &Event) {
        for to in self.subscribers.values() {
            let _ = to.try_send(event.clone());
        }
    }
}

/// Whether a resource is the one that was subscribed to, or a part of it.
fn is_below(uri: &str, wanted: &str) -> bool {
    let Some(rest) = uri.strip_prefix(wanted) else {
        return false;
    };
    rest.is_empty() || wanted.ends_with('/') || rest.starts_with(['/', '#', '?'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_those_who_asked_are_told() {
        let all = Arc::new(Subscriptions::default());
        let mut one = all.subscribe("file:///a").unwrap();
        let mut two = all.subscribe("file:///b").unwrap();
        assert!(all.updated("file:///a"));
        assert!(!all.updated("file:///c"));
        assert!(matches!(one.events.try_recv(), Ok(Event::Updated(uri)) if uri == "file:///a"));
        assert!(two.events.try_recv().is_err());
    }

    #[test]
    fn a_resource_is_wanted_as_long_as_one_wants_it() {
        let all = Arc::new(Subscriptions::default());
        let mut changes = all.watch();
        let one = all.subscribe("u").unwrap();
        assert!(changes.has_changed().unwrap());
        changes.mark_unchanged();
        let two = all.subscribe("u").unwrap();
        drop(one);
        assert!(!changes.has_changed().unwrap());
        assert_eq!(all.wanted().len(), 1);
        drop(two);
        assert!(changes.has_changed().unwrap());
        assert!(all.is_empty());
    }

    #[test]
    fn what_was_lost_for_a_while_may_have_changed() {
        let all = Arc::new(Subscriptions::default());
        let mut one = all.subscribe("u").unwrap();
        all.established("u");
        assert!(matches!(one.events.try_recv(), Ok(Event::Subscribed)));
        assert!(one.events.try_recv().is_err());
        all.established("u");
        assert!(matches!(one.events.try_recv(), Ok(Event::Subscribed)));
        assert!(matches!(one.events.try_recv(), Ok(Event::MayHaveChanged)));
        let mut late = all.subscribe("u").unwrap();
        assert!(matches!(late.events.try_recv(), Ok(Event::Subscribed)));
    }

    #[test]
    fn whoever_comes_while_the_server_still_knows_is_told_so() {
        let all = Arc::new(Subscriptions::default());
        drop(all.subscribe("u").unwrap());
        let mut again = all.subscribe("u").unwrap();
        let told = BTreeSet::from(["u".to_owned()]);
        all.known(&told);
        all.known(&told);
        assert!(matches!(again.events.try_recv(), Ok(Event::Subscribed)));
        assert!(again.events.try_recv().is_err());
    }

    #[test]
    fn what_is_refused_is_over_and_may_be_asked_for_again() {
        let all = Arc::new(Subscriptions::default());
        let mut one = all.subscribe("u").unwrap();
        all.refused("u", &Failure::new(Reason::NotSupported, "no"));
        assert!(matches!(one.events.try_recv(), Ok(Event::Refused(_))));
        let mut changes = all.watch();
        changes.mark_unchanged();
        let _two = all.subscribe("u").unwrap();
        assert!(changes.has_changed().unwrap());
        drop(one);
        assert_eq!(all.wanted().len(), 1);
    }

    #[test]
    fn a_part_of_a_resource_belongs_to_it() {
        assert!(is_below("file:///a/b", "file:///a"));
        assert!(is_below("file:///a/b", "file:///a/"));
        assert!(is_below("file:///a#x", "file:///a"));
        assert!(!is_below("file:///ab", "file:///a"));
        assert!(!is_below("file:///a", "file:///a/b"));
    }
}
