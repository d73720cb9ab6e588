//! What the daemon tells, as types.

mod daemon;
mod log;
mod server;
mod tool;
mod tool_result;

pub use daemon::{DaemonStatus, ReloadReport};
pub use log::{LogLine, LogOptions};
pub use server::{
    CommandOutcome, Commanded, Instance, Server, ServerEvent, ServerFailure, ServerInfo,
    ServerState, Wait,
};
pub use tool::{MissingServer, Tool, ToolList, ToolMatch};
pub use tool_result::{CallEvent, Content, Progress, ToolResult};
