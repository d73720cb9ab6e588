//! The lists of all servers as one.

use super::{
    builtin::{self, Builtin},
    client::Client,
    splice,
    view::View,
};
use crate::{
    catalog::{Item, Prompt, Tool},
    mcp::lists::Kind,
    pool::key::Caller,
};
use nexus_config::model::ToolsMode;
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;

/// How long a list waits for servers that start for the first time. A client that has waited longer has
/// given up; what comes later is told as a change.
const PATIENCE: Duration = Duration::from_secs(5);

/// The list of one kind: JSON text, a member without braces.
pub(super) async fn list(client: &Client, kind: Kind) -> Vec<u8> {
    let caller = client.caller();
    if kind == Kind::Tools && caller.sight.tools() == ToolsMode::Search {
        return tools(client, &caller);
    }
    settle(client, &caller, kind).await;
    match kind {
        Kind::Tools => tools(client, &caller),
        Kind::Prompts => {
            let mut out = Array::new("prompts");
            named::<Prompt>(client, &caller, &mut out, |prompt| &prompt.definition);
            out.end()
        }
        Kind::Resources => addressed(client, &caller, kind, "resources", "uri"),
        Kind::Templates => addressed(client, &caller, kind, "resourceTemplates", "uriTemplate"),
    }
}

/// Waits for servers that start for the first time.
pub(super) async fn settle(client: &Client, caller: &Caller, kind: Kind) {
    let servers = client.catalog().servers(caller);
    let settled = servers.iter().map(|server| server.settled(caller, kind));
    let _ = timeout(PATIENCE, futures_util::future::join_all(settled)).await;
}

/// Our own tools and those of the servers, as far as the client wants them.
fn tools(client: &Client, caller: &Caller) -> Vec<u8> {
    let mode = caller.sight.tools();
    let mut out = Array::new("tools");
    if mode != ToolsMode::Direct {
        for own in builtin::definitions(client.catalog(), caller) {
            out.push(own.as_bytes());
        }
    }
    if mode != ToolsMode::Search {
        named::<Tool>(client, caller, &mut out, |tool| &tool.definition);
    }
    out.end()
}

fn named<T: Item>(
    client: &Client,
    caller: &Caller,
    out: &mut Array,
    definition: fn(&T) -> &bytes::Bytes,
) {
    let keeps_names = View::of(caller).single().is_some();
    for server in client.catalog().servers(caller) {
        let Some(names) = client.catalog().of::<T>(&server, caller) else {
            continue;
        };
        for item in &names.list {
            let item: &Arc<T> = item;
            let own = definition(item);
            if keeps_names {
                // Two of one name would be one too many; `execute` reaches the server's.
                if T::KIND != Kind::Tools || Builtin::named(item.own_name(), caller).is_none() {
                    out.push(own);
                }
                continue;
            }
            let name = serde_json::Value::from(item.name()).to_string();
            if let Some(renamed) = splice::with_value(own, "name", name.as_bytes()) {
                out.push(&renamed);
            }
        }
    }
}

fn addressed(client: &Client, caller: &Caller, kind: Kind, array: &str, key: &str) -> Vec<u8> {
    let mut out = Array::new(array);
    for named in View::of(caller).uris(client.catalog(), kind) {
        let Some(uri) = named.uri else {
            out.push(&named.definition);
            continue;
        };
        let uri = serde_json::Value::from(uri).to_string();
        if let Some(renamed) = splice::with_value(&named.definition, key, uri.as_bytes()) {
            out.push(&renamed);
        }
    }
    out.end()
}

/// A member that is an array, as text.
struct Array {
    out: Vec<u8>,
    is_first: bool,
}

impl Array {
    fn new(name: &str) -> Self {
        Self {
            out: format!("\"{name}\":[").into_bytes(),
            is_first: true,
        }
    }

    fn push(&mut self, json: &[u8]) {
        if !std::mem::take(&mut self.is_first) {
            self.out.push(b',');
        }
        self.out.extend_from_slice(json);
    }

    fn end(mut self) -> Vec<u8> {
        self.out.push(b']');
        self.out
    }
}
