//! Who is told when the list of tools changes.

use std::sync::Mutex;

use super::session::{Session, locked};
use crate::out::Out;
use crate::reply;

const TOOLS_CHANGED: &str = "notifications/tools/list_changed";

/// The open streams of all sessions.
#[derive(Default)]
pub(crate) struct Listeners(Mutex<Vec<Listener>>);

struct Listener {
    session: u64,
    out: Out,
    /// The id of the `subscriptions/listen` request; legacy streams have none.
    subscription: Option<String>,
    tools: bool,
}

impl Listeners {
    /// A legacy stream hears of everything; there is one for a session.
    pub(crate) fn add_legacy(&self, session: &Session, out: &Out) {
        let mut all = locked(&self.0);
        all.retain(|listener| {
            listener.session != session.number() || listener.subscription.is_some()
        });
        all.push(Listener {
            session: session.number(),
            out: out.clone(),
            subscription: None,
            tools: true,
        });
    }

    /// A modern subscription hears of what it asked for. It is welcomed while nobody else can write to
    /// it: nothing may come before that, and nothing may be missed after it.
    pub(crate) fn add_modern(
        &self,
        session: &Session,
        out: &Out,
        id: &str,
        tools: bool,
        welcome: Vec<u8>,
    ) {
        let subscription = Some(id.to_owned());
        let mut all = locked(&self.0);
        out.aside(welcome);
        all.push(Listener {
            session: session.number(),
            out: out.clone(),
            subscription,
            tools,
        });
    }

    /// Ends one subscription.
    pub(crate) fn remove(&self, session: &Session, id: &str) {
        locked(&self.0).retain(|listener| {
            listener.session != session.number() || listener.subscription.as_deref() != Some(id)
        });
    }

    /// Ends all of a session.
    #[cfg(feature = "http")]
    pub(crate) fn remove_session(&self, session: &Session) {
        locked(&self.0).retain(|listener| listener.session != session.number());
    }

    /// Tells everybody who wants to know, and forgets those who are gone.
    pub(crate) fn tools_changed(&self) {
        locked(&self.0).retain(|listener| {
            let params = match &listener.subscription {
                None => "{}".to_owned(),
                Some(id) => {
                    format!(r#"{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}"#)
                }
            };
            !listener.tools
                || listener
                    .out
                    .aside(reply::outgoing(None, TOOLS_CHANGED, &params))
        });
    }
}
