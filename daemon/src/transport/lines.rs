//! Cuts a byte stream into lines, within a bound. Pure.
//!
//! A line longer than the bound is not kept: its first and last few KiB are, which is where the
//! id of a response stands, and the rest is thrown away as it comes. CRLF, a byte order mark at
//! the start of a line and blank lines are all accepted.

use bytes::{Buf as _, Bytes, BytesMut};
use memchr::memchr;

/// How much of each end of an oversized line is kept.
const KEPT: usize = 4096;

/// How much is asked for at a time.
const CHUNK: usize = 16 * 1024;

/// What is left of it is used until there is less than this. Short lines share one piece of memory so.
const ENOUGH: usize = 4 * 1024;

/// One line, without its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// All of it.
    Whole(Bytes),
    /// Too long to keep.
    Oversized {
        /// How it began.
        head: Bytes,
        /// How it ended.
        tail: Bytes,
        /// How long it was.
        length: u64,
    },
}

/// Cuts a byte stream into lines.
#[derive(Debug)]
pub struct LineSplitter {
    buffer: BytesMut,
    /// How much of the buffer is known to hold no end of line.
    scanned: usize,
    max: usize,
    /// An oversized line whose end has not come yet.
    oversized: Option<Oversized>,
}

#[derive(Debug)]
struct Oversized {
    head: Vec<u8>,
    tail: Vec<u8>,
    length: u64,
}

impl LineSplitter {
    /// Lines of up to `max` bytes are kept whole.
    pub fn new(max: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            scanned: 0,
            max,
            oversized: None,
        }
    }

    /// Where the next bytes of the stream are to be read into.
    pub fn space(&mut self) -> &mut BytesMut {
        if self.buffer.capacity() - self.buffer.len() < ENOUGH {
            self.buffer.reserve(CHUNK);
        }
        &mut self.buffer
    }

    /// The next line of what has been read so far.
    pub fn next_line(&mut self) -> Option<Line> {
        loop {
            let Some(end) = memchr(b'\n', &self.buffer[self.scanned..]) else {
                self.scanned = self.buffer.len();
                if self.oversized.is_some() || self.scanned > self.max {
                    self.throw_away(self.scanned);
                }
                return None;
            };
            let end = self.scanned + end;
            self.scanned = 0;
            if self.oversized.is_some() || end > self.max {
                self.throw_away(end);
                self.buffer.advance(1);
                return self.oversized_line();
            }
            let mut line = self.buffer.split_to(end + 1).freeze();
            line.truncate(end);
            if let Some(line) = Self::tidy(line) {
                return Some(line);
            }
        }
    }

    /// Whether a line has begun whose end has not come yet.
    pub fn is_partial(&self) -> bool {
        !self.buffer.is_empty() || self.oversized.is_some()
    }

    /// What stood after the last end of line when the stream ended.
    pub fn finish(&mut self) -> Option<Line> {
        if self.oversized.is_some() {
            self.throw_away(self.buffer.len());
            return self.oversized_line();
        }
        let rest = self.buffer.split().freeze();
        self.scanned = 0;
        Self::tidy(rest)
    }

    fn tidy(mut line: Bytes) -> Option<Line> {
        const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
        // Not only at the very start: a banner may have come before it, from somebody else.
        if line.starts_with(BYTE_ORDER_MARK) {
            line.advance(BYTE_ORDER_MARK.len());
        }
        if line.last() == Some(&b'\r') {
            line.truncate(line.len() - 1);
        }
        let blank = line.iter().all(u8::is_ascii_whitespace);
        (!blank).then_some(Line::Whole(line))
    }

    /// Takes `n` bytes of an oversized line out of the buffer.
    fn throw_away(&mut self, n: usize) {
        let gone = &self.buffer[..n];
        let line = self.oversized.get_or_insert_with(|| Oversized {
            head: Vec::new(),
            tail: Vec::new(),
            length: 0,
        });
        line.length += n as u64;
        let missing = KEPT - line.head.len();
        line.head.extend_from_slice(&gone[..n.min(missing)]);
        line.tail.extend_from_slice(&gone[n.saturating_sub(KEPT)..]);
        let surplus = line.tail.len().saturating_sub(KEPT);
        line.tail.drain(..surplus);
        self.scanned = 0;
        if self.buffer.len() == n {
            // Not `clear`: that would keep the memory of the longest line ever seen.
            self.buffer = BytesMut::new();
        } else {
            self.buffer.advance(n);
        }
    }

    fn oversized_line(&mut self) -> Option<Line> {
        self.oversized.take().map(|line| Line::Oversized {
            head: line.head.into(),
            tail: line.tail.into(),
            length: line.length,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(max: usize, chunks: &[&[u8]]) -> Vec<Line> {
        let mut splitter = LineSplitter::new(max);
        let mut lines = Vec::new();
        for chunk in chunks {
            splitter.space().extend_from_slice(chunk);
            lines.extend(std::iter::from_fn(|| splitter.next_line()));
        }
        lines.extend(splitter.finish());
        lines
    }

    fn whole(text: &str) -> Line {
        Line::Whole(Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn lines_are_cut_wherever_the_reads_fall() {
        let lines = split(100, &[b"{\"a\"", b":1}\n{\"b\":2}", b"\n{\"c\":3}\n"]);
        assert_eq!(
            lines,
            [whole("{\"a\":1}"), whole("{\"b\":2}"), whole("{\"c\":3}")]
        );
    }

    #[test]
    fn crlf_a_byte_order_mark_and_blank_lines_are_accepted() {
        let lines = split(100, &[b"\xef\xbb\xbf{}\r\n\r\n  \n\xef\xbb\xbf{}\r\n"]);
        assert_eq!(lines, [whole("{}"), whole("{}")]);
    }

    #[test]
    fn the_last_line_needs_no_end() {
        assert_eq!(
            split(100, &[b"{}\n{\"x\":1}"]),
            [whole("{}"), whole("{\"x\":1}")]
        );
    }

    #[test]
    fn an_oversized_line_keeps_its_ends_and_the_next_one_is_whole() {
        let long = [b"HEAD".as_slice(), &vec![b'x'; 50_000], b"TAIL"].concat();
        let text = [&long[..], b"\n{}\n"].concat();
        let chunks: Vec<&[u8]> = text.chunks(777).collect();
        let lines = split(10_000, &chunks);
        let [Line::Oversized { head, tail, length }, rest] = &lines[..] else {
            panic!("{lines:?}");
        };
        assert!(head.starts_with(b"HEAD") && head.len() <= KEPT);
        assert!(tail.ends_with(b"TAIL") && tail.len() <= KEPT);
        assert_eq!(*length, long.len() as u64);
        assert_eq!(*rest, whole("{}"));
    }

    #[test]
    fn an_oversized_line_takes_no_memory_as_it_grows() {
        let mut splitter = LineSplitter::new(10_000);
        for _ in 0..1000 {
            splitter.space().extend_from_slice(&[b'x'; 5000]);
            assert_eq!(splitter.next_line(), None);
            assert!(splitter.buffer.capacity() <= 64 * 1024);
        }
    }

    proptest! {
        #[test]
        fn where_the_reads_fall_changes_nothing(
            text in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), any::<u8>()], 0..200),
            cuts in proptest::collection::vec(0usize..200, 0..8),
            max in 1usize..40,
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|&c| c <= text.len()).collect();
            cuts.sort_unstable();
            let mut chunks = Vec::new();
            let mut from = 0;
            for cut in cuts {
                chunks.push(&text[from..cut]);
                from = cut;
            }
            chunks.push(&text[from..]);
            prop_assert_eq!(split(max, &chunks), split(max, &[&text]));
        }
    }
}
