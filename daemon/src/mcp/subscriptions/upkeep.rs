//! Keeps a process told of what is wanted: one resource at a time in the legacy era, all at once in the
//! modern one.

use super::Subscriptions;
use crate::mcp::{
    connection::{Connection, Heard, Listening, Terms},
    offers::Offers,
    outgoing::{Ask, Param},
};
use nexus_proto::reason::{Failure, Reason};
use serde_json::{Map, Value, json};
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep, timeout};

/// A server that ends what it was asked to tell is asked again, but not sooner than this.
const AGAIN: Duration = Duration::from_secs(5);

/// How long a server may take to accept a subscription.
const ACCEPT: Duration = Duration::from_secs(30);

/// Tells the server what is wanted, until the connection ends.
pub async fn keep_subscribed(
    connection: &Arc<Connection>,
    terms: Terms,
    subscriptions: &Subscriptions,
) {
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
        for uri in wanted.difference(&told) {
            let accepted = if offers.subscribe {
                ask(connection, "resources/subscribe", uri).await
            } else {
                Err(cannot())
            };
            match accepted {
                Ok(()) => subscriptions.established(uri),
                Err(failure) => subscriptions.refused(uri, &failure),
            }
        }
        told = wanted;
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

async fn ask(connection: &Arc<Connection>, method: &'static str, uri: &str) -> Result<(), Failure> {
    let ask = Ask {
        method,
        params: &[("uri", Param::Text(uri))],
    };
    let late = |_| {
        Failure::new(
            Reason::Deadline,
            format!("{method} was not answered in time"),
        )
    };
    let answer = timeout(ACCEPT, async { connection.ask(&ask)?.await }).await;
    answer
        .map_err(late)?
        .map(drop)
        .map_err(|error| error.into_failure(method))
}

async fn modern(connection: &Arc<Connection>, offers: Offers, subscriptions: &Subscriptions) {
    let mut changes = subscriptions.watch();
    let mut told: Option<(BTreeSet<String>, Listening)> = None;
    let mut listened = Instant::now() - AGAIN;
    loop {
        changes.mark_unchanged();
        let mut wanted = subscriptions.wanted();
        if !offers.subscribe {
            for uri in std::mem::take(&mut wanted) {
                subscriptions.refused(&uri, &cannot());
            }
        }
        let is_told = told.as_ref().is_some_and(|(told, _)| *told == wanted);
        if !is_told {
            let filter = filter(offers, &wanted);
            if filter.is_empty() {
                told = None;
            } else {
                let before = told
                    .as_ref()
                    .map(|(told, _)| told.clone())
                    .unwrap_or_default();
                listened = Instant::now();
                let Ok(mut listening) =
                    connection.listen(Value::Object(filter).to_string().as_bytes())
                else {
                    return;
                };
                // The old one is dropped once the new one is in force: nothing is missed between them.
                match timeout(ACCEPT, listening.next()).await {
                    Ok(Some(Heard::Acknowledged(accepted))) => {
                        for uri in wanted.difference(&before) {
                            if accepted.contains(uri) {
                                subscriptions.established(uri);
                            } else {
                                subscriptions.refused(uri, &no_such_resource(uri));
                            }
                        }
                        told = Some((wanted, listening));
                    }
                    Ok(Some(Heard::Ended(why))) => {
                        let why = why.unwrap_or_else(|| "the server has ended it".to_owned());
                        let failure = Failure::new(Reason::ServerError, why);
                        for uri in wanted.difference(&before) {
                            subscriptions.refused(uri, &failure);
                        }
                        told = None;
                    }
                    Ok(None) => return,
                    Err(_) => told = Some((wanted, listening)),
                }
            }
        }
        let ended = async {
            match &mut told {
                Some((_, listening)) => loop {
                    if !matches!(listening.next().await, Some(Heard::Acknowledged(_))) {
                        return;
                    }
                },
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = ended => {
                told = None;
                sleep(AGAIN.saturating_sub(listened.elapsed())).await;
            }
        }
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
