//! `nexus.policy()`.

use crate::{
    Result, ToolChange,
    rpc::{Repeat, request},
    transport::Transport,
};
use nexus_proto::v1;

/// What tools are held to; made by [`Nexus::policy`](crate::Nexus::policy).
///
/// It is for the operator: others get [`Reason::NotOperator`](crate::Reason::NotOperator).
#[derive(Debug, Clone, Copy)]
pub struct Policy<'a> {
    pub(crate) transport: &'a Transport,
}

impl Policy<'_> {
    /// The tools of all servers that are not, or no longer, what was approved of.
    ///
    /// # Errors
    /// When the daemon does not answer, or this program is not the operator's.
    pub async fn changes(&self) -> Result<Vec<ToolChange>> {
        self.changes_named("").await
    }

    /// Those of one server.
    ///
    /// # Errors
    /// When there is no server of that name, or this program is not the operator's.
    pub async fn changes_of(&self, server: &str) -> Result<Vec<ToolChange>> {
        self.changes_named(server).await
    }

    async fn changes_named(&self, server: &str) -> Result<Vec<ToolChange>> {
        let ask = |transport: Transport| async move {
            let server = server.to_owned();
            let message = v1::PolicyListChangesRequest { server };
            transport
                .policy()
                .list_changes(request(message, None))
                .await
        };
        let answer = self.transport.ask(Repeat::Freely, ask).await?;
        let changes = answer.changes.into_iter();
        changes.map(ToolChange::from_wire).collect()
    }

    /// Approves of a tool as it was told. Returns how many tools that are: none, if it was approved of before.
    ///
    /// # Errors
    /// [`Reason::Changed`](crate::Reason::Changed) when it is something else by now, or no longer waits.
    pub async fn approve(&self, change: &ToolChange) -> Result<u32> {
        let now = change.now.as_str();
        self.approve_named(&change.server, &change.tool, now).await
    }

    /// Approves of all tools of a server, whatever they are now. Returns how many waited for it.
    ///
    /// # Errors
    /// When there is no server of that name.
    pub async fn approve_all(&self, server: &str) -> Result<u32> {
        self.approve_named(server, "", "").await
    }

    async fn approve_named(&self, server: &str, tool: &str, definition: &str) -> Result<u32> {
        let ask = |transport: Transport| async move {
            let message = v1::PolicyApproveRequest {
                server: server.to_owned(),
                tool: tool.to_owned(),
                definition: definition.to_owned().into(),
            };
            transport.policy().approve(request(message, None)).await
        };
        let answer = self.transport.ask(Repeat::Never, ask).await?;
        Ok(answer.approved)
    }
}
