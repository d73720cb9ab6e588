//! Keeps a process told of what is wanted: one resource at a time in the legacy era, all at once in the
//! modern one.

use super::Subscriptions;
use crate::mcp::{
    connection::{CallError, Connection, Heard, Listening, Terms},
    lists::Kind,
    offers::Offers,
    outgoing::{Ask, Param},
};
use nexus_proto::reason::{Failure, Reason};
use serde_json::{Map, Value, json};
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tokio::time::{sleep, timeout};

/// A server that ends what it was asked to tell is asked again after this long.
const AGAIN: Duration = Duration::from_secs(5);

/// How long a server may take to accept a subscription.
const ACCEPT: Duration = Duration::from_secs(30);

/// Tells the server what is wanted, until the connection ends.
pub async fn keep_subscribed(
    connection: &Arc<Connection>,
    terms: Terms,
    subscriptions: &Subscriptions,
) {
    let _turn = subscriptions.upkeep.lock().await;
    if terms.revision.is_modern() {
        modern(connection, terms.offers, subscriptions).await;
    } else {
        legacy(connection, terms.offers, subscriptions).await;
    }
}

async fn legacy(connection: &Arc<Connection>, offers: Offers, subscriptions: &Subscriptions) {
    let mut changes = subscriptions.watch();
    let mut renewals = connection.renewals();
    let mut told = BTreeSet::new();
    loop {
        changes.mark_unchanged();
        if renewals.has_changed().unwrap_or(false) {
            renewals.mark_unchanged();
            told.clear();
        }
        let wanted = subscriptions.wanted();
        for uri in told.difference(&wanted) {
            // Whatever it says, nobody listens any more.
            let _ = ask(connection, "resources/unsubscribe", uri).await;
        }
        told.retain(|uri| wanted.contains(uri));
        for uri in &wanted {
            if told.contains(uri) {
                continue;
            }
            if !offers.subscribe {
                subscriptions.refused(uri, &cannot());
                continue;
            }
            match ask(connection, "resources/subscribe", uri).await {
                Ok(()) => {
                    told.insert(uri.clone());
                    subscriptions.established(uri);
                }
                Err(Unheard::Refused(failure)) => subscriptions.refused(uri, &failure),
                // The next process is told.
                Err(Unheard::Gone) => return,
            }
        }
        subscriptions.known(&told);
        let changed = tokio::select! {
            changed = changes.changed() => changed,
            renewed = renewals.changed() => {
                renewals.mark_changed();
                renewed
            }
        };
        if changed.is_err() {
            return;
        }
    }
}

/// Why a server has not accepted a subscription.
enum Unheard {
    Refused(Failure),
    /// It has not heard of it, or went away.
    Gone,
}

async fn ask(connection: &Arc<Connection>, method: &'static str, uri: &str) -> Result<(), Unheard> {
    let ask = Ask {
        method,
        params: &[("uri", Param::Text(uri))],
    };
    let answer = timeout(ACCEPT, async { connection.ask(&ask)?.await }).await;
    let late = || {
        Failure::new(
            Reason::Deadline,
            format!("{method} was not answered in time"),
        )
    };
    match answer {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(CallError::NotSent(_) | CallError::Lost(_))) => Err(Unheard::Gone),
        Ok(Err(error)) => Err(Unheard::Refused(error.into_failure(method))),
        Err(_) => Err(Unheard::Refused(late())),
    }
}

/// A request to listen, and for what.
struct Told {
    resources: BTreeSet<String>,
    listening: Listening,
    is_accepted: bool,
}

async fn modern(connection: &Arc<Connection>, offers: Offers, subscriptions: &Subscriptions) {
    let mut changes = subscriptions.watch();
    let mut told: Option<Told> = None;
    // The one before it, which goes on until the new one is in force: nothing is missed between them.
    let mut before: Option<Told> = None;
    loop {
        changes.mark_unchanged();
        let mut wanted = subscriptions.wanted();
        if !offers.subscribe {
            for uri in std::mem::take(&mut wanted) {
                subscriptions.refused(&uri, &cannot());
            }
        }
        let is_told = told.as_ref().is_some_and(|told| told.resources == wanted);
        let filter = filter(offers, &wanted);
        if filter.is_empty() {
            (told, before) = (None, None);
        } else if !is_told {
            match connection.listen(Value::Object(filter).to_string().as_bytes()) {
                Ok(listening) => {
                    let is_in_force = |told: &Told| told.is_accepted;
                    before = told.take().filter(is_in_force).or(before);
                    told = Some(Told {
                        resources: wanted,
                        listening,
                        is_accepted: false,
                    });
                }
                Err(CallError::NotSent(_)) => return,
                Err(_) => {
                    sleep(AGAIN).await;
                    continue;
                }
            }
        } else if let Some(told) = told.as_ref().filter(|told| told.is_accepted) {
            subscriptions.known(&told.resources);
        }
        let heard = async {
            match &mut told {
                Some(told) => told.listening.next().await,
                None => std::future::pending().await,
            }
        };
        let heard = tokio::select! {
            changed = changes.changed() => match changed {
                Ok(()) => continue,
                Err(_) => return,
            },
            heard = heard => heard,
        };
        let Some(now) = &mut told else { continue };
        match heard {
            Some(Heard::Acknowledged(accepted)) => {
                now.is_accepted = true;
                let known = before
                    .take()
                    .map(|before| before.resources)
                    .unwrap_or_default();
                if known.is_empty() {
                    // What changed before it listened is not told: it is asked once more.
                    note_lists(connection, offers);
                }
                for uri in now.resources.difference(&known) {
                    match accepted.contains(uri) {
                        true => subscriptions.established(uri),
                        false => subscriptions.refused(uri, &no_such_resource(uri)),
                    }
                }
                now.resources.retain(|uri| accepted.contains(uri));
            }
            Some(Heard::Ended(why)) => {
                let known = before.as_ref().map(|before| before.resources.clone());
                let known = known.unwrap_or_default();
                let (was_accepted, resources) = (now.is_accepted, now.resources.clone());
                told = before.take();
                if !was_accepted {
                    let why = why.unwrap_or_else(|| "the server has ended it".to_owned());
                    let failure = Failure::new(Reason::ServerError, why);
                    for uri in resources.difference(&known) {
                        subscriptions.refused(uri, &failure);
                    }
                }
                sleep(AGAIN).await;
            }
            None => return,
        }
    }
}

/// Has the lists asked for again of which the server tells when they change.
fn note_lists(connection: &Connection, offers: Offers) {
    let lists = [
        (Kind::Tools, offers.tools_changed),
        (Kind::Resources, offers.resources_changed),
        (Kind::Templates, offers.resources_changed),
        (Kind::Prompts, offers.prompts_changed),
    ];
    for (kind, _) in lists.into_iter().filter(|(_, tells)| *tells) {
        connection.changes.note(kind);
    }
}

/// What a modern server is asked to tell: all that it offers.
fn filter(offers: Offers, resources: &BTreeSet<String>) -> Map<String, Value> {
    let mut filter = Map::new();
    let lists = [
        ("toolsListChanged", offers.tools_changed),
        ("promptsListChanged", offers.prompts_changed),
        ("resourcesListChanged", offers.resources_changed),
    ];
    for (name, offered) in lists {
        if offered {
            filter.insert(name.to_owned(), Value::Bool(true));
        }
    }
    if !resources.is_empty() {
        filter.insert("resourceSubscriptions".to_owned(), json!(resources));
    }
    filter
}

fn cannot() -> Failure {
    let message = "the server does not tell when its resources change";
    Failure::new(Reason::NotSupported, message)
}

fn no_such_resource(uri: &str) -> Failure {
    let message = format!("the server does not tell when {uri} changes");
    Failure::new(Reason::ResourceNotFound, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_offered_is_asked_for() {
        assert!(filter(Offers::default(), &BTreeSet::new()).is_empty());
        let offers = Offers {
            tools_changed: true,
            ..Offers::default()
        };
        let wanted = BTreeSet::from(["u".to_owned()]);
        let expected = json!({"toolsListChanged": true, "resourceSubscriptions": ["u"]});
        assert_eq!(Value::Object(filter(offers, &wanted)), expected);
    }
}
