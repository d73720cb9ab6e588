//! The frame reader: the same lines wherever the reads fall, within a bound.

use nexusd::transport::lines::{Line, LineSplitter};

/// How much of each end of an oversized line is kept.
const KEPT: usize = 4096;

/// What is asked for at a time, and how a buffer may grow.
const SLACK: usize = 64 * 1024;

/// The first two bytes say how long a line may be and how the rest comes in pieces.
pub fn check(data: &[u8]) {
    let &[limit, seed, ref text @ ..] = data else {
        return;
    };
    // From a few bytes to more than is kept of both ends.
    let max = 1 + usize::from(limit % 16) * usize::from(limit / 16) * 64 + usize::from(limit);
    let mut splitter = LineSplitter::new(max);
    let mut lines = Vec::new();
    for piece in pieces(text, seed) {
        splitter.space().extend_from_slice(piece);
        lines.extend(std::iter::from_fn(|| splitter.next_line()));
        let held = splitter.space().capacity();
        assert!(
            held <= 4 * (max + piece.len()) + SLACK,
            "{held} bytes for {max}"
        );
    }
    lines.extend(splitter.finish());
    assert!(!splitter.is_partial());
    assert_eq!(lines, expected(text, max));
}

/// Cuts a text wherever some dice fall.
fn pieces(text: &[u8], seed: u8) -> Vec<&[u8]> {
    let mut dice = u32::from(seed);
    let mut rest = text;
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // Now and then all that is left, as a pipe may give it.
        let most = [1, 7, 100, usize::MAX][dice as usize >> 30];
        let n = (dice as usize >> 8) % 5000 % most + 1;
        let (piece, more) = rest.split_at(n.min(rest.len()));
        pieces.push(piece);
        rest = more;
    }
    pieces
}

/// The same as anybody would write it who has all of it.
fn expected(text: &[u8], max: usize) -> Vec<Line> {
    let line = |line: &[u8]| {
        if line.len() > max {
            let tail = &line[line.len().saturating_sub(KEPT)..];
            return Some(Line::Oversized {
                head: line[..line.len().min(KEPT)].to_vec().into(),
                tail: tail.to_vec().into(),
                length: line.len() as u64,
            });
        }
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let blank = line.iter().all(u8::is_ascii_whitespace);
        (!blank).then(|| Line::Whole(line.to_vec().into()))
    };
    text.split(|&byte| byte == b'\n').filter_map(line).collect()
}
