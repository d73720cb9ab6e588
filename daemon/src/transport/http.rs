//! Servers that are reached over HTTP: every message to them is a POST, and what they say comes back in the
//! responses, or over a stream that is opened for it.
//!
//! One driver carries the messages of one connection. It takes them from its outbox, as the writer of a process
//! does, and ends with a reason, as a process does.

pub mod address;
pub mod breaker;
mod client;
mod connector;
mod driver;
pub mod events;
mod exchange;
pub mod headers;
mod site;
pub mod spec;
mod streams;
mod tls;

pub use driver::run;

use super::{lines::Line, outbox::Outbox};
use address::{Addresses, System};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use nexus_proto::reason::Failure;
use parking_lot::Mutex;
use tokio::time::Instant;

/// What outlives a connection to a server: how long it wants to be left alone, and where it was.
#[derive(Debug)]
pub struct Memory {
    quiet_until: Mutex<Option<Instant>>,
    addresses: Addresses,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            quiet_until: Mutex::default(),
            addresses: Addresses::new(Box::new(System)),
        }
    }
}

/// Whose messages are carried.
pub trait Peer: Send + Sync {
    /// Where the messages are that are to be carried.
    fn outbox(&self) -> &Outbox;

    /// Takes a message from the server.
    fn receive(&self, message: Line);

    /// Whether a request waits for its answer.
    fn waits_for(&self, id: u64) -> bool;

    /// There will be no answer to a request, for this reason. One that has been answered is left alone.
    fn settle(&self, id: u64, trouble: Trouble);

    /// The revision that was agreed on, in the words of the header.
    fn revision(&self) -> Option<&'static str>;

    /// Begins a new session in the place of one that the server has ended. Its messages go the usual way.
    fn renew(&self) -> BoxFuture<'static, Result<(), String>>;
}

/// Why a request has no answer.
#[derive(Debug)]
pub enum Trouble {
    /// The server refused it with a status and this body, which may be an error of the protocol; else it is
    /// this failure.
    Status(Bytes, Failure),
    /// It was not carried out, or not well.
    Refused(Failure),
    /// The answer broke off, or never came.
    Dropped(String),
    /// The answer is too large.
    TooLarge(u64),
    /// The answer is not MCP.
    NotMcp(String),
}
