//! Every MCP server of the machine, through one connection to `nexusd`.
//!
//! The daemon starts the servers, watches them and heals them; a program that uses this crate
//! sees their tools under one set of names and calls them, without starting anything itself.
//!
//! ```no_run
//! use nexus_client::Nexus;
//! use serde_json::json;
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), nexus_client::Error> {
//!     let nexus = Nexus::connect().await?;
//!
//!     for tool in nexus.tools().list().await?.tools {
//!         println!("{}: {}", tool.name, tool.description().unwrap_or_default());
//!     }
//!
//!     let sum = nexus.tools().call("demo.add", json!({"a": 2, "b": 3})).await?;
//!     println!("{}", sum.text());
//!     Ok(())
//! }
//! ```
//!
//! # Names
//!
//! A tool is called `server__tool` (what LLM APIs accept), `server.tool` or `mcp:server.tool`; its
//! bare name is enough where only one server has it. So is a prompt. A resource is addressed by its
//! server and its URI, or by its URI alone where only one server lists it.
//!
//! # More than tools
//!
//! [`Nexus::resources`] reads what servers hold and tells when it changes, [`Nexus::prompts`] fills in
//! their prompts, [`Nexus::completions`] helps with that, and [`Nexus::agents`] tells who else is
//! connected.
//!
//! ```no_run
//! # async fn f(nexus: nexus_client::Nexus) -> Result<(), nexus_client::Error> {
//! let notes = nexus.resources().read_from("demo", "file:///notes.txt").await?;
//! let review = nexus.prompts().get("demo.review").arg("code", notes.text()).await?;
//! println!("{}", review.text());
//! # Ok(()) }
//! ```
//!
//! # Being asked
//!
//! While a server works on a call it may put questions to whoever made it: to have a model say
//! something (sampling), to have the user fill in a form or go to a page (elicitation), and which
//! folders it works in (roots). [`Builder::agent`] says who you are and who answers:
//!
//! ```no_run
//! # async fn f() -> Result<(), nexus_client::Error> {
//! use nexus_client::{AgentInfo, ElicitationAnswer, Nexus, Root};
//!
//! let me = AgentInfo::new("my-agent")
//!     .version("1.0")
//!     .roots([Root::folder("/home/me/project")])
//!     .on_elicitation(|request| async move {
//!         println!("{} asks: {}", request.server, request.message());
//!         Ok(ElicitationAnswer::decline())
//!     });
//! let nexus = Nexus::builder().agent(me).connect().await?;
//! # Ok(()) }
//! ```
//!
//! An agent is a connection: the daemon knows it before its first call, on the first connection and
//! on each that follows it, and forgets it when the last [`Nexus`] is dropped. A question reaches the
//! agent whose call caused it and nobody else. One that need not be answered any more, because its
//! call has ended, aborts its handler. A daemon too old to know of agents can be called all the same.
//!
//! # JSON stays as it is
//!
//! Arguments, results and definitions travel as the bytes that were written: no field is dropped,
//! no number is rounded. [`RawJson`] holds them; [`RawJson::parse`] reads them as any type.
//!
//! # When something fails
//!
//! Every method ends in an [`Error`]. What the daemon told is [`Error::Failed`], with a stable
//! [`Reason`] to decide by and [`Details`] such as the exit of a server and its last words. A tool
//! that ran and failed is not an error of the call: see [`ToolResult::is_error`].
//!
//! A [`Nexus`] reconnects by itself when the daemon was restarted. What was never sent is sent
//! again, and so is what only reads. A tool call that may have reached its server is never
//! repeated: it ends in an error whose [`Error::maybe_executed`] is true, and only the caller can
//! know whether to try again.
//!
//! # Cancelling
//!
//! Dropping the future of a call, or its [`CallStream`], cancels the call on the server.

mod agent;
mod agents;
mod approvals;
mod arguments;
mod client;
mod completions;
mod daemon;
mod error;
mod events;
mod json;
mod model;
mod policy;
mod prompts;
mod resources;
mod retry;
mod rpc;
mod servers;
mod tools;
mod transport;

pub use agent::{
    AgentInfo, ElicitationAnswer, ElicitationMode, ElicitationRequest, Refusal, SamplingAnswer,
    SamplingRequest,
};
pub use agents::Agents;
pub use approvals::Approvals;
pub use arguments::Arguments;
pub use client::{Builder, Nexus};
pub use completions::{Complete, Completions};
pub use daemon::Daemon;
pub use error::{Error, Result};
pub use events::{ApprovalEvents, CallStream, LogStream, ResourceEvents, ServerEvents};
pub use json::RawJson;
pub use model::{
    Agent, AgentCapabilities, Answer, Approval, ApprovalAction, ApprovalEvent, CallEvent,
    CommandOutcome, Commanded, Completion, Content, DaemonStatus, ElicitationComplete, HttpDoor,
    Instance, ListChange, ListKind, LogLevel, LogLine, LogMessage, LogOptions, Message,
    MissingServer, Progress, Prompt, PromptArgument, PromptList, PromptResult, RateLimit,
    ReadResult, ReloadReport, Resource, ResourceContents, ResourceData, ResourceEvent,
    ResourceList, ResourceTemplate, Role, Root, Server, ServerEvent, ServerFailure, ServerInfo,
    ServerState, TemplateList, Tool, ToolChange, ToolList, ToolMatch, ToolResult, UnknownLogLevel,
    Wait,
};
pub use nexus_proto::{
    endpoint::{EndpointError, Stream as RawStream},
    reason::{Details, Failure, Reason, Violation},
    text,
};
pub use policy::Policy;
pub use prompts::{PromptGet, Prompts};
pub use resources::Resources;
pub use servers::Servers;
pub use tools::{ToolCall, Tools};
