//! Everything that can go wrong, in one enum.

use nexus_proto::{
    endpoint::EndpointError,
    reason::{Failure, Reason},
};
use std::{io, path::PathBuf, time::Duration};

/// What the methods of this crate return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something did not work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no connection to the daemon, and nothing was sent.
    #[error("{} {}", if not_running(source) { "no daemon is running at" } else { "cannot reach the daemon at" }, endpoint.display())]
    Unreachable {
        /// Where it was looked for.
        endpoint: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Nothing tells where the daemon is to be looked for.
    #[error("cannot tell where the daemon listens")]
    Endpoint(#[from] EndpointError),
    /// The connection was lost before the answer came.
    #[error("the connection to the daemon was lost before it answered")]
    Disconnected {
        /// The daemon may have carried the request out.
        maybe_executed: bool,
    },
    /// The daemon, or the server behind it, said no.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// The answer did not come in the time that the caller gave.
    #[error("no answer within {after:?}")]
    Timeout {
        /// The time that was given.
        after: Duration,
        /// The request may have been carried out.
        maybe_executed: bool,
    },
    /// The arguments cannot be written as JSON.
    #[error("cannot write the arguments as JSON")]
    InvalidArguments(#[source] serde_json::Error),
    /// The JSON does not have the shape that was asked for.
    #[error("cannot read the JSON as the type that was asked for")]
    InvalidJson(#[source] serde_json::Error),
    /// Whatever answered does not speak as the daemon does.
    #[error("the daemon's answer makes no sense: {0}")]
    Protocol(String),
}

impl Error {
    /// The daemon's reason, where it gave one.
    pub fn reason(&self) -> Option<Reason> {
        self.failure().map(|failure| failure.reason)
    }

    /// What the daemon told, with its details.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Failed(failure) => Some(failure),
            _ => None,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Failed(failure) => failure.details.hint.as_deref(),
            Self::Unreachable { source, .. } if not_running(source) => Some(HOW_TO_START),
            _ => None,
        }
    }

    /// Whether the request may have been carried out although there is no result. A tool call for
    /// which this is false was not executed, and can be tried again.
    pub fn maybe_executed(&self) -> bool {
        match self {
            Self::Disconnected { maybe_executed } | Self::Timeout { maybe_executed, .. } => {
                *maybe_executed
            }
            Self::Failed(failure) => failure.details.maybe_executed,
            // There was an answer, so there was an execution.
            Self::InvalidJson(_) | Self::Protocol(_) => true,
            Self::Unreachable { .. } | Self::Endpoint(_) | Self::InvalidArguments(_) => false,
        }
    }

    /// Whether time ran out: the caller's own, or the one that the daemon grants.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Timeout { .. }) || self.reason() == Some(Reason::Deadline)
    }
}

#[cfg(target_os = "linux")]
const HOW_TO_START: &str = "start it with `nexusd`";
#[cfg(not(target_os = "linux"))]
const HOW_TO_START: &str = "start it with `nexusd`";

/// Nobody is there, as opposed to somebody who cannot be reached.
fn not_running(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unreachable(kind: io::ErrorKind) -> Error {
        Error::Unreachable {
            endpoint: "/run/x.sock".into(),
            source: kind.into(),
        }
    }

    #[test]
    fn an_absent_daemon_is_told_from_one_that_refuses() {
        let absent = unreachable(io::ErrorKind::NotFound);
        assert_eq!(absent.to_string(), "no daemon is running at /run/x.sock");
        assert!(absent.hint().is_some_and(|hint| hint.contains("nexusd")));
        let refused = unreachable(io::ErrorKind::PermissionDenied);
        assert_eq!(
            refused.to_string(),
            "cannot reach the daemon at /run/x.sock"
        );
        assert_eq!(refused.hint(), None);
    }

    #[test]
    fn the_cause_is_a_source_and_never_in_the_message() {
        use std::error::Error as _;
        let error = unreachable(io::ErrorKind::NotFound);
        let source = error.source().map(ToString::to_string).unwrap();
        assert!(!error.to_string().contains(&source));
    }

    #[test]
    fn only_what_surely_did_not_run_may_be_repeated() {
        assert!(!unreachable(io::ErrorKind::NotFound).maybe_executed());
        assert!(Error::Protocol("?".into()).maybe_executed());
        let exited = |maybe| {
            Error::from(Failure::new(Reason::ServerExited, "x").with(|d| d.maybe_executed = maybe))
        };
        assert!(exited(true).maybe_executed());
        assert!(!exited(false).maybe_executed());
    }
}
