//! Why a request has no result. Pure.

use crate::mcp::{MAX_MESSAGE, envelope::RpcError};
use bytes::Bytes;
use nexus_proto::reason::{Failure, Reason};
use std::sync::Arc;

/// What came of a request.
pub type Reply = Result<Bytes, CallError>;

/// Why a request has no result.
#[derive(Debug, Clone)]
pub enum CallError {
    /// The server answered with an error.
    Rpc(RpcError),
    /// The connection ended before the request was written: it was not carried out.
    NotSent(Arc<Failure>),
    /// The connection ended after the request was written: nobody knows what became of it.
    Lost(Arc<Failure>),
    /// The answer broke off, or never came, though the connection lives: nobody knows what became of it.
    Dropped(String),
    /// What carries the messages refused it: an HTTP status that is an error.
    Refused(Arc<Failure>),
    /// Too much is waiting to be written.
    Overloaded,
    /// The answer was longer than is allowed.
    TooLarge(u64),
    /// The answer is not MCP.
    Malformed(String),
}

impl CallError {
    /// What whoever asked is told. `what` was asked, in words for people.
    pub fn into_failure(self, what: &str) -> Failure {
        let maybe = |failure: Failure| failure.with(|details| details.maybe_executed = true);
        match self {
            Self::Rpc(error) => Failure::new(Reason::ServerError, error.message).with(|details| {
                details.rpc_code = Some(error.code);
                if !error.data.is_empty() {
                    details.rpc_data = Some(String::from_utf8_lossy(&error.data).into_owned());
                }
            }),
            Self::NotSent(cause) => (*cause).clone(),
            Self::Lost(cause) => maybe(Failure {
                reason: cause.reason,
                message: format!("{what} was lost: {}", cause.message),
                details: cause.details.clone(),
            }),
            Self::Dropped(why) => {
                let message = format!("{what} was lost: {why}");
                maybe(Failure::new(Reason::HttpError, message))
            }
            Self::Refused(cause) => Failure {
                message: format!("{what}: {}", cause.message),
                ..(*cause).clone()
            },
            Self::Overloaded => {
                let message =
                    format!("{what} cannot be sent: too much waits to be read by the server");
                Failure::new(Reason::Overloaded, message)
            }
            Self::TooLarge(length) => {
                let limit = MAX_MESSAGE;
                let message = format!(
                    "the answer to {what} is too large: {length} bytes, the limit is {limit}"
                );
                maybe(Failure::new(Reason::TooLarge, message))
            }
            Self::Malformed(wrong) => {
                let message = format!("the answer to {what} is {wrong}");
                maybe(Failure::new(Reason::ProtocolError, message))
            }
        }
    }
}
