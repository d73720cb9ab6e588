//! MCP: frames in JSON-RPC, the table of ids, the revisions, and the handshake with a server.
//!
//! The daemon reads the envelope of a message and carries the rest as it is: payloads are slices
//! of the line they came in, never parsed into a model and written again.

pub mod changes;
pub mod connection;
pub mod envelope;
pub mod handshake;
pub mod lists;
pub mod offers;
pub mod outgoing;
pub mod revision;
pub mod rounds;
pub mod salvage;
pub mod subscriptions;

/// The longest message that is taken from a server, or sent to one.
pub const MAX_MESSAGE: usize = 16 * 1024 * 1024;
