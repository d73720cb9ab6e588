//! Where answers go: one cheap handle over whatever the transport is.

use std::sync::Arc;

/// What a message is to the transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Something before or beside the answer.
    Aside,
    /// The answer, with its error code if it is an error.
    Answer(Option<i32>),
}

/// A transport's end of an [`Out`].
pub(crate) trait Sink: Send + Sync {
    /// Sends one message; false if nobody is there to read it.
    fn put(&self, message: Vec<u8>, kind: Kind) -> bool;

    /// Sends one answer piece by piece, where the transport can.
    fn put_pieces(&self, pieces: &mut dyn Iterator<Item = &[u8]>) {
        self.put(pieces.collect::<Vec<_>>().concat(), Kind::Answer(None));
    }

    /// Sends one answer byte by byte, where the transport can.
    fn put_slowly(&self, message: Vec<u8>) {
        self.put(message, Kind::Answer(None));
    }

    /// Sends the beginning of an answer that nothing comes after, where the transport can.
    fn put_partly(&self, _beginning: &[u8]) {}

    /// Sends an answer without what ends a message, where the transport can.
    fn put_unterminated(&self, message: Vec<u8>) {
        self.put(message, Kind::Answer(None));
    }
}

/// A sink for the messages that one request, or one stream, gives rise to.
#[derive(Clone)]
pub(crate) struct Out(Arc<dyn Sink>);

impl Out {
    pub(crate) fn new(sink: impl Sink + 'static) -> Out {
        Out(Arc::new(sink))
    }

    /// Sends a notification, a request of ours, or an answer that is not the real one; false if nobody reads.
    pub(crate) fn aside(&self, message: Vec<u8>) -> bool {
        self.0.put(message, Kind::Aside)
    }

    /// Sends the answer.
    pub(crate) fn answer(&self, message: Vec<u8>, error: Option<i32>) {
        self.0.put(message, Kind::Answer(error));
    }

    /// Sends an answer that is too big to build.
    pub(crate) fn answer_in_pieces<'a>(&self, mut pieces: impl Iterator<Item = &'a [u8]>) {
        self.0.put_pieces(&mut pieces);
    }

    /// Sends an answer that takes its time.
    pub(crate) fn answer_slowly(&self, message: Vec<u8>) {
        self.0.put_slowly(message);
    }

    /// Begins an answer and never ends it.
    pub(crate) fn answer_partly(&self, beginning: &[u8]) {
        self.0.put_partly(beginning);
        self.hold();
    }

    /// Sends an answer that the reader cannot see the end of.
    pub(crate) fn answer_unterminated(&self, message: Vec<u8>) {
        self.0.put_unterminated(message);
    }

    /// Never answers, and never lets the transport know that nothing will come.
    pub(crate) fn hold(&self) {
        std::mem::forget(self.clone());
    }
}
