//! Whether a program is for this machine. When the system refuses one, the C library hands the file to
//! a shell, which then complains about gibberish: better to know before.

use std::{fs, io::Read as _, path::Path};

/// What tells a program from everything else.
const MAGIC: &[u8] = b"\x7fELF";

/// How much of the header counts: up to the kind of machine.
const HEADER: usize = 20;

/// Older machines whose programs run on the newer one.
const RUNS_TOO: &[(u16, u16)] = &[(3, 62), (40, 183)];

/// Whether it is a program that this system cannot run. What is no program, a script, is not looked at.
pub(super) fn is_foreign(path: &Path) -> bool {
    let Some(header) = header(path).filter(|header| header.starts_with(MAGIC)) else {
        return false;
    };
    let ours = header_of_ours().and_then(|ours| machine(&ours));
    let runs =
        |theirs| ours.is_none_or(|ours| theirs == ours || RUNS_TOO.contains(&(theirs, ours)));
    !machine(&header).is_some_and(runs) && !has_interpreters()
}

fn header(path: &Path) -> Option<Vec<u8>> {
    let mut header = Vec::with_capacity(HEADER);
    let file = fs::File::open(path).ok()?;
    file.take(HEADER as u64).read_to_end(&mut header).ok()?;
    Some(header)
}

fn header_of_ours() -> Option<Vec<u8>> {
    header(Path::new("/proc/self/exe"))
}

fn machine(header: &[u8]) -> Option<u16> {
    let bytes = [*header.get(HEADER - 2)?, *header.get(HEADER - 1)?];
    // Which end comes first is told by the sixth byte.
    Some(match header.get(5)? {
        2 => u16::from_be_bytes(bytes),
        _ => u16::from_le_bytes(bytes),
    })
}

/// Whether there is something that runs programs of other machines.
fn has_interpreters() -> bool {
    let entries = fs::read_dir("/proc/sys/fs/binfmt_misc")
        .into_iter()
        .flatten();
    entries
        .flatten()
        .any(|entry| entry.file_name() != "register" && entry.file_name() != "status")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_this_machine_and_scripts_are_not_foreign() {
        assert!(!is_foreign(Path::new("/proc/self/exe")));
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("script");
        fs::write(&script, "#!/bin/sh\n").unwrap();
        assert!(!is_foreign(&script));
        assert!(!is_foreign(&dir.path().join("gone")));
    }

    #[test]
    fn what_is_cut_off_or_for_another_machine_is() {
        if has_interpreters() {
            return; // then nobody can tell
        }
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("program");
        let mut header = header_of_ours().unwrap();
        fs::write(&program, &header[..10]).unwrap();
        assert!(is_foreign(&program));
        header[18] ^= 0x55;
        fs::write(&program, &header).unwrap();
        assert!(is_foreign(&program));
    }
}
