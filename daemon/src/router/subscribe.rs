//! Changes of a resource, told for as long as somebody listens, whatever becomes of the process.

use super::Router;
use crate::{
    mcp::lists::Kind,
    policy::Action,
    pool::{Keeper, Listener, key::Caller},
};
use nexus_proto::reason::Failure;
use std::time::Duration;
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
    ) -> Result<Listener, Failure> {
        self.check_open()?;
        self.policy.check_level(&caller.agent, &caller.standing)?;
        let subscribe = async {
            let server = self.find_server(Kind::Resources, server, uri, caller);
            let server = server.await?;
            self.permit(caller, &server, Action::CONNECT).await?;
            server.subscribe(caller, uri)
        };
        subscribe.await.map_err(|failure| caller.may_know(failure))
    }
}

/// Keeps a process up for whoever listens to it. Ends when there is no hope, and says why.
pub async fn keep_up(keeper: &Keeper) -> Failure {
    let mut was_ready = false;
    loop {
        let is_held = || keeper.server().is_none_or(|server| server.is_held());
        match keeper.run_once().await {
            Ok(()) => was_ready = true,
            // One that has never worked will not; one that has may again.
            Err(failure) if !was_ready || is_held() => return failure,
            Err(failure) => sleep(failure.details.retry_after.unwrap_or(AGAIN).min(AGAIN)).await,
        }
    }
}
