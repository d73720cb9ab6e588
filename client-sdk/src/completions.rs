//! `nexus.completions()`.

use crate::{
    Completion, RawJson, Result,
    rpc::{Repeat, request},
    transport::Transport,
};
use nexus_proto::v1::{self, completions_complete_request::Reference};
use std::{future::IntoFuture, pin::Pin};

/// Help with filling in prompts and resource templates; made by
/// [`Nexus::completions`](crate::Nexus::completions).
#[derive(Debug, Clone, Copy)]
pub struct Completions<'a> {
    pub(crate) transport: &'a Transport,
}

impl<'a> Completions<'a> {
    /// What an argument of a prompt might be, from what has been typed of it: await what this
    /// returns.
    ///
    /// ```no_run
    /// # async fn f(nexus: nexus_client::Nexus) -> Result<(), nexus_client::Error> {
    /// let languages = nexus
    ///     .completions()
    ///     .complete_prompt("demo.review", "language", "py")
    ///     .context("style", "strict")
    ///     .await?;
    /// println!("{}", languages.values.join(", "));
    /// # Ok(()) }
    /// ```
    pub fn complete_prompt(
        &self,
        name: impl Into<String>,
        argument: impl Into<String>,
        value: impl Into<String>,
    ) -> Complete<'a> {
        self.complete(Reference::Prompt(name.into()), argument, value)
    }

    /// What a variable of a resource template might be. The name of the server may be empty where
    /// only one server lists the template.
    pub fn complete_template(
        &self,
        server: impl Into<String>,
        template: impl Into<String>,
        variable: impl Into<String>,
        value: impl Into<String>,
    ) -> Complete<'a> {
        let reference = Reference::Template(v1::TemplateReference {
            server: server.into(),
            uri_template: template.into(),
        });
        self.complete(reference, variable, value)
    }

    fn complete(
        &self,
        reference: Reference,
        argument: impl Into<String>,
        value: impl Into<String>,
    ) -> Complete<'a> {
        Complete {
            transport: self.transport,
            message: v1::CompletionsCompleteRequest {
                reference: Some(reference),
                argument: argument.into(),
                value: value.into(),
                ..v1::CompletionsCompleteRequest::default()
            },
        }
    }
}

/// Suggestions that are about to be asked for; made by [`Completions`].
#[derive(Debug, Clone)]
#[must_use = "suggestions are asked for when this is awaited"]
pub struct Complete<'a> {
    transport: &'a Transport,
    message: v1::CompletionsCompleteRequest,
}

impl Complete<'_> {
    /// An argument that is settled already: what is suggested may depend on it.
    pub fn context(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.message.context.insert(name.into(), value.into());
        self
    }

    async fn result(self) -> Result<Completion> {
        let ask = |transport: Transport| {
            let message = request(self.message.clone(), None);
            async move { transport.completions().complete(message).await }
        };
        let answer = self.transport.ask(Repeat::Freely, ask).await?;
        let raw = RawJson::from_wire(answer.result, "the completion")?;
        Ok(Completion::new(raw))
    }
}

impl<'a> IntoFuture for Complete<'a> {
    type Output = Result<Completion>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.result())
    }
}
