//! Where answers go: one cheap handle over whatever the transport is.

use std::sync::{Arc, Mutex, PoisonError};

/// What a message is to the transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Something before or beside the answer.
    Aside,
    /// The same, but it cannot wait for the answer.
    Urgent,
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

    /// The same sink, written to in batches: what comes before the answer is sent with it.
    pub(crate) fn batched(&self) -> Out {
        Out::new(Batched {
            out: self.clone(),
            held: Mutex::new(Some(Vec::new())),
        })
    }

    /// Sends a notification of a request, or an answer that is not the real one; false if nobody reads.
    pub(crate) fn aside(&self, message: Vec<u8>) -> bool {
        self.0.put(message, Kind::Aside)
    }

    /// Sends a request of ours, or a notification of no request; false if nobody reads.
    pub(crate) fn urgent(&self, message: Vec<u8>) -> bool {
        self.0.put(message, Kind::Urgent)
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

/// The sink of one request that is answered in batches.
struct Batched {
    out: Out,
    /// What is to be sent with the answer; nothing once that is sent.
    held: Mutex<Option<Vec<Vec<u8>>>>,
}

impl Sink for Batched {
    fn put(&self, message: Vec<u8>, kind: Kind) -> bool {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let batch = match (kind, held.as_mut()) {
            (Kind::Aside, Some(waiting)) => {
                waiting.push(message);
                return true;
            }
            (Kind::Answer(_), _) => {
                let mut batch = held.take().unwrap_or_default();
                batch.push(message);
                batch
            }
            _ => vec![message],
        };
        let batch = [b"[", &*batch.join(&b','), b"]"].concat();
        self.out.0.put(batch, kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<String>>>);

    impl Sink for Written {
        fn put(&self, message: Vec<u8>, _: Kind) -> bool {
            let text = String::from_utf8(message).unwrap();
            self.0.lock().unwrap().push(text);
            true
        }
    }

    #[test]
    fn a_batch_is_an_answer_and_what_came_before_it() {
        let written = Written::default();
        let out = Out::new(written.clone()).batched();
        out.aside(b"1".to_vec());
        out.urgent(b"2".to_vec());
        out.aside(b"3".to_vec());
        out.answer(b"4".to_vec(), None);
        out.aside(b"5".to_vec());
        let lines = written.0.lock().unwrap().clone();
        assert_eq!(lines, ["[2]", "[1,3,4]", "[5]"]);
    }
}
