//! Streams of what happens.

use crate::{
    ApprovalEvent, CallEvent, Error, LogLine, ResourceEvent, Result, ServerEvent, ToolResult,
    rpc::GRACE, transport::Transport,
};
use futures_util::{Stream, StreamExt};
use nexus_proto::v1;
use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::Sleep;
use tonic::Streaming;

/// A stream of the daemon's messages, each read as a type of ours.
macro_rules! stream {
    ($(#[$doc:meta])* $name:ident: $wire:ty => $item:ty, $read:expr) => {
        $(#[$doc])*
        ///
        /// It is a [`Stream`], and ends with the first error. Dropping it ends it on the daemon.
        #[must_use = "a stream does nothing unless it is read"]
        pub struct $name {
            transport: Transport,
            messages: Streaming<$wire>,
        }

        impl $name {
            pub(crate) fn new(transport: Transport, messages: Streaming<$wire>) -> Self {
                Self { transport, messages }
            }

            /// The next one; `None` at the end.
            pub async fn next(&mut self) -> Option<Result<$item>> {
                StreamExt::next(self).await
            }
        }

        impl Stream for $name {
            type Item = Result<$item>;

            fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
                loop {
                    let read = match ready!(self.messages.poll_next_unpin(cx)) {
                        Some(Ok(message)) => $read(message).transpose(),
                        Some(Err(status)) => Some(Err(self.transport.error(status))),
                        None => return Poll::Ready(None),
                    };
                    // What this version of the client does not know is passed over.
                    if read.is_some() {
                        return Poll::Ready(read);
                    }
                }
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    };
}

stream! {
    /// The state of servers now, and then each change; made by
    /// [`Servers::watch`](crate::Servers::watch).
    ///
    /// A reader that is too slow misses intermediate states, never the last one. When the
    /// connection is lost, watch again: that begins with all states.
    ServerEvents: v1::ServersWatchResponse => ServerEvent,
    |event| ServerEvent::from_wire(event).map(Some)
}

stream! {
    /// The questions that wait for an answer, and then each change; made by
    /// [`Approvals::watch`](crate::Approvals::watch).
    ///
    /// A reader that is too slow is told all questions anew. When the connection is lost, watch again.
    ApprovalEvents: v1::PolicyWatchResponse => ApprovalEvent,
    |event| Result::Ok(ApprovalEvent::from_wire(event))
}

stream! {
    /// Lines of a server's standard error; made by [`Servers::logs`](crate::Servers::logs).
    LogStream: v1::ServersLogsResponse => LogLine,
    |line: v1::ServersLogsResponse| Result::Ok(Some(line.into()))
}

stream! {
    /// Changes of a resource; made by [`Resources::subscribe`](crate::Resources::subscribe).
    ///
    /// It outlives a restart of the server. When the connection is lost, subscribe again.
    ResourceEvents: v1::ResourcesSubscribeResponse => ResourceEvent,
    |event| Result::Ok(ResourceEvent::from_wire(event))
}

/// A call under way; made by [`Tools::call_stream`](crate::Tools::call_stream).
///
/// It is a [`Stream`] of [`CallEvent`]s; the result is the last. Dropping it cancels the call.
#[must_use = "dropping the stream cancels the call"]
pub struct CallStream {
    transport: Transport,
    messages: Streaming<v1::ToolsCallStreamResponse>,
    time: Option<(Duration, Pin<Box<Sleep>>)>,
    done: bool,
}

impl CallStream {
    pub(crate) fn new(
        transport: Transport,
        messages: Streaming<v1::ToolsCallStreamResponse>,
        time: Option<Duration>,
    ) -> Self {
        let sleep = |time: Duration| Box::pin(tokio::time::sleep(time.saturating_add(GRACE)));
        Self {
            transport,
            messages,
            time: time.map(|time| (time, sleep(time))),
            done: false,
        }
    }

    /// The next event; `None` after the result.
    pub async fn next(&mut self) -> Option<Result<CallEvent>> {
        StreamExt::next(self).await
    }

    /// Waits for the result, and lets all else pass.
    ///
    /// # Errors
    /// As the call itself.
    pub async fn result(mut self) -> Result<ToolResult> {
        loop {
            match self.next().await {
                Some(Ok(CallEvent::Result(result))) => return Ok(result),
                Some(Ok(CallEvent::Progress(_) | CallEvent::Log(_))) => {}
                Some(Err(error)) => return Err(error),
                None => return Err(no_result()),
            }
        }
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Result<CallEvent>> {
        loop {
            let message = match self.messages.poll_next_unpin(cx) {
                Poll::Ready(message) => message,
                Poll::Pending => {
                    let Some((after, sleep)) = &mut self.time else {
                        return Poll::Pending;
                    };
                    ready!(sleep.as_mut().poll(cx));
                    return Poll::Ready(Err(Error::Timeout {
                        after: *after,
                        maybe_executed: true,
                    }));
                }
            };
            return Poll::Ready(match message {
                Some(Ok(message)) => match CallEvent::from_wire(message).transpose() {
                    Some(event) => event,
                    None => continue,
                },
                Some(Err(status)) => Err(self.transport.error(status)),
                None => Err(no_result()),
            });
        }
    }
}

fn no_result() -> Error {
    Error::Protocol("the call ended without a result".to_owned())
}

impl Stream for CallStream {
    type Item = Result<CallEvent>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.done {
            return Poll::Ready(None);
        }
        let event = ready!(self.poll_event(cx));
        self.done = matches!(event, Ok(CallEvent::Result(_)) | Err(_));
        Poll::Ready(Some(event))
    }
}

impl fmt::Debug for CallStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallStream").finish_non_exhaustive()
    }
}
