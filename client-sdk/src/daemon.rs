//! `nexus.daemon()`.

use crate::{
    DaemonStatus, RawJson, ReloadReport, Result,
    rpc::{Repeat, request},
    transport::Transport,
};
use nexus_proto::v1;

/// The daemon itself; made by [`Nexus::daemon`](crate::Nexus::daemon).
#[derive(Debug, Clone, Copy)]
pub struct Daemon<'a> {
    pub(crate) transport: &'a Transport,
}

impl Daemon<'_> {
    /// What runs, since when, and how it is doing.
    ///
    /// # Errors
    /// When the daemon does not answer.
    pub async fn status(&self) -> Result<DaemonStatus> {
        let ask = |transport: Transport| async move {
            let message = v1::DaemonStatusRequest {};
            transport.daemon().status(request(message, None)).await
        };
        let answer = self.transport.ask(Repeat::Freely, ask).await?;
        Ok(answer.into())
    }

    /// Reads the configuration again. Servers that it leaves as they were go on undisturbed.
    ///
    /// # Errors
    /// [`Reason::ConfigInvalid`](crate::Reason::ConfigInvalid) when it cannot be used: nothing has
    /// changed then.
    pub async fn reload(&self) -> Result<ReloadReport> {
        let ask = |transport: Transport| async move {
            let message = v1::DaemonReloadRequest {};
            transport.daemon().reload(request(message, None)).await
        };
        let answer = self.transport.ask(Repeat::Never, ask).await?;
        Ok(answer.into())
    }

    /// Stops the daemon and its servers, after the calls that are under way unless `now`.
    ///
    /// # Errors
    /// When the daemon does not answer.
    pub async fn shutdown(&self, now: bool) -> Result<()> {
        let ask = |transport: Transport| async move {
            let message = v1::DaemonShutdownRequest { now };
            transport.daemon().shutdown(request(message, None)).await
        };
        self.transport.ask(Repeat::Never, ask).await?;
        Ok(())
    }

    /// The configuration in force, in the shape of `mcp.json`, with secrets left out.
    ///
    /// # Errors
    /// When the daemon does not answer.
    pub async fn effective_config(&self) -> Result<RawJson> {
        let ask = |transport: Transport| async move {
            let message = request(v1::DaemonEffectiveConfigRequest {}, None);
            transport.daemon().effective_config(message).await
        };
        let answer = self.transport.ask(Repeat::Freely, ask).await?;
        RawJson::from_wire(answer.config, "the configuration")
    }
}
