//! `nexus.prompts()`.

use crate::{
    PromptList, PromptResult, RawJson, Result,
    rpc::{Repeat, request, within},
    transport::Transport,
};
use nexus_proto::v1;
use serde_json::{Map, Value};
use std::{future::IntoFuture, pin::Pin, time::Duration};

/// Prompts that the servers offer; made by [`Nexus::prompts`](crate::Nexus::prompts).
///
/// A prompt is named as a tool is: `server__prompt`, `server.prompt`, or by its bare name where only
/// one server has it.
#[derive(Debug, Clone, Copy)]
pub struct Prompts<'a> {
    pub(crate) transport: &'a Transport,
}

impl<'a> Prompts<'a> {
    /// The prompts of all servers; a server whose prompts are not known is in
    /// [`PromptList::missing`].
    ///
    /// # Errors
    /// When the daemon does not answer.
    pub async fn list(&self) -> Result<PromptList> {
        self.list_named("").await
    }

    /// The prompts of one server.
    ///
    /// # Errors
    /// When there is no server of that name.
    pub async fn list_of(&self, server: &str) -> Result<PromptList> {
        self.list_named(server).await
    }

    async fn list_named(&self, server: &str) -> Result<PromptList> {
        let ask = |transport: Transport| async move {
            let server = server.to_owned();
            let message = v1::PromptsListRequest { server };
            transport.prompts().list(request(message, None)).await
        };
        let answer = self.transport.ask(Repeat::Freely, ask).await?;
        PromptList::from_wire(answer)
    }

    /// A prompt, filled in: await what this returns.
    ///
    /// ```no_run
    /// # async fn f(nexus: nexus_client::Nexus) -> Result<(), nexus_client::Error> {
    /// let review = nexus.prompts().get("demo.review").arg("code", "1 + 1").await?;
    /// for message in review.messages() {
    ///     println!("{}: {}", message.role, message.text());
    /// }
    /// # Ok(()) }
    /// ```
    pub fn get(&self, name: impl Into<String>) -> PromptGet<'a> {
        PromptGet {
            transport: self.transport,
            name: name.into(),
            arguments: Map::new(),
            time: None,
        }
    }
}

/// A prompt that is about to be filled in; made by [`Prompts::get`].
#[derive(Debug, Clone)]
#[must_use = "a prompt is asked for when this is awaited"]
pub struct PromptGet<'a> {
    transport: &'a Transport,
    name: String,
    arguments: Map<String, Value>,
    time: Option<Duration>,
}

impl PromptGet<'_> {
    /// One of its arguments; they are always text.
    pub fn arg(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.arguments
            .insert(name.into(), Value::String(value.into()));
        self
    }

    /// How long it may take.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.time = Some(time);
        self
    }

    async fn result(self) -> Result<PromptResult> {
        let arguments = match self.arguments.is_empty() {
            true => String::new(),
            false => Value::Object(self.arguments).to_string(),
        };
        let (name, time) = (self.name, self.time);
        let ask = |transport: Transport| {
            let message = v1::PromptsGetRequest {
                name: name.clone(),
                arguments: arguments.clone().into(),
            };
            let message = request(message, time);
            async move { transport.prompts().get(message).await }
        };
        let answer = within(time, self.transport.ask(Repeat::Freely, ask)).await?;
        let raw = RawJson::from_wire(answer.result, "the prompt")?;
        Ok(PromptResult::new(raw))
    }
}

impl<'a> IntoFuture for PromptGet<'a> {
    type Output = Result<PromptResult>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.result())
    }
}
