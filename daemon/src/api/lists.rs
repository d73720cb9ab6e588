//! Lists of several servers, and which of them have none to give now.

use super::Context;
use crate::{
    mcp::lists::Kind,
    pool::{Server, key::Caller},
    supervisor::status::Readiness,
};
use nexus_proto::{
    reason::{Failure, Reason},
    v1,
};
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;

/// How long a list waits for servers that are starting.
const LIST_PATIENCE: Duration = Duration::from_secs(20);

/// The server of that name; all that the caller sees when it is empty.
pub(super) fn servers(
    context: &Context,
    name: &str,
    caller: &Caller,
) -> Result<Vec<Arc<Server>>, Failure> {
    let catalog = &context.catalog;
    match name {
        "" => Ok(catalog.servers(caller)),
        name => Ok(vec![catalog.server(name, caller)?]),
    }
}

/// What these servers have, and those of which it is not known.
pub(super) async fn gather<T>(
    servers: &[Arc<Server>],
    caller: &Caller,
    kind: Kind,
    list: impl Fn(&Arc<Server>) -> Option<Vec<T>>,
) -> (Vec<T>, Vec<v1::MissingServer>) {
    settle(servers, caller, kind).await;
    let mut all = Vec::new();
    let mut missing = Vec::new();
    // One of them may have become somebody's own meanwhile.
    for server in servers.iter().filter(|server| caller.oversees(server)) {
        match list(server) {
            Some(known) => all.extend(known),
            None => missing.push(missing_server(server, caller)),
        }
    }
    (all, missing)
}

/// Waits for those of these servers that are starting.
pub(super) async fn settle(servers: &[Arc<Server>], caller: &Caller, kind: Kind) {
    let settled = servers.iter().map(|server| server.settled(caller, kind));
    let _ = timeout(LIST_PATIENCE, futures_util::future::join_all(settled)).await;
}

fn missing_server(server: &Server, caller: &Caller) -> v1::MissingServer {
    let name = server.config().name.clone();
    let (reason, message) = match server.readiness_for(caller) {
        Readiness::Refused(failure) => {
            let failure = caller.may_know(failure);
            (failure.reason.as_str(), failure.message)
        }
        _ => (
            Reason::ServerStarting.as_str(),
            "it is still starting".to_owned(),
        ),
    };
    v1::MissingServer {
        server: name,
        reason: reason.to_owned(),
        message,
    }
}
