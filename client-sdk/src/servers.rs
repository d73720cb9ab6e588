//! `nexus.servers()`.

use crate::{
    Commanded, Error, LogLevel, LogOptions, LogStream, Result, Server, ServerEvents, Wait,
    rpc::{Repeat, request},
    transport::Transport,
};
use nexus_proto::v1;
use std::time::Duration;

/// The servers of the pool; made by [`Nexus::servers`](crate::Nexus::servers).
///
/// A server is found by the name that its config gave it, or by its slug, without regard to case.
/// [`Reason::ServerNotFound`](crate::Reason::ServerNotFound) comes with the nearest name there is.
#[derive(Debug, Clone, Copy)]
pub struct Servers<'a> {
    pub(crate) transport: &'a Transport,
}

/// A method whose request names a server and says whether to wait.
macro_rules! command {
    ($(#[$doc:meta])* $name:ident, $request:ident) => {
        $(#[$doc])*
        pub async fn $name(&self, server: &str, wait: Wait) -> Result<Commanded> {
            let ask = |transport: Transport| async move {
                let message = v1::$request {
                    server: server.to_owned(),
                    wait: wait == Wait::Done,
                };
                transport.servers().$name(request(message, None)).await
            };
            let answer = self.transport.ask(Repeat::Never, ask).await?;
            Ok(Commanded {
                outcome: answer.outcome().into(),
                server: known(answer.server)?,
            })
        }
    };
}

impl Servers<'_> {
    /// All servers, in the order of their names.
    ///
    /// # Errors
    /// When the daemon does not answer.
    pub async fn list(&self) -> Result<Vec<Server>> {
        let ask = |transport: Transport| async move {
            let message = v1::ServersListRequest {};
            transport.servers().list(request(message, None)).await
        };
        let answer = self.transport.ask(Repeat::Freely, ask).await?;
        answer.servers.into_iter().map(Server::from_wire).collect()
    }

    /// One server.
    ///
    /// # Errors
    /// When there is none of that name.
    pub async fn get(&self, server: &str) -> Result<Server> {
        let ask = |transport: Transport| async move {
            let server = server.to_owned();
            let message = v1::ServersGetRequest { server };
            transport.servers().get(request(message, None)).await
        };
        let answer = self.transport.ask(Repeat::Freely, ask).await?;
        known(answer.server)
    }

    command! {
        /// Wants the server to run; ends a backoff and a failure.
        ///
        /// # Errors
        /// When it cannot start, if that is waited for.
        start, ServersStartRequest
    }

    command! {
        /// Wants the server not to run, until it is started again.
        ///
        /// # Errors
        /// When there is none of that name.
        stop, ServersStopRequest
    }

    command! {
        /// Stops the server if it runs, and starts it.
        ///
        /// # Errors
        /// When it cannot start, if that is waited for.
        restart, ServersRestartRequest
    }

    /// Asks the server for its lists again and waits for the answer.
    ///
    /// # Errors
    /// When the server does not run or does not answer.
    pub async fn refresh(&self, server: &str) -> Result<Server> {
        let ask = |transport: Transport| async move {
            let server = server.to_owned();
            let message = v1::ServersRefreshRequest { server };
            transport.servers().refresh(request(message, None)).await
        };
        let answer = self.transport.ask(Repeat::Freely, ask).await?;
        known(answer.server)
    }

    /// Sends the server an MCP ping: from its being written to its answer being read.
    ///
    /// # Errors
    /// When the server does not run or does not answer.
    pub async fn ping(&self, server: &str) -> Result<Duration> {
        let ask = |transport: Transport| async move {
            let server = server.to_owned();
            let message = v1::ServersPingRequest { server };
            transport.servers().ping(request(message, None)).await
        };
        let answer = self.transport.ask(Repeat::Freely, ask).await?;
        let time = answer.round_trip.and_then(|time| time.try_into().ok());
        time.ok_or_else(|| Error::Protocol("a ping without a time".to_owned()))
    }

    /// Says how much the server is to log for its client. It is told again whenever it is started.
    ///
    /// # Errors
    /// [`Reason::NotSupported`](crate::Reason::NotSupported) when it does not log for its client.
    pub async fn set_log_level(&self, server: &str, level: LogLevel) -> Result<()> {
        let ask = |transport: Transport| async move {
            let message = v1::ServersSetLogLevelRequest {
                server: server.to_owned(),
                level: level.as_str().to_owned(),
            };
            transport
                .servers()
                .set_log_level(request(message, None))
                .await
        };
        // Told twice is as good as told once.
        self.transport.ask(Repeat::Freely, ask).await?;
        Ok(())
    }

    /// The state of every server now, and then each change as it happens.
    ///
    /// # Errors
    /// When the daemon does not answer.
    pub async fn watch(&self) -> Result<ServerEvents> {
        self.watch_named("").await
    }

    /// The same for one server.
    ///
    /// # Errors
    /// When there is none of that name.
    pub async fn watch_one(&self, server: &str) -> Result<ServerEvents> {
        self.watch_named(server).await
    }

    async fn watch_named(&self, server: &str) -> Result<ServerEvents> {
        let ask = |transport: Transport| async move {
            let server = server.to_owned();
            let message = v1::ServersWatchRequest { server };
            transport.servers().watch(request(message, None)).await
        };
        let events = self.transport.ask(Repeat::Freely, ask).await?;
        Ok(ServerEvents::new(self.transport.clone(), events))
    }

    /// What a server wrote to its standard error.
    ///
    /// # Errors
    /// When there is none of that name.
    pub async fn logs(&self, server: &str, options: LogOptions) -> Result<LogStream> {
        let ask = |transport: Transport| async move {
            let message = v1::ServersLogsRequest {
                server: server.to_owned(),
                tail: options.tail,
                follow: options.follow,
            };
            transport.servers().logs(request(message, None)).await
        };
        let lines = self.transport.ask(Repeat::Freely, ask).await?;
        Ok(LogStream::new(self.transport.clone(), lines))
    }
}

fn known(server: Option<v1::Server>) -> Result<Server> {
    let server = server.ok_or_else(|| Error::Protocol("an answer without a server".to_owned()))?;
    Server::from_wire(server)
}
