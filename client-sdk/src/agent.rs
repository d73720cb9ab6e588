//! An agent that can be asked: who it is, and who answers for it.

mod answer;
pub(crate) mod attach;
mod question;
mod questions;

pub use answer::{ElicitationAnswer, Refusal, SamplingAnswer};
pub use question::{ElicitationMode, ElicitationRequest, SamplingRequest};

use crate::{AgentCapabilities, ElicitationComplete, ListChange, Root};
use futures_util::future::BoxFuture;
use std::{fmt, future::Future, sync::Arc};

/// Answers questions of one kind.
type Handler<Q, A> = Arc<dyn Fn(Q) -> BoxFuture<'static, Result<A, Refusal>> + Send + Sync>;

/// Who an agent is, which folders it works in, and what it does when a server asks it something.
///
/// What it says that it can do follows from which handlers it has. Questions are handled side by
/// side, each in a task of its own; one that need not be answered any more is aborted, and one whose
/// handler panics is answered with an error. A handler must not keep a [`Nexus`](crate::Nexus) of this
/// very agent: it would keep itself alive.
///
/// ```no_run
/// # async fn ask_the_user(question: &str) -> Option<String> { None }
/// # async fn f() -> Result<(), nexus_client::Error> {
/// use nexus_client::{AgentInfo, ElicitationAnswer, Nexus, Refusal, Root, SamplingAnswer};
/// use serde_json::json;
///
/// let me = AgentInfo::new("my-agent")
///     .version("1.0")
///     .roots([Root::folder("/home/me/project")])
///     .on_elicitation(|request| async move {
///         Ok(match ask_the_user(&request.message()).await {
///             Some(name) => ElicitationAnswer::accept(json!({"name": name})),
///             None => ElicitationAnswer::decline(),
///         })
///     })
///     .on_sampling(|request| async move {
///         let Some(last) = request.messages().pop() else {
///             return Err(Refusal::new(-32602, "there is nothing to answer"));
///         };
///         Ok(SamplingAnswer::text("parrot-1", last.text()))
///     });
/// let nexus = Nexus::builder().agent(me).connect().await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[must_use = "an agent is known once it is given to a builder"]
pub struct AgentInfo {
    name: String,
    version: String,
    roots: Option<Vec<Root>>,
    sampling: Option<Handler<SamplingRequest, SamplingAnswer>>,
    sampling_tools: bool,
    sampling_context: bool,
    elicitation: Option<Handler<ElicitationRequest, ElicitationAnswer>>,
    elicitation_url: bool,
    list_changed: Option<Arc<dyn Fn(ListChange) + Send + Sync>>,
    elicitation_complete: Option<Arc<dyn Fn(ElicitationComplete) + Send + Sync>>,
}

impl AgentInfo {
    /// An agent of that name, such as `claude-code`, that cannot be asked anything yet.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            version: String::new(),
            roots: None,
            sampling: None,
            sampling_tools: false,
            sampling_context: false,
            elicitation: None,
            elicitation_url: false,
            list_changed: None,
            elicitation_complete: None,
        }
    }

    /// Its version.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// The folders that it works in: servers may ask for them. They can be
    /// [changed](crate::Nexus::set_roots) later; an agent without this keeps them to itself.
    pub fn roots(mut self, roots: impl IntoIterator<Item = Root>) -> Self {
        self.roots = Some(roots.into_iter().collect());
        self
    }

    /// Has a model say something for a server.
    pub fn on_sampling<F, Answer>(mut self, handler: F) -> Self
    where
        F: Fn(SamplingRequest) -> Answer + Send + Sync + 'static,
        Answer: Future<Output = Result<SamplingAnswer, Refusal>> + Send + 'static,
    {
        self.sampling = Some(Arc::new(move |request| Box::pin(handler(request))));
        self
    }

    /// The model can be given tools: [`SamplingRequest::tools`].
    pub fn sampling_tools(mut self) -> Self {
        self.sampling_tools = true;
        self
    }

    /// The model can be given context of servers: [`SamplingRequest::include_context`].
    pub fn sampling_context(mut self) -> Self {
        self.sampling_context = true;
        self
    }

    /// Has somebody fill in a form for a server.
    pub fn on_elicitation<F, Answer>(mut self, handler: F) -> Self
    where
        F: Fn(ElicitationRequest) -> Answer + Send + Sync + 'static,
        Answer: Future<Output = Result<ElicitationAnswer, Refusal>> + Send + 'static,
    {
        self.elicitation = Some(Arc::new(move |request| Box::pin(handler(request))));
        self
    }

    /// The same handler can also send somebody to a page: [`ElicitationRequest::url`].
    pub fn elicitation_url(mut self) -> Self {
        self.elicitation_url = true;
        self
    }

    /// What to do when a server says that what it had sent somebody to a page for is done. It is called
    /// where messages are read: it must not block.
    pub fn on_elicitation_complete(
        mut self,
        handler: impl Fn(ElicitationComplete) + Send + Sync + 'static,
    ) -> Self {
        self.elicitation_complete = Some(Arc::new(handler));
        self
    }

    /// Hears when lists of servers change. It is called between messages, so it should hand the
    /// news over and return. An agent with this reconnects without waiting for the next request.
    pub fn on_list_changed(mut self, handler: impl Fn(ListChange) + Send + Sync + 'static) -> Self {
        self.list_changed = Some(Arc::new(handler));
        self
    }

    /// What it can be asked.
    pub fn capabilities(&self) -> AgentCapabilities {
        let (sampling, elicitation) = (self.sampling.is_some(), self.elicitation.is_some());
        AgentCapabilities {
            sampling,
            sampling_tools: sampling && self.sampling_tools,
            sampling_context: sampling && self.sampling_context,
            elicitation_form: elicitation,
            elicitation_url: elicitation && self.elicitation_url,
            roots: self.roots.is_some(),
        }
    }

    /// Its folders at the start.
    pub(crate) fn first_roots(&self) -> Vec<Root> {
        self.roots.clone().unwrap_or_default()
    }
}

impl fmt::Debug for AgentInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentInfo")
            .field("name", &self.name)
            .field("version", &self.version)
            .field("capabilities", &self.capabilities())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_agent_can_do_follows_from_its_handlers() {
        let bare = AgentInfo::new("x").sampling_tools().elicitation_url();
        assert_eq!(bare.capabilities(), AgentCapabilities::default());
        let able = bare
            .roots([])
            .on_elicitation(|_| async { Ok(ElicitationAnswer::cancel()) });
        let can = able.capabilities();
        assert!(can.elicitation_form && can.elicitation_url && can.roots);
        assert!(!can.sampling && !can.sampling_tools);
        let able = able.on_sampling(|_| async { Err(Refusal::rejected("no")) });
        assert!(able.capabilities().sampling && able.capabilities().sampling_tools);
    }
}
