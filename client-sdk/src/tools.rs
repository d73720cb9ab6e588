//! `nexus.tools()`.

use crate::{
    Arguments, CallStream, Error, Failure, LogLevel, RawJson, Reason, Result, Tool, ToolList,
    ToolMatch, ToolResult,
    rpc::{MAX_MESSAGE, Repeat, request, within},
    transport::Transport,
};
use bytes::Bytes;
use nexus_proto::v1;
use std::{future::IntoFuture, pin::Pin, time::Duration};

/// The tools of all servers; made by [`Nexus::tools`](crate::Nexus::tools).
#[derive(Debug, Clone, Copy)]
pub struct Tools<'a> {
    pub(crate) transport: &'a Transport,
}

impl<'a> Tools<'a> {
    /// The tools of all servers. A server that is starting is waited for; one whose tools are not
    /// known is in [`ToolList::missing`].
    ///
    /// # Errors
    /// When the daemon does not answer.
    pub async fn list(&self) -> Result<ToolList> {
        self.list_named("").await
    }

    /// The tools of one server.
    ///
    /// # Errors
    /// When there is no server of that name.
    pub async fn list_of(&self, server: &str) -> Result<ToolList> {
        self.list_named(server).await
    }

    async fn list_named(&self, server: &str) -> Result<ToolList> {
        let ask = |transport: Transport| async move {
            let server = server.to_owned();
            let message = v1::ToolsListRequest { server };
            transport.tools().list(request(message, None)).await
        };
        let answer = self.transport.ask(Repeat::Freely, ask).await?;
        ToolList::from_wire(answer)
    }

    /// One tool.
    ///
    /// # Errors
    /// [`Reason::ToolNotFound`], with the nearest name there is.
    pub async fn get(&self, name: &str) -> Result<Tool> {
        let ask = |transport: Transport| async move {
            let name = name.to_owned();
            let message = v1::ToolsGetRequest { name };
            transport.tools().get(request(message, None)).await
        };
        let answer = self.transport.ask(Repeat::Freely, ask).await?;
        Tool::from_wire(answer.tool.unwrap_or_default())
    }

    /// The tools that fit some words, the best first; at most `limit` of them, 10 when it is 0. There are never more
    /// than 100.
    ///
    /// # Errors
    /// When the daemon does not answer, or the query is longer than 1,024 bytes.
    pub async fn search(&self, query: &str, limit: u32) -> Result<Vec<ToolMatch>> {
        let ask = |transport: Transport| async move {
            let query = query.to_owned();
            let message = v1::ToolsSearchRequest { query, limit };
            transport.tools().search(request(message, None)).await
        };
        let answer = self.transport.ask(Repeat::Freely, ask).await?;
        let matches = answer.matches.into_iter();
        matches.map(ToolMatch::from_wire).collect()
    }

    /// Calls a tool: await what this returns, or [stream](ToolCall::stream) it.
    ///
    /// ```no_run
    /// # async fn f(nexus: nexus_client::Nexus) -> Result<(), nexus_client::Error> {
    /// use serde_json::json;
    /// use std::time::Duration;
    ///
    /// let sum = nexus
    ///     .tools()
    ///     .call("demo.add", json!({"a": 2, "b": 3}))
    ///     .timeout(Duration::from_secs(10))
    ///     .await?;
    /// assert_eq!(sum.text(), "5");
    /// # Ok(()) }
    /// ```
    pub fn call(&self, name: impl Into<String>, arguments: impl Into<Arguments>) -> ToolCall<'a> {
        ToolCall {
            transport: self.transport,
            name: name.into(),
            arguments: arguments.into().into_bytes(),
            time: None,
            log_level: None,
        }
    }

    /// Calls a tool and tells of its progress before the result.
    ///
    /// # Errors
    /// When the call cannot be made; what goes wrong later is in the stream.
    pub async fn call_stream(
        &self,
        name: impl Into<String>,
        arguments: impl Into<Arguments>,
    ) -> Result<CallStream> {
        self.call(name, arguments).stream().await
    }
}

/// A call that is about to be made; made by [`Tools::call`].
///
/// It is made when this is awaited. A tool that ran and failed is an answer like any other: see
/// [`ToolResult::is_error`].
#[derive(Debug, Clone)]
#[must_use = "a call is made when it is awaited"]
pub struct ToolCall<'a> {
    transport: &'a Transport,
    name: String,
    arguments: Bytes,
    time: Option<Duration>,
    log_level: Option<LogLevel>,
}

impl ToolCall<'_> {
    /// How long the call may take. When time is up it is cancelled on the server.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.time = Some(time);
        self
    }

    /// What its server logs meanwhile, from this level up, is in the [stream](ToolCall::stream);
    /// nothing unless told. Only what surely belongs to this call.
    ///
    /// ```no_run
    /// # async fn f(nexus: nexus_client::Nexus) -> Result<(), nexus_client::Error> {
    /// use nexus_client::{CallEvent, LogLevel};
    ///
    /// let call = nexus.tools().call("demo.slow_operation", ());
    /// let mut events = call.log_level(LogLevel::Info).stream().await?;
    /// while let Some(event) = events.next().await {
    ///     if let CallEvent::Log(message) = event? {
    ///         println!("{}: {}", message.level, message.text());
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    pub fn log_level(mut self, level: LogLevel) -> Self {
        self.log_level = Some(level);
        self
    }

    /// Makes the call, and tells of its progress before the result.
    ///
    /// # Errors
    /// When the call cannot be made; what goes wrong later is in the stream.
    pub async fn stream(self) -> Result<CallStream> {
        self.check()?;
        let ask = |transport: Transport| {
            let message = v1::ToolsCallStreamRequest {
                name: self.name.clone(),
                arguments: self.arguments.clone(),
                log_level: self
                    .log_level
                    .map(LogLevel::as_str)
                    .unwrap_or_default()
                    .into(),
            };
            let message = request(message, self.time);
            async move { transport.tools().call_stream(message).await }
        };
        let made = self.transport.ask(Repeat::Never, ask);
        let events = within(self.time, made).await?;
        Ok(CallStream::new(self.transport.clone(), events, self.time))
    }

    async fn result(self) -> Result<ToolResult> {
        self.check()?;
        let ask = |transport: Transport| {
            let message = v1::ToolsCallRequest {
                name: self.name.clone(),
                arguments: self.arguments.clone(),
            };
            let message = request(message, self.time);
            async move { transport.tools().call(message).await }
        };
        let made = self.transport.ask(Repeat::Never, ask);
        let answer = within(self.time, made).await?;
        let raw = RawJson::from_wire(answer.result, "the result")?;
        Ok(ToolResult::new(raw))
    }

    /// What is too large would break off under way, and nobody would know how far it came.
    fn check(&self) -> Result<(), Error> {
        let size = self.name.len() + self.arguments.len();
        if size < MAX_MESSAGE - 1024 {
            return Ok(());
        }
        let message = format!("the arguments are too large: {size} bytes");
        Err(Failure::new(Reason::TooLarge, message).into())
    }
}

impl<'a> IntoFuture for ToolCall<'a> {
    type Output = Result<ToolResult>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.result())
    }
}
