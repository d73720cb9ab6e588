//! Changes of a resource, told for as long as somebody listens, whatever becomes of the process.

use super::Router;
use crate::{
    mcp::{lists::Kind, subscriptions::Subscription},
    pool::{Server, key::Caller},
};
use nexus_proto::reason::Failure;
use std::{sync::Arc, time::Duration};
use tokio::time::sleep;

/// How long to wait before a server that cannot start is tried again, unless it is known better.
const AGAIN: Duration = Duration::from_secs(10);

impl Router {
    /// Tells when a resource changes, as long as a process of its server runs: see [`keep_up`].
    pub async fn subscribe(
        &self,
        caller: &Caller,
        server: &str,
        uri: &str,
    ) -> Result<(Arc<Server>, Subscription), Failure> {
        self.check_open()?;
        let server = self
            .find_server(Kind::Resources, server, uri, caller)
            .await?;
        let subscription = server.subscribe(caller, uri)?;
        Ok((server, subscription))
    }
}

/// Keeps a process of a server up for whoever listens to it. Ends when there is no hope, and says why.
pub async fn keep_up(server: &Server, caller: &Caller) -> Failure {
    let mut was_ready = false;
    loop {
        match run(server, caller).await {
            Ok(()) => was_ready = true,
            // One that has never worked will not; one that has may again.
            Err(failure) if !was_ready || server.is_held() => return failure,
            Err(failure) => sleep(failure.details.retry_after.unwrap_or(AGAIN).min(AGAIN)).await,
        }
    }
}

/// Starts a process if there is none, and waits until it has gone.
async fn run(server: &Server, caller: &Caller) -> Result<(), Failure> {
    let member = server.member_for(caller)?;
    let connection = member.ready(server).await?;
    member.lost(&connection).await;
    Ok(())
}
