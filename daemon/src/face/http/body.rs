//! Answers: all at once, or as a stream of events.

use super::{
    super::mcp::{Kind, Message, Present},
    session::Open,
};
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use hyper::body::{Frame, SizeHint};
use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    sync::mpsc,
    time::{Interval, MissedTickBehavior, interval},
};

/// Whoever hears nothing for minutes takes the stream for dead.
const BEAT: Duration = Duration::from_secs(30);

/// What lasts as long as a stream.
#[derive(Debug)]
#[expect(dead_code, reason = "held for what its end does")]
pub(super) enum Keeps {
    /// A client of the modern era: it is gone when its stream is.
    Client(Present),
    /// A session is in use.
    Session(Open),
}

/// The body of an answer.
#[derive(Debug)]
pub(super) enum Body {
    /// All of it.
    Whole(Bytes),
    /// Events, as they happen.
    Events(Box<Events>),
}

/// Messages as events.
#[derive(Debug)]
pub(super) struct Events {
    first: Option<Message>,
    rest: mpsc::Receiver<Message>,
    has_ended: bool,
    beat: Interval,
    _keeps: Keeps,
}

impl Events {
    pub(super) fn new(first: Option<Message>, rest: mpsc::Receiver<Message>, keeps: Keeps) -> Self {
        let mut beat = interval(BEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            first,
            rest,
            has_ended: false,
            beat,
            _keeps: keeps,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        let next = match self.first.take() {
            Some(first) => Poll::Ready(Some(first)),
            None => self.rest.poll_recv(cx),
        };
        match next {
            Poll::Ready(Some(message)) => {
                self.has_ended = matches!(message.kind, Kind::Answer(_));
                Poll::Ready(Some(event(&message.text)))
            }
            Poll::Ready(None) => Poll::Ready(None),
            // The first one comes at once: whoever waits for the head of the answer has it then.
            Poll::Pending => self
                .beat
                .poll_tick(cx)
                .map(|_| Some(Bytes::from_static(b":\n\n"))),
        }
    }
}

/// A message, which ends its own line, as an event.
fn event(text: &[u8]) -> Bytes {
    [b"event: message\ndata: ", text, b"\n"].concat().into()
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = match self.get_mut() {
            Self::Whole(text) if text.is_empty() => Poll::Ready(None),
            Self::Whole(text) => Poll::Ready(Some(std::mem::take(text))),
            Self::Events(events) => events.poll(cx),
        };
        data.map(|data| data.map(|data| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(text) if text.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(text) => SizeHint::with_exact(text.len() as u64),
            Self::Events(_) => SizeHint::default(),
        }
    }
}

/// An answer without a body.
pub(super) fn empty(status: StatusCode) -> Response<Body> {
    with(status, None, Body::Whole(Bytes::new()))
}

/// A sentence for people.
pub(super) fn text(status: StatusCode, text: &str) -> Response<Body> {
    let text = format!("{text}\n");
    with(
        status,
        Some("text/plain; charset=utf-8"),
        Body::Whole(text.into()),
    )
}

/// A message.
pub(super) fn json(status: StatusCode, text: Bytes) -> Response<Body> {
    with(status, Some("application/json"), Body::Whole(text))
}

/// Messages as they come.
pub(super) fn stream(events: Events) -> Response<Body> {
    let mut response = with(
        StatusCode::OK,
        Some("text/event-stream"),
        Body::Events(Box::new(events)),
    );
    let no_cache = HeaderValue::from_static("no-cache");
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, no_cache);
    response
}

fn with(status: StatusCode, kind: Option<&'static str>, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    if let Some(kind) = kind {
        let kind = HeaderValue::from_static(kind);
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
    }
    response
}
