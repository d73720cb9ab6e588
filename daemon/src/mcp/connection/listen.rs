//! `subscriptions/listen`: a request of the modern era that lasts, and what is heard through it.

use super::{CallError, Connection, PushError};
use crate::{
    mcp::outgoing::{self, Ask, Meta, Modern, Param},
    transport::outbox::{Frame, Head},
};
use serde::Deserialize;
use std::sync::Arc;
use tokio::sync::mpsc;

/// What becomes of a request to listen.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    /// The server has accepted it, for these resources.
    Acknowledged(Vec<String>),
    /// The server has ended it; or refused it, with this message.
    Ended(Option<String>),
}

/// A request to listen, in force until it is dropped.
#[derive(Debug)]
pub struct Listening {
    connection: Arc<Connection>,
    id: u64,
    events: mpsc::Receiver<Heard>,
}

impl Listening {
    /// What becomes of it; `None` when the connection has ended.
    pub async fn next(&mut self) -> Option<Heard> {
        self.events.recv().await
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if self.connection.listens.lock().remove(&self.id).is_some() {
            self.connection.take_back(self.id, "no longer wanted");
        }
    }
}

/// The part of a notification that tells which request it belongs to.
#[derive(Deserialize)]
struct Belonging {
    #[serde(rename = "_meta")]
    meta: SubscriptionMeta,
}

#[derive(Deserialize)]
struct SubscriptionMeta {
    #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
    subscription: u64,
}

impl Connection {
    /// Listens. `notifications` is JSON text: what is wanted.
    pub fn listen(self: &Arc<Self>, notifications: &[u8]) -> Result<Listening, CallError> {
        if let Some(cause) = &self.table.lock().closed {
            return Err(CallError::NotSent(Arc::clone(cause)));
        }
        let id = self.next_id();
        let ask = Ask {
            method: "subscriptions/listen",
            params: &[("notifications", Param::Json(notifications))],
        };
        let meta = Meta {
            progress: false,
            modern: Some(Modern {
                capabilities: b"{}",
                log_level: None,
            }),
        };
        let bytes = outgoing::request(id, &ask, &meta);
        let (to, events) = mpsc::channel(4);
        self.listens.lock().insert(id, to);
        let listening = Listening {
            connection: Arc::clone(self),
            id,
            events,
        };
        // Not a request that is waited for: it has no id in the outbox.
        let head = Head {
            request: Some(id),
            ..outgoing::head(&ask, true)
        };
        match self.outbox.push(Frame {
            id: None,
            bytes,
            head,
        }) {
            Ok(()) => Ok(listening),
            Err(refused) => {
                // The server has never heard of it, and need not hear of its end.
                self.listens.lock().remove(&id);
                let cause = self.table.lock().closed.clone();
                Err(match (refused, cause) {
                    (PushError::Closed, Some(cause)) => CallError::NotSent(cause),
                    _ => CallError::Overloaded,
                })
            }
        }
    }

    /// Whether news is meant for us: a modern server tells only what was asked for, and says so.
    pub(super) fn is_heard(&self, params: &[u8]) -> bool {
        !self.is_modern() || self.listen_of(params).is_some()
    }

    fn listen_of(&self, params: &[u8]) -> Option<(u64, mpsc::Sender<Heard>)> {
        let belonging: Belonging = serde_json::from_slice(params).ok()?;
        let id = belonging.meta.subscription;
        let to = self.listens.lock().get(&id).cloned()?;
        Some((id, to))
    }

    pub(super) fn acknowledged(&self, params: &[u8]) {
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Params {
            notifications: Honoured,
        }
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Honoured {
            resource_subscriptions: Vec<String>,
        }
        let Some((_, to)) = self.listen_of(params) else {
            return self.odd();
        };
        let params: Params = serde_json::from_slice(params).unwrap_or_default();
        let resources = params.notifications.resource_subscriptions;
        let _ = to.try_send(Heard::Acknowledged(resources));
    }

    /// The server has answered a request to listen, which is its end. True if it was one.
    pub(super) fn listen_ended(&self, id: u64, refusal: impl FnOnce() -> Option<String>) -> bool {
        let Some(to) = self.listens.lock().remove(&id) else {
            return false;
        };
        let _ = to.try_send(Heard::Ended(refusal()));
        true
    }
}
