//! Changes that a client wants to hear of: of lists, and of resources.

use super::{
    answer,
    client::Client,
    message::{Kind as MessageKind, Out},
    methods::{Asked, required},
    params::{INVALID_PARAMS, error},
    view::View,
};
use crate::{
    catalog::Changed,
    mcp::{envelope::RpcError, lists::Kind, outgoing, subscriptions::Event},
    pool::Listener,
    router::keep_up,
};
use bytes::Bytes;
use futures_util::future::join_all;
use nexus_proto::reason::{Failure, Reason};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use std::sync::Arc;
use tokio::{
    sync::{oneshot, watch},
    task::{AbortHandle, JoinSet},
};

/// How many resources one client may listen to.
const MAX_RESOURCES: usize = 256;

/// The notification that a list of this kind has changed.
fn list_changed(kind: Kind) -> &'static str {
    match kind {
        Kind::Tools => "notifications/tools/list_changed",
        Kind::Prompts => "notifications/prompts/list_changed",
        Kind::Resources | Kind::Templates => "notifications/resources/list_changed",
    }
}

/// Tells a client of the legacy era which lists change, for as long as it is here.
pub(super) fn tell_changes(client: &Arc<Client>) {
    let out = client.out().clone();
    let task = tokio::spawn(watch_lists(Arc::downgrade(client), out, None, |_| true));
    client.keep(task.abort_handle());
}

/// Tells of changes of those lists that are wanted. `subscription`: the id that each message carries.
async fn watch_lists(
    client: std::sync::Weak<Client>,
    out: Out,
    subscription: Option<Bytes>,
    wants: impl Fn(Kind) -> bool,
) {
    let Some(mut changed) = client.upgrade().map(|client| Changed::new(client.pool())) else {
        return;
    };
    let params = subscription
        .map(|id| belonging(&id, None))
        .unwrap_or_default();
    loop {
        let caller = || client.upgrade().map(|client| client.caller());
        let Some(lists) = changed.next(caller).await else {
            return;
        };
        let kinds = lists.into_iter().map(|(_, kind)| kind);
        let mut methods: Vec<_> = kinds.filter(|&k| wants(k)).map(list_changed).collect();
        methods.sort_unstable();
        methods.dedup();
        for method in methods {
            let news = outgoing::notification(method, params.as_bytes());
            if !out.send(news, MessageKind::News).await {
                return;
            }
        }
    }
}

/// The params of a message that belongs to a request to listen. `id` is JSON text.
fn belonging(id: &[u8], uri: Option<&str>) -> String {
    let id = String::from_utf8_lossy(id);
    let uri = uri
        .map(|uri| format!(r#""uri":{},"#, json!(uri)))
        .unwrap_or_default();
    format!(r#"{{{uri}"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}"#)
}

/// `resources/subscribe`.
pub(super) async fn subscribe(asked: &Asked<'_>) -> Result<Bytes, RpcError> {
    let uri = required(asked.params.uri.as_deref(), "uri")?.to_owned();
    let client = asked.client;
    if client.subscriptions.lock().contains_key(&uri) {
        return Ok(answer::nothing(asked.dialect));
    }
    if client.subscriptions.lock().len() >= MAX_RESOURCES {
        return Err(error(
            INVALID_PARAMS,
            "too many resources are subscribed to",
        ));
    }
    let (to, established) = oneshot::channel();
    let task = tokio::spawn(follow(
        Arc::downgrade(client),
        uri.clone(),
        None,
        client.out().clone(),
        to,
        None,
    ));
    let mut guard = AbortOnDrop(Some(task.abort_handle()));
    match established.await {
        Ok(Ok(())) => {
            guard.0 = None;
            let before = client.subscriptions.lock().insert(uri, task.abort_handle());
            if let Some(before) = before {
                before.abort();
            }
            Ok(answer::nothing(asked.dialect))
        }
        Ok(Err(failure)) => Err(answer::refusal(&failure, asked.dialect)),
        Err(_) => Err(error(-32603, "the subscription has ended")),
    }
}

/// A request that is cancelled takes its task along.
struct AbortOnDrop(Option<AbortHandle>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

/// `resources/unsubscribe`.
pub(super) fn unsubscribe(asked: &Asked<'_>) -> Result<Bytes, RpcError> {
    let uri = required(asked.params.uri.as_deref(), "uri")?;
    if let Some(task) = asked.client.subscriptions.lock().remove(uri) {
        task.abort();
    }
    Ok(answer::nothing(asked.dialect))
}

/// Follows one resource. Says once whether that can be done.
async fn follow(
    client: std::sync::Weak<Client>,
    uri: String,
    subscription: Option<Bytes>,
    out: Out,
    established: oneshot::Sender<Result<(), Failure>>,
    go: Option<watch::Receiver<bool>>,
) {
    let mut go = go;
    let Some(here) = client.upgrade() else { return };
    let (caller, router) = (here.caller(), Arc::clone(here.router()));
    let (server, own) = View::of(&caller).resource(Kind::Resources, &uri, here.catalog());
    drop(here);
    let mut established = Some(established);
    let mut say = |outcome| {
        if let Some(to) = established.take() {
            let _ = to.send(outcome);
        }
    };
    let Listener {
        subscription: mut events,
        keeper,
    } = match router.subscribe(&caller, &server, own).await {
        Ok(listener) => listener,
        Err(failure) => return say(Err(failure)),
    };
    let params = match &subscription {
        Some(id) => belonging(id, Some(&uri)),
        None => json!({ "uri": uri }).to_string(),
    };
    let mut keep_up = std::pin::pin!(keep_up(&keeper));
    loop {
        let event = tokio::select! {
            biased;
            () = out.closed() => return,
            event = events.next() => event,
            failure = &mut keep_up => Some(Event::Refused(failure)),
        };
        match event {
            Some(Event::Subscribed) => say(Ok(())),
            Some(Event::Updated(_) | Event::MayHaveChanged) => {
                if let Some(mut go) = go.take() {
                    let _ = go.wait_for(|go| *go).await;
                }
                let method = "notifications/resources/updated";
                let news = outgoing::notification(method, params.as_bytes());
                if !out.send(news, MessageKind::News).await {
                    return;
                }
            }
            Some(Event::Refused(failure)) => return say(Err(failure)),
            None => {
                let message = "the subscription has ended";
                return say(Err(Failure::new(Reason::Internal, message)));
            }
        }
    }
}

/// `subscriptions/listen`: goes on until the client cancels it.
pub(super) async fn listen(asked: &Asked<'_>) -> Result<Bytes, RpcError> {
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Wanted {
        tools_list_changed: bool,
        prompts_list_changed: bool,
        resources_list_changed: bool,
        resource_subscriptions: Vec<String>,
    }
    let raw = required(asked.params.notifications, "notifications")?;
    let wanted: Wanted = serde_json::from_str(RawValue::get(raw))
        .map_err(|wrong| error(INVALID_PARAMS, format!("notifications: {wrong}")))?;
    if wanted.resource_subscriptions.len() > MAX_RESOURCES {
        return Err(error(
            INVALID_PARAMS,
            "too many resources are subscribed to",
        ));
    }
    let (client, id, out) = (asked.client, asked.id, asked.out);
    let mut tasks = JoinSet::new();
    let mut waiting = Vec::new();
    let (acknowledged, go) = watch::channel(false);
    for uri in wanted.resource_subscriptions {
        let (to, established) = oneshot::channel();
        let here = Arc::downgrade(client);
        // Nothing may come before the acknowledgement.
        let follow = follow(
            here,
            uri.clone(),
            Some(id.clone()),
            out.clone(),
            to,
            Some(go.clone()),
        );
        tasks.spawn(follow);
        waiting.push(async move { (uri, established.await) });
    }
    let honoured: Vec<String> = join_all(waiting)
        .await
        .into_iter()
        .filter_map(|(uri, established)| matches!(established, Ok(Ok(()))).then_some(uri))
        .collect();
    let mut filter = serde_json::Map::new();
    for (name, is_wanted) in [
        ("toolsListChanged", wanted.tools_list_changed),
        ("promptsListChanged", wanted.prompts_list_changed),
        ("resourcesListChanged", wanted.resources_list_changed),
    ] {
        if is_wanted {
            filter.insert(name.to_owned(), Value::Bool(true));
        }
    }
    if !honoured.is_empty() {
        filter.insert("resourceSubscriptions".to_owned(), json!(honoured));
    }
    let own = String::from_utf8_lossy(id);
    let params = format!(
        r#"{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{own}}},"notifications":{}}}"#,
        Value::Object(filter)
    );
    let method = "notifications/subscriptions/acknowledged";
    let news = outgoing::notification(method, params.as_bytes());
    out.send(news, MessageKind::News).await;
    acknowledged.send_replace(true);
    let wants = move |kind| match kind {
        Kind::Tools => wanted.tools_list_changed,
        Kind::Prompts => wanted.prompts_list_changed,
        Kind::Resources | Kind::Templates => wanted.resources_list_changed,
    };
    let lists = watch_lists(Arc::downgrade(client), out.clone(), Some(id.clone()), wants);
    tasks.spawn(lists);
    while tasks.join_next().await.is_some() {}
    Ok(answer::nothing(asked.dialect))
}
