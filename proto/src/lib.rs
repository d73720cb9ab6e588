//! The contract of Nexus: what daemon and clients must agree on, and nothing else.
//!
//! - [`v1`] is the gRPC API, generated from the protos beside this crate; their comments are its
//!   reference.
//! - [`name`] says how servers and tools are called, [`level`] how urgent a log message is, [`reason`] how errors
//!   travel, [`text`] what is kept of the text of strangers, [`time`] how a moment is written, [`endpoint`] where the daemon
//!   listens and how it is reached, and [`linger`] how both wait for the next message.

pub mod endpoint;
pub mod level;
pub mod linger;
pub mod name;
pub mod reason;
pub mod text;
pub mod time;

/// The gRPC API, package `nexus.v1`.
#[allow(missing_docs, clippy::unwrap_used, unreachable_pub)]
pub mod v1 {
    tonic::include_proto!("nexus.v1");

    /// The compiled protos, for reflection.
    pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/nexus.v1.bin"));
}
