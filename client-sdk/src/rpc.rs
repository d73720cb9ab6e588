//! One request to the daemon: what it may be repeated for, and what its failure means.

use crate::{
    Error, Result,
    transport::{Transport, TransportError},
};
use http::Uri;
use nexus_proto::{
    reason::{Failure, Reason},
    v1::{
        agents_client::AgentsClient, completions_client::CompletionsClient,
        daemon_client::DaemonClient, policy_client::PolicyClient, prompts_client::PromptsClient,
        resources_client::ResourcesClient, servers_client::ServersClient,
        tools_client::ToolsClient,
    },
};
use std::{error::Error as _, future::Future, time::Duration};
use tonic::{Code, Request, Response, Status};

/// The daemon takes 16 MiB; what stands around a payload comes on top.
pub(crate) const MAX_MESSAGE: usize = 20 << 20;

/// The daemon has this long to say itself that time is up: it knows more than we do.
pub(crate) const GRACE: Duration = Duration::from_millis(250);

/// Every request needs an authority; the socket is the only one there is.
pub(crate) fn origin() -> Uri {
    Uri::from_static("http://nexus.local")
}

/// Whether a request may be carried out twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It only reads.
    Freely,
    /// It does something: only if it surely was not carried out.
    Never,
}

macro_rules! clients {
    ($($name:ident => $client:ident,)*) => {$(
        pub(crate) fn $name(&self) -> $client<Transport> {
            $client::with_origin(self.clone(), origin())
                .max_decoding_message_size(MAX_MESSAGE)
                .max_encoding_message_size(MAX_MESSAGE)
        }
    )*};
}

impl Transport {
    clients! {
        servers => ServersClient,
        tools => ToolsClient,
        resources => ResourcesClient,
        prompts => PromptsClient,
        completions => CompletionsClient,
        agents => AgentsClient,
        policy => PolicyClient,
        daemon => DaemonClient,
    }

    /// Asks, and asks again where that cannot do harm.
    pub(crate) async fn ask<T, F>(
        &self,
        repeat: Repeat,
        attempt: impl Fn(Transport) -> F,
    ) -> Result<T>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let mut retry = None;
        let mut lost_before = false;
        loop {
            let status = match attempt(self.clone()).await {
                Ok(response) => return Ok(response.into_inner()),
                Err(status) => status,
            };
            let error = self.error(status);
            let again = match &error {
                Error::Disconnected { .. } => {
                    repeat == Repeat::Freely && !std::mem::replace(&mut lost_before, true)
                }
                // A daemon that is on its way out has refused; the next one may be up soon.
                Error::Failed(failure) => {
                    failure.reason == Reason::ShuttingDown
                        && !failure.details.maybe_executed
                        && retry.get_or_insert_with(|| self.budget()).pause().await
                }
                _ => false,
            };
            if !again {
                return Err(error);
            }
        }
    }

    /// Why there is no connection.
    pub(crate) fn unreachable(&self, source: std::io::Error) -> Error {
        match refusal(&source) {
            Some(failure) => failure.clone().into(),
            None => Error::Unreachable {
                endpoint: self.settings().endpoint.path().to_owned(),
                source,
            },
        }
    }

    /// What a status means: what the daemon told, or what became of the connection.
    pub(crate) fn error(&self, status: Status) -> Error {
        if let Some(failure) = Failure::from_status(&status) {
            return failure.into();
        }
        let lost = Error::Disconnected {
            maybe_executed: true,
        };
        let Some(source) = status.source() else {
            return foreign(&status);
        };
        if let Some(error) = source.downcast_ref::<TransportError>() {
            return match error {
                TransportError::Lost(_) => lost,
                TransportError::Unreachable(error) => self.unreachable(copy(error)),
            };
        }
        // Only what broke under way has one of these: a daemon's own status has no source.
        if source.is::<hyper::Error>() {
            return lost;
        }
        foreign(&status)
    }
}

/// A status that is not one of ours: from the gRPC library, on either side. Nobody knows how far
/// the request had come.
fn foreign(status: &Status) -> Error {
    let message = status.message();
    let failed = |reason| {
        let failure = Failure::new(reason, message);
        Error::from(failure.with(|details| details.maybe_executed = true))
    };
    match status.code() {
        Code::OutOfRange => failed(Reason::TooLarge),
        Code::DeadlineExceeded | Code::Cancelled => failed(Reason::Deadline),
        code => Error::Protocol(format!("{message} ({code:?})")),
    }
}

fn copy(error: &std::io::Error) -> std::io::Error {
    match (error.raw_os_error(), refusal(error)) {
        (Some(code), _) => std::io::Error::from_raw_os_error(code),
        (None, Some(failure)) => std::io::Error::other(failure.clone()),
        (None, None) => std::io::Error::new(error.kind(), error.to_string()),
    }
}

/// What a daemon told who was reached, but does not take this agent in.
fn refusal(error: &std::io::Error) -> Option<&Failure> {
    error.get_ref()?.downcast_ref()
}

/// A request, with the time that it has.
pub(crate) fn request<T>(message: T, time: Option<Duration>) -> Request<T> {
    let mut request = Request::new(message);
    if let Some(time) = time {
        // tonic panics at what does not fit into the header; the daemon waits no longer than a day.
        request.set_timeout(time.min(Duration::from_secs(24 * 3600)));
    }
    request
}

/// Ends `work` when its time is up and the daemon has not said so.
pub(crate) async fn within<T>(
    time: Option<Duration>,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    let Some(after) = time else {
        return work.await;
    };
    tokio::time::timeout(after.saturating_add(GRACE), work)
        .await
        .unwrap_or(Err(Error::Timeout {
            after,
            maybe_executed: true,
        }))
}
