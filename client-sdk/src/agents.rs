//! `nexus.agents()`.

use crate::{
    Agent, Result,
    rpc::{Repeat, request},
    transport::Transport,
};
use nexus_proto::v1;

/// Who uses the pool; made by [`Nexus::agents`](crate::Nexus::agents).
#[derive(Debug, Clone, Copy)]
pub struct Agents<'a> {
    pub(crate) transport: &'a Transport,
}

impl Agents<'_> {
    /// Who is connected, those who came first first. This client is among them.
    ///
    /// # Errors
    /// When the daemon does not answer.
    pub async fn list(&self) -> Result<Vec<Agent>> {
        let ask = |transport: Transport| async move {
            let message = v1::AgentsListRequest {};
            transport.agents().list(request(message, None)).await
        };
        let answer = self.transport.ask(Repeat::Freely, ask).await?;
        Ok(answer.agents.into_iter().map(Into::into).collect())
    }
}
