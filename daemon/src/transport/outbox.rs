//! What is to be written to a server: a bounded queue that is written in batches.
//!
//! It knows which frames have been handed to the system and which have not. That is what decides,
//! when a server dies, whether a call may be sent to the next one.

use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::VecDeque;
use tokio::sync::Notify;

/// What may wait to be written to one server.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// What a frame costs besides its bytes.
const OVERHEAD: usize = 128;

/// One message, with its end of line.
#[derive(Debug, Default)]
pub struct Frame {
    /// The id of the request it is, if it is one that is waited for.
    pub id: Option<u64>,
    /// The bytes.
    pub bytes: Bytes,
    /// What is said beside the bytes, where the transport has a place for it.
    pub head: Head,
}

/// What a message is, for transports that say so beside its bytes. Lines do not.
#[derive(Debug, Clone, Default)]
pub struct Head {
    /// The method; empty for an answer to the server.
    pub method: &'static str,
    /// What the method is applied to, where it has a header of its own: a tool, a prompt, a resource.
    pub name: Option<Box<str>>,
    /// Arguments that the server wants to have in headers too: the ends of their names, and values.
    pub params: Vec<(String, String)>,
    /// The id of the request it is, also of one that lasts and that nobody waits for.
    pub request: Option<u64>,
    /// The request that it takes back.
    pub cancels: Option<u64>,
    /// It says all that there is to say itself, and belongs to no session.
    pub modern: bool,
    /// Nothing is spoiled when it is carried out twice.
    pub repeatable: bool,
}

impl Frame {
    fn cost(&self) -> usize {
        self.bytes.len() + OVERHEAD
    }
}

/// Why a frame was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushError {
    /// Too much is waiting.
    Full,
    /// Nothing will be written any more.
    Closed,
}

/// The queue.
#[derive(Debug, Default)]
pub struct Outbox {
    queue: Mutex<Queue>,
    filled: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    frames: VecDeque<Frame>,
    bytes: usize,
    /// Requests that were taken out to be written, and of which not a byte was.
    unwritten: Vec<u64>,
    closed: bool,
}

impl Queue {
    fn push(&mut self, frame: Frame) {
        self.bytes += frame.cost();
        self.frames.push_back(frame);
    }
}

impl Outbox {
    /// Puts a frame at the end.
    pub fn push(&self, frame: Frame) -> Result<(), PushError> {
        let mut queue = self.queue.lock();
        if queue.closed {
            return Err(PushError::Closed);
        }
        // One frame always fits, however large.
        if !queue.frames.is_empty() && queue.bytes + frame.cost() > MAX_BYTES {
            return Err(PushError::Full);
        }
        queue.push(frame);
        drop(queue);
        self.filled.notify_one();
        Ok(())
    }

    /// How many requests wait to be written.
    pub fn requests(&self) -> usize {
        let queue = self.queue.lock();
        queue
            .frames
            .iter()
            .filter(|frame| frame.id.is_some())
            .count()
    }

    /// Puts a frame at the end, however much waits there: for what must not be lost and is bounded
    /// by what was pushed before.
    pub fn push_always(&self, frame: Frame) {
        let mut queue = self.queue.lock();
        if !queue.closed {
            queue.push(frame);
            drop(queue);
            self.filled.notify_one();
        }
    }

    /// Takes back a request that has not been handed to the system. True if it was still here.
    pub fn take_back(&self, id: u64) -> bool {
        let mut queue = self.queue.lock();
        let Some(at) = queue.frames.iter().position(|frame| frame.id == Some(id)) else {
            return false;
        };
        if let Some(frame) = queue.frames.remove(at) {
            queue.bytes -= frame.cost();
        }
        true
    }

    /// Takes no more frames. Returns the ids of the requests that were never written.
    pub fn close(&self) -> Vec<u64> {
        let mut queue = self.queue.lock();
        queue.closed = true;
        queue.bytes = 0;
        let mut unsent = std::mem::take(&mut queue.unwritten);
        unsent.extend(queue.frames.drain(..).filter_map(|frame| frame.id));
        drop(queue);
        self.filled.notify_one();
        unsent
    }

    /// Writing has failed, and of these frames not a byte was taken: nobody has seen them.
    pub fn give_back(&self, frames: &[Frame]) {
        self.never_seen(frames.iter().filter_map(|frame| frame.id));
    }

    /// The same of requests that are known by their ids.
    pub fn never_seen(&self, ids: impl IntoIterator<Item = u64>) {
        self.queue.lock().unwritten.extend(ids);
    }

    /// Waits for the first frame that is wanted, and takes it. `None` when the outbox was closed.
    pub async fn next(&self, wanted: impl Fn(&Frame) -> bool) -> Option<Frame> {
        loop {
            {
                let mut queue = self.queue.lock();
                if queue.closed {
                    return None;
                }
                let mut frames = queue.frames.iter();
                let at = frames.position(&wanted);
                if let Some(frame) = at.and_then(|at| queue.frames.remove(at)) {
                    queue.bytes -= frame.cost();
                    return Some(frame);
                }
            }
            self.filled.notified().await;
        }
    }

    /// Waits for frames and takes up to `max` of them. `false` when the outbox was closed.
    pub async fn next_batch(&self, max: usize, batch: &mut Vec<Frame>) -> bool {
        loop {
            {
                let mut queue = self.queue.lock();
                if queue.closed {
                    return false;
                }
                if !queue.frames.is_empty() {
                    let n = queue.frames.len().min(max);
                    for _ in 0..n {
                        if let Some(frame) = queue.frames.pop_front() {
                            queue.bytes -= frame.cost();
                            batch.push(frame);
                        }
                    }
                    return true;
                }
            }
            self.filled.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(id: u64, size: usize) -> Frame {
        Frame {
            id: Some(id),
            bytes: vec![b'x'; size].into(),
            ..Frame::default()
        }
    }

    #[tokio::test]
    async fn the_first_frame_that_is_wanted_is_taken() {
        let outbox = Outbox::default();
        outbox.push(frame(1, 1)).unwrap();
        outbox.push_always(Frame::default());
        let unasked = outbox.next(|frame| frame.id.is_none()).await;
        assert_eq!(unasked.unwrap().id, None);
        assert_eq!(outbox.next(|_| true).await.unwrap().id, Some(1));
        outbox.never_seen([1]);
        assert_eq!(outbox.close(), [1]);
        assert!(outbox.next(|_| true).await.is_none());
    }

    #[tokio::test]
    async fn a_request_that_was_taken_for_writing_is_no_longer_unsent() {
        let outbox = Outbox::default();
        for id in 1..=3 {
            outbox.push(frame(id, 10)).unwrap();
        }
        let mut batch = Vec::new();
        assert!(outbox.next_batch(2, &mut batch).await);
        assert_eq!(batch.len(), 2);
        assert!(!outbox.take_back(1));
        outbox.give_back(&batch[1..]);
        assert_eq!(outbox.close(), [2, 3]);
        assert_eq!(outbox.push(frame(4, 1)), Err(PushError::Closed));
        assert!(!outbox.next_batch(2, &mut batch).await);
    }

    #[test]
    fn the_queue_is_bounded_and_one_large_frame_always_fits() {
        let outbox = Outbox::default();
        outbox.push(frame(1, MAX_BYTES + 1)).unwrap();
        assert_eq!(outbox.push(frame(2, 1)), Err(PushError::Full));
        assert!(outbox.take_back(1));
        outbox.push(frame(3, MAX_BYTES)).unwrap();
        outbox.push_always(frame(4, 1));
        assert_eq!(outbox.close(), [3, 4]);
    }
}
