//! `nexus.approvals()`.

use crate::{
    Answer, Approval, ApprovalEvent, ApprovalEvents, Result,
    rpc::{Repeat, request},
    transport::Transport,
};
use nexus_proto::v1;

/// What agents want to do and somebody is asked about; made by [`Nexus::approvals`](crate::Nexus::approvals).
///
/// It is for the operator: others get [`Reason::NotOperator`](crate::Reason::NotOperator).
#[derive(Debug, Clone, Copy)]
pub struct Approvals<'a> {
    pub(crate) transport: &'a Transport,
}

impl Approvals<'_> {
    /// The questions that wait now, and then each change.
    ///
    /// # Errors
    /// When the daemon does not answer, or this program is not the operator's.
    pub async fn watch(&self) -> Result<ApprovalEvents> {
        let ask = |transport: Transport| async move {
            let message = v1::PolicyWatchRequest {};
            transport.policy().watch(request(message, None)).await
        };
        let events = self.transport.ask(Repeat::Freely, ask).await?;
        Ok(ApprovalEvents::new(self.transport.clone(), events))
    }

    /// The questions that wait now.
    ///
    /// # Errors
    /// As [`Approvals::watch`].
    pub async fn list(&self) -> Result<Vec<Approval>> {
        let mut events = self.watch().await?;
        let mut waiting = Vec::new();
        while let Some(event) = events.next().await {
            match event? {
                ApprovalEvent::Asked(approval) => waiting.push(*approval),
                ApprovalEvent::Told => break,
                ApprovalEvent::Closed { .. } => {}
            }
        }
        Ok(waiting)
    }

    /// Answers a question. The first answer counts.
    ///
    /// # Errors
    /// When no such question waits any more.
    pub async fn decide(&self, id: u64, answer: Answer) -> Result<()> {
        let ask = |transport: Transport| async move {
            let answer = v1::Answer::from(answer).into();
            let message = v1::PolicyDecideRequest { id, answer };
            transport.policy().decide(request(message, None)).await
        };
        self.transport.ask(Repeat::Never, ask).await?;
        Ok(())
    }

    /// Forgets what was answered for an agent, or all of them, and a server, or all of them. Returns how many
    /// answers that were.
    ///
    /// # Errors
    /// When the daemon does not answer, or this program is not the operator's.
    pub async fn forget(&self, agent: Option<u64>, server: Option<&str>) -> Result<u32> {
        let ask = |transport: Transport| async move {
            let message = v1::PolicyForgetRequest {
                agent: agent.unwrap_or_default(),
                server: server.unwrap_or_default().to_owned(),
            };
            transport.policy().forget(request(message, None)).await
        };
        let answer = self.transport.ask(Repeat::Freely, ask).await?;
        Ok(answer.forgotten)
    }
}
