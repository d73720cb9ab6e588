//! Cuts a stream of server-sent events into events, within a bound. Pure.

use bytes::{Buf as _, Bytes, BytesMut};
use memchr::memchr2;
use std::time::Duration;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event {
    /// What kind it is; empty means `message`.
    pub kind: String,
    /// The id of this very event, if it has one.
    pub id: Option<String>,
    /// What it says.
    pub data: Bytes,
}

/// An event that is larger than is allowed.
#[derive(Debug, PartialEq, Eq)]
pub struct TooLarge(pub u64);

/// Cuts a stream into events.
#[derive(Debug)]
pub struct EventSplitter {
    buffer: BytesMut,
    /// How much of the buffer has no end of line in it.
    searched: usize,
    /// The last line ended with a carriage return: a line feed that follows belongs to it.
    after_return: bool,
    begun: bool,
    max: usize,
    size: usize,
    event: Event,
    data: Option<Bytes>,
    more: BytesMut,
    retry: Option<Duration>,
}

/// The longest delay that a server may ask for.
const LONGEST_RETRY: Duration = Duration::from_secs(300);

impl EventSplitter {
    /// Events of more than `max` bytes are an error.
    pub fn new(max: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            searched: 0,
            after_return: false,
            begun: false,
            max,
            size: 0,
            event: Event::default(),
            data: None,
            more: BytesMut::new(),
            retry: None,
        }
    }

    /// More of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// How long to wait before the stream is opened again, if the server has said so.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Whether an event has begun and not ended.
    pub fn is_partial(&self) -> bool {
        self.size > 0 || !self.buffer.is_empty()
    }

    /// The next event that is complete.
    pub fn next_event(&mut self) -> Result<Option<Event>, TooLarge> {
        loop {
            if self.after_return && !self.buffer.is_empty() {
                self.after_return = false;
                if self.buffer[0] == b'\n' {
                    self.buffer.advance(1);
                    self.searched = 0;
                }
            }
            if !self.begun && self.buffer.len() >= 3 {
                self.begun = true;
                if self.buffer.starts_with(b"\xef\xbb\xbf") {
                    self.buffer.advance(3);
                    self.searched = 0;
                }
            }
            let Some(found) = memchr2(b'\n', b'\r', &self.buffer[self.searched..]) else {
                self.searched = self.buffer.len();
                let size = self.size + self.buffer.len();
                return if size > self.max {
                    Err(TooLarge(size as u64))
                } else {
                    Ok(None)
                };
            };
            let at = self.searched + found;
            self.searched = 0;
            self.begun = true;
            let mut line = self.buffer.split_to(at + 1);
            self.after_return = line[at] == b'\r';
            line.truncate(at);
            if line.is_empty() {
                if let Some(event) = self.finish() {
                    return Ok(Some(event));
                }
                continue;
            }
            self.size += line.len();
            if self.size > self.max {
                return Err(TooLarge(self.size as u64));
            }
            self.line(line.freeze());
        }
    }

    fn finish(&mut self) -> Option<Event> {
        self.size = 0;
        let mut event = std::mem::take(&mut self.event);
        let data = self.data.take();
        let is_event = data.is_some() || event.id.is_some();
        event.data = if self.more.is_empty() {
            data.unwrap_or_default()
        } else {
            std::mem::take(&mut self.more).freeze()
        };
        is_event.then_some(event)
    }

    fn line(&mut self, line: Bytes) {
        let colon = memchr::memchr(b':', &line).unwrap_or(line.len());
        let mut value = line.slice((colon + 1).min(line.len())..);
        if value.first() == Some(&b' ') {
            value.advance(1);
        }
        let text = |value: &Bytes| String::from_utf8_lossy(value).into_owned();
        match &line[..colon] {
            b"data" => match self.data.take() {
                // Nearly every event has one line of data, which is not copied.
                None => self.data = Some(value),
                Some(first) => {
                    if self.more.is_empty() {
                        self.more.extend_from_slice(&first);
                    }
                    self.more.extend_from_slice(b"\n");
                    self.more.extend_from_slice(&value);
                    self.data = Some(first);
                }
            },
            b"event" => self.event.kind = text(&value),
            // An id that could not be sent back is none.
            b"id" if value.iter().all(|b| (b' '..0x7f).contains(b)) => {
                self.event.id = Some(text(&value));
            }
            b"retry" => {
                let digits = value.iter().all(u8::is_ascii_digit);
                let wait = digits.then(|| text(&value).parse().ok()).flatten();
                let wait = wait.map(|ms| Duration::from_millis(ms).min(LONGEST_RETRY));
                self.retry = wait.or(self.retry);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(text: &[u8], chunk: usize) -> (Vec<Event>, EventSplitter) {
        let mut splitter = EventSplitter::new(1000);
        let mut events = Vec::new();
        for part in text.chunks(chunk) {
            splitter.push(part);
            while let Some(event) = splitter.next_event().unwrap() {
                events.push(event);
            }
        }
        (events, splitter)
    }

    fn event(kind: &str, id: Option<&str>, data: &str) -> Event {
        Event {
            kind: kind.into(),
            id: id.map(str::to_owned),
            data: Bytes::copy_from_slice(data.as_bytes()),
        }
    }

    #[test]
    fn every_end_of_line_and_every_way_to_arrive_is_accepted() {
        let text = "\u{feff}: hello\nid: 7\nevent: message\ndata: {\"a\":1}\n\nretry: 1500\ndata:x\ndata: y\ndata\n\n";
        let expected = [
            event("message", Some("7"), "{\"a\":1}"),
            event("", None, "x\ny\n"),
        ];
        for end in ["\n", "\r\n", "\r"] {
            let text = text.replace('\n', end);
            for chunk in 1..text.len() {
                let (events, splitter) = all(text.as_bytes(), chunk);
                // With a bare carriage return the last one may yet be followed by a line feed.
                assert_eq!(events, expected, "{end:?} {chunk}");
                assert_eq!(splitter.retry(), Some(Duration::from_millis(1500)));
                assert!(!splitter.is_partial());
            }
        }
    }

    #[test]
    fn an_id_alone_is_an_event_and_a_comment_is_none() {
        let (events, _) = all(b"id: 3\ndata:\n\n: ping\n\nevent: x\n\nid: 4\n\n", 100);
        assert_eq!(events, [event("", Some("3"), ""), event("", Some("4"), "")]);
    }

    #[test]
    fn what_has_no_end_is_cut_off() {
        let mut splitter = EventSplitter::new(100);
        splitter.push(&[b'x'; 101]);
        assert_eq!(splitter.next_event(), Err(TooLarge(101)));
        let mut splitter = EventSplitter::new(100);
        splitter.push("data: 0123456789\n".repeat(10).as_bytes());
        assert!(matches!(splitter.next_event(), Err(TooLarge(_))));
        assert!(splitter.is_partial());
    }

    proptest! {
        #[test]
        fn no_stream_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), chunk in 1usize..50) {
            let mut splitter = EventSplitter::new(100);
            for part in bytes.chunks(chunk) {
                splitter.push(part);
                while let Ok(Some(_)) = splitter.next_event() {}
            }
        }
    }
}
