//! A file of the calls under way, so that none is forgotten when the daemon is killed.
//!
//! A call takes a slot before it is sent, and the slot holds the line that is to be written if nobody comes back to
//! it. What was written into a file is there when its writer has been killed; it need not reach a disk for that.

use super::recover::{SLOT, taken};
use parking_lot::Mutex;
use std::{collections::VecDeque, fs, io, path::Path};

/// For more calls at once there is no room: they go on, and are forgotten if the daemon is killed.
const MOST: u32 = 4096;

#[derive(Debug)]
pub(super) struct Slots {
    file: fs::File,
    free: Mutex<Free>,
}

#[derive(Debug, Default)]
struct Free {
    /// They hold lines that are written, and are used again as they are. The oldest first.
    stale: VecDeque<u32>,
    /// Used before. The last one first: so the file stays small.
    again: Vec<u32>,
    /// The first that was never used.
    next: u32,
}

/// A call that is under way.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Slot(pub(super) u32);

impl Slots {
    /// Opens the file, and returns what is in it.
    pub(super) fn open(path: &Path) -> io::Result<(Self, Vec<u8>)> {
        let mut options = fs::OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt as _;
            let no_link = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
            options
                .mode(0o600)
                .custom_flags(no_link.bits().cast_signed());
        }
        let file = options.open(path).or_else(|error| match path.parent() {
            Some(folder) if error.kind() == io::ErrorKind::NotFound => {
                crate::platform::make_private(folder)?;
                options.open(path)
            }
            _ => Err(error),
        });
        let mut file = file?;
        let mut content = Vec::new();
        let most = u64::from(MOST) * SLOT as u64;
        io::Read::read_to_end(&mut io::Read::take(&mut file, most), &mut content)?;
        // What an earlier daemon has left stays taken until it has been written down.
        let taken: Vec<u32> = taken(&content).collect();
        let next = taken.last().map_or(0, |last| last + 1);
        let again = (0..next).filter(|slot| taken.binary_search(slot).is_err());
        let again = again.collect();
        let slots = Self {
            file,
            free: Mutex::new(Free {
                stale: VecDeque::new(),
                again,
                next,
            }),
        };
        Ok((slots, content))
    }

    fn take(&self, line: &[u8]) -> Option<Slot> {
        let slot = {
            let mut free = self.free.lock();
            let used = free.stale.pop_front();
            match used.or_else(|| free.again.pop()) {
                Some(slot) => slot,
                None if free.next < MOST => {
                    free.next += 1;
                    free.next - 1
                }
                None => return None,
            }
        };
        let _ = write_at(&self.file, line, place(slot));
        Some(Slot(slot))
    }

    /// Writes this line, which has to fit, into its slot; into a new one if it has none.
    pub(super) fn write(&self, slot: &mut Option<Slot>, line: &[u8]) {
        match slot {
            // A file that cannot be written is no reason for a call to fail.
            Some(slot) => drop(write_at(&self.file, line, place(slot.0))),
            None => *slot = self.take(line),
        }
    }

    /// Writes what is in it anew from there on. It has to fit.
    pub(super) fn write_end(&self, slot: &Slot, from: usize, end: &[u8]) {
        let _ = write_at(&self.file, end, place(slot.0) + from as u64);
    }

    /// Its line is written: it may be used again as it is, for the next daemon will find the line.
    pub(super) fn written(&self, slots: impl IntoIterator<Item = Slot>) {
        let slots = slots.into_iter().map(|slot| slot.0);
        self.free.lock().stale.extend(slots);
    }

    /// Empties those whose lines are written. While it is known that they are: see [`written`](Self::written).
    pub(super) fn tidy(&self) {
        let stale = std::mem::take(&mut self.free.lock().stale);
        stale.into_iter().for_each(|slot| self.free(Slot(slot)));
    }

    /// It is over.
    pub(super) fn free(&self, slot: Slot) {
        let _ = write_at(&self.file, &[0], place(slot.0));
        self.free.lock().again.push(slot.0);
    }
}

fn place(slot: u32) -> u64 {
    u64::from(slot) * SLOT as u64
}

#[cfg(unix)]
fn write_at(file: &fs::File, text: &[u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, text, at)
}

#[cfg(windows)]
fn write_at(file: &fs::File, text: &[u8], at: u64) -> io::Result<()> {
    let written = std::os::windows::fs::FileExt::seek_write(file, text, at)?;
    match written == text.len() {
        true => Ok(()),
        false => Err(io::ErrorKind::WriteZero.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::recover::left, *};

    #[test]
    fn what_is_taken_is_found_by_the_next_daemon() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("calls");
        let (slots, before) = Slots::open(&path).unwrap();
        assert!(before.is_empty());
        let lines = ["{\"id\":\"1\"}\n", "{\"id\":\"2\"}\n", "{\"id\":\"3\"}\n"];
        let [one, two, _] = lines.map(|line| slots.take(line.as_bytes()).unwrap());
        slots.free(two);
        drop((slots, one));

        let (slots, before) = Slots::open(&path).unwrap();
        let found = left(&before, &[]);
        assert_eq!((&found.taken[..], found.lines.len()), (&[0, 2][..], 2));
        // New calls take what is free, and not those that nobody has written down yet.
        assert_eq!(slots.take(b"{}\n"), Some(Slot(1)));
        assert_eq!(slots.take(b"{}\n"), Some(Slot(3)));
        slots.free(Slot(2));
        assert_eq!(slots.take(b"{}\n"), Some(Slot(2)));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }
}
