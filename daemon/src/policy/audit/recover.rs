//! What a daemon that was killed has left: calls of which no line was written. Pure.

use serde::de::IgnoredAny;
use std::collections::HashSet;

/// How much room a call has in the file of calls under way. It never crosses a page.
pub(super) const SLOT: usize = 1024;

/// How every line begins.
const BEGIN: &str = "{\"id\":\"";

/// What is to be done about slots that are still taken.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Left {
    /// Those that are taken, whatever is in them.
    pub(super) taken: Vec<u32>,
    /// The lines that are missing.
    pub(super) lines: Vec<String>,
}

/// Looks at the file of calls under way. `written` is the end of what was written: slots whose lines are written are
/// emptied later.
pub(super) fn left(slots: &[u8], written: &[&[u8]]) -> Left {
    let mut left = Left {
        taken: taken(slots).collect(),
        lines: Vec::new(),
    };
    if left.taken.is_empty() {
        return left;
    }
    let lines = written.iter().flat_map(|text| text.split(|b| *b == b'\n'));
    let known: HashSet<&str> = lines
        .filter_map(|line| id(str::from_utf8(line.get(..64.min(line.len()))?).ok()?))
        .collect();
    for slot in slots.chunks(SLOT).filter(|slot| slot[0] != 0) {
        let Some(line) = line_in(slot) else { continue };
        if id(line).is_some_and(|id| !known.contains(id)) {
            left.lines.push(line.to_owned());
        }
    }
    left
}

/// The numbers of the slots that are taken, in order.
pub(super) fn taken(slots: &[u8]) -> impl Iterator<Item = u32> {
    let taken = slots.chunks(SLOT).zip(0..);
    taken.filter(|(slot, _)| slot[0] != 0).map(|(_, n)| n)
}

/// How much of a text are whole lines: a write that was cut off leaves a part of one.
pub(super) fn whole_lines(text: &[u8]) -> usize {
    memchr::memrchr(b'\n', text).map_or(0, |at| at + 1)
}

fn id(line: &str) -> Option<&str> {
    let (id, _) = line.strip_prefix(BEGIN)?.split_once('"')?;
    Some(id)
}

fn line_in(slot: &[u8]) -> Option<&str> {
    let end = memchr::memchr(b'\n', slot)?;
    let line = str::from_utf8(&slot[..=end]).ok()?;
    serde_json::from_str::<IgnoredAny>(line).ok()?;
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(slots: &[&str]) -> Vec<u8> {
        let slot = |text: &&str| {
            let mut slot = vec![0; SLOT];
            slot[..text.len()].copy_from_slice(text.as_bytes());
            slot
        };
        slots.iter().flat_map(slot).collect()
    }

    #[test]
    fn a_call_without_a_line_gets_one_and_the_others_do_not() {
        let one = "{\"id\":\"a-1\",\"outcome\":\"lost\"}\n";
        let two = "{\"id\":\"a-2\",\"outcome\":\"lost\"}\n";
        let slots = file(&[
            one,
            "\0{\"id\":\"a-0\"}\n",
            two,
            "{\"id\":\"a-3\",\"torn",
            "{}\n",
        ]);
        let earlier = b"x\n{\"id\":\"a-2\",\"outcome\":\"ok\"}\n{\"id\":\"a-";
        assert_eq!(
            left(&slots, &[b"", earlier]),
            Left {
                taken: vec![0, 2, 3, 4],
                lines: vec![one.to_owned()],
            }
        );
        assert_eq!(left(&[], &[earlier]), Left::default());
        assert_eq!(left(&[0; 3000], &[]), Left::default());
        // The last one may end with the file.
        let short = &file(&[one])[..one.len()];
        assert_eq!(left(short, &[]).lines, [one]);
    }

    #[test]
    fn a_line_that_was_cut_off_is_none() {
        assert_eq!(whole_lines(b"a\nb\nc"), 4);
        assert_eq!(whole_lines(b"c"), 0);
        assert_eq!(whole_lines(b"a\n"), 2);
    }
}
