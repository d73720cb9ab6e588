//! Who is told when a list or a resource changes.

use std::collections::HashSet;
use std::sync::Mutex;

use super::session::{Session, locked};
use crate::catalog::List;
use crate::message::Wanted;
use crate::out::Out;
use crate::reply::{self, quoted};

/// The open streams of all sessions, and what legacy sessions have subscribed to.
#[derive(Default)]
pub(crate) struct Listeners(Mutex<All>);

#[derive(Default)]
struct All {
    listeners: Vec<Listener>,
    /// Legacy: by session, whichever stream it has.
    subscribed: HashSet<(u64, String)>,
}

struct Listener {
    session: u64,
    out: Out,
    /// What a `subscriptions/listen` asked for, and its id; a legacy stream hears of every list.
    subscription: Option<(String, Wanted)>,
}

impl Listener {
    /// Sends a notification; `more` is what its params have beside the metadata. False if nobody reads.
    fn tell(&self, method: &str, more: &str) -> bool {
        let meta = self.subscription.as_ref().map_or(String::new(), |(id, _)| {
            let comma = if more.is_empty() { "" } else { "," };
            format!(r#""_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}{comma}"#)
        });
        let params = format!("{{{meta}{more}}}");
        self.out.urgent(reply::outgoing(None, method, &params))
    }

    fn hears_of(&self, list: List) -> bool {
        let Some((_, wanted)) = &self.subscription else {
            return true;
        };
        match list {
            List::Tools => wanted.tools_list_changed,
            List::Resources | List::Templates => wanted.resources_list_changed,
            List::Prompts => wanted.prompts_list_changed,
        }
    }
}

impl Listeners {
    /// A legacy stream hears of everything; there is one for a session.
    pub(crate) fn add_legacy(&self, session: &Session, out: &Out) {
        let listeners = &mut locked(&self.0).listeners;
        listeners.retain(|listener| {
            listener.session != session.number() || listener.subscription.is_some()
        });
        listeners.push(Listener {
            session: session.number(),
            out: out.clone(),
            subscription: None,
        });
    }

    /// A modern subscription hears of what it asked for. It is welcomed while nobody else can write to
    /// it: nothing may come before that, and nothing may be missed after it.
    pub(crate) fn add_modern(
        &self,
        session: &Session,
        out: &Out,
        id: &str,
        wanted: Wanted,
        welcome: Vec<u8>,
    ) {
        let mut all = locked(&self.0);
        out.urgent(welcome);
        all.listeners.push(Listener {
            session: session.number(),
            out: out.clone(),
            subscription: Some((id.to_owned(), wanted)),
        });
    }

    /// From now on a legacy session hears of a resource.
    pub(crate) fn subscribe(&self, session: &Session, uri: &str) {
        let subscribed = &mut locked(&self.0).subscribed;
        subscribed.insert((session.number(), uri.to_owned()));
    }

    /// From now on it does not.
    pub(crate) fn unsubscribe(&self, session: &Session, uri: &str) {
        let subscribed = &mut locked(&self.0).subscribed;
        subscribed.remove(&(session.number(), uri.to_owned()));
    }

    /// Ends one modern subscription.
    pub(crate) fn remove(&self, session: &Session, id: &str) {
        locked(&self.0).listeners.retain(|listener| {
            let subscription = listener.subscription.as_ref().map(|(id, _)| id.as_str());
            listener.session != session.number() || subscription != Some(id)
        });
    }

    /// Ends all of a session.
    #[cfg(feature = "http")]
    pub(crate) fn remove_session(&self, session: &Session) {
        let mut all = locked(&self.0);
        all.listeners
            .retain(|listener| listener.session != session.number());
        all.subscribed
            .retain(|(number, _)| *number != session.number());
    }

    /// Tells everybody who wants to know that a list has changed, and forgets those who are gone.
    pub(crate) fn list_changed(&self, list: List) {
        let method = match list {
            List::Tools => "notifications/tools/list_changed",
            List::Resources | List::Templates => "notifications/resources/list_changed",
            List::Prompts => "notifications/prompts/list_changed",
        };
        locked(&self.0)
            .listeners
            .retain(|listener| !listener.hears_of(list) || listener.tell(method, ""));
    }

    /// Tells those who have subscribed to a resource that it has changed; returns how many were told.
    pub(crate) fn resource_updated(&self, uri: &str) -> usize {
        let more = format!(r#""uri":{}"#, quoted(uri));
        let mut told = 0;
        let All {
            listeners,
            subscribed,
        } = &mut *locked(&self.0);
        listeners.retain(|listener| {
            let wants = match &listener.subscription {
                None => subscribed.contains(&(listener.session, uri.to_owned())),
                Some((_, wanted)) => wanted.resource_subscriptions.iter().any(|one| one == uri),
            };
            let reached = wants && listener.tell("notifications/resources/updated", &more);
            told += usize::from(reached);
            !wants || reached
        });
        told
    }
}
