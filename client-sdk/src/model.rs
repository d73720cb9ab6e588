//! What the daemon tells, as types.

mod agent;
mod approval;
mod change;
mod completion;
mod daemon;
mod log;
mod message;
mod prompt;
mod resource;
mod server;
mod tool;
mod tool_result;

pub use agent::{Agent, AgentCapabilities, ElicitationComplete, ListChange, ListKind, Root};
pub use approval::{Answer, Approval, ApprovalAction, ApprovalEvent};
pub use change::ToolChange;
pub use completion::Completion;
pub use daemon::{DaemonStatus, HttpDoor, ReloadReport};
pub use log::{LogLine, LogMessage, LogOptions};
pub use message::{Message, Role};
pub use nexus_proto::level::{LogLevel, UnknownLogLevel};
pub use prompt::{Prompt, PromptArgument, PromptList, PromptResult};
pub use resource::{
    ReadResult, Resource, ResourceContents, ResourceData, ResourceEvent, ResourceList,
    ResourceTemplate, TemplateList,
};
pub use server::{
    CommandOutcome, Commanded, Instance, RateLimit, Server, ServerEvent, ServerFailure, ServerInfo,
    ServerState, Wait,
};
pub use tool::{MissingServer, Tool, ToolList, ToolMatch};
pub use tool_result::{CallEvent, Content, Progress, ToolResult};
