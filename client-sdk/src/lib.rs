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
//! bare name is enough where only one server has it.
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

mod arguments;
mod client;
mod daemon;
mod error;
mod events;
mod json;
mod model;
mod retry;
mod rpc;
mod servers;
mod tools;
mod transport;

pub use arguments::Arguments;
pub use client::{Builder, Nexus};
pub use daemon::Daemon;
pub use error::{Error, Result};
pub use events::{CallStream, LogStream, ServerEvents};
pub use json::RawJson;
pub use model::{
    CallEvent, CommandOutcome, Commanded, Content, DaemonStatus, Instance, LogLine, LogOptions,
    MissingServer, Progress, ReloadReport, Server, ServerEvent, ServerFailure, ServerInfo,
    ServerState, Tool, ToolList, ToolMatch, ToolResult, Wait,
};
pub use nexus_proto::{
    endpoint::EndpointError,
    reason::{Details, Failure, Reason, Violation},
};
pub use servers::Servers;
pub use tools::{ToolCall, Tools};
