//! Response bodies: whole ones, and event streams fed by the core.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::Response;
use hyper::body::{Frame, SizeHint};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use tokio::sync::mpsc;

use crate::out::{Kind, Out, Sink};
use crate::server::{Server, Session};

/// Messages of the core on their way to a response.
pub(super) type Messages = mpsc::Receiver<(Vec<u8>, Kind)>;

/// A channel from the core to one response; bounded, so that a slow reader slows the core down.
pub(super) fn channel() -> (Out, Messages) {
    let (sender, receiver) = mpsc::channel(64);
    (Out::new(Channel(sender)), receiver)
}

struct Channel(mpsc::Sender<(Vec<u8>, Kind)>);

impl Sink for Channel {
    fn put(&self, message: Vec<u8>, kind: Kind) -> bool {
        self.0.blocking_send((message, kind)).is_ok()
    }
}

/// Ends a modern request when its response does: closing the stream is how a modern client cancels.
pub(super) struct Ending {
    pub(super) server: Arc<Server>,
    pub(super) session: Arc<Session>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.server.end(&self.session);
    }
}

/// A response body.
pub(super) enum Body {
    Whole(Option<Bytes>),
    Events {
        first: Option<Vec<u8>>,
        rest: Option<Messages>,
        _ending: Option<Ending>,
    },
    /// The one stream of HTTP+SSE: an answer is not its end.
    Old {
        first: Option<String>,
        rest: Messages,
    },
    /// A message of which `rest` bytes come later.
    Halves {
        message: Bytes,
        rest: usize,
        pause: Pin<Box<tokio::time::Sleep>>,
    },
}

impl Body {
    pub(super) fn empty() -> Body {
        Body::Whole(None)
    }

    pub(super) fn whole(bytes: Vec<u8>) -> Body {
        Body::Whole(Some(Bytes::from(bytes)))
    }

    pub(super) fn old(first: String, rest: Messages) -> Body {
        let first = Some(first);
        Body::Old { first, rest }
    }

    pub(super) fn events(first: Option<Vec<u8>>, rest: Messages, ending: Option<Ending>) -> Body {
        Body::Events {
            first,
            rest: Some(rest),
            _ending: ending,
        }
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = match &mut *self {
            Body::Whole(bytes) => bytes.take(),
            Body::Old { first, rest } => match first.take() {
                Some(first) => Some(Bytes::from(first)),
                None => ready!(rest.poll_recv(context)).map(|(message, _)| event(&message)),
            },
            Body::Halves {
                message,
                rest,
                pause,
            } => {
                if message.len() <= *rest {
                    ready!(pause.as_mut().poll(context));
                    *rest = 0;
                }
                let half = message.split_to(message.len() - *rest);
                (!half.is_empty()).then_some(half)
            }
            Body::Events { first, rest, .. } => match (first.take(), rest.as_mut()) {
                (Some(message), _) => Some(event(&message)),
                (None, None) => None,
                (None, Some(receiver)) => match ready!(receiver.poll_recv(context)) {
                    None => None,
                    Some((message, kind)) => {
                        // The answer is the last event, whoever still holds the other end of the channel.
                        if matches!(kind, Kind::Answer(_)) {
                            *rest = None;
                        }
                        Some(event(&message))
                    }
                },
            },
        };
        Poll::Ready(frame.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Body::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Body::Events { .. } | Body::Old { .. } | Body::Halves { .. } => SizeHint::default(),
        }
    }
}

fn event(message: &[u8]) -> Bytes {
    Bytes::from([b"event: message\ndata: ", message, b"\n\n"].concat())
}

/// A response that goes on.
pub(super) fn event_stream(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// The same in two halves.
pub(super) fn json_slowly(message: Vec<u8>, pause: Duration) -> Response<Body> {
    let mut response = json(Vec::new());
    let rest = message.len() / 2;
    *response.body_mut() = Body::Halves {
        message: message.into(),
        rest,
        pause: Box::pin(tokio::time::sleep(pause)),
    };
    response
}

/// A response that is one message.
pub(super) fn json(message: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::whole(message));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
