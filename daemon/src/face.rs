//! The doors of the daemon: one endpoint, several protocols told apart by their first bytes.

pub mod door;
pub mod http;
mod lines;
pub mod mcp;
mod random;
pub mod rewind;
pub mod sniff;
