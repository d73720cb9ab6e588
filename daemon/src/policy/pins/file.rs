//! What was approved of, on disk: a file for each server, for its user alone.

use super::record::{Approved, Record};
use crate::platform::{check_private, make_private};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

/// Files of another form are not read.
const VERSION: u32 = 1;

/// No list is longer.
const MAX_FILE: u64 = 64 * 1024 * 1024;

#[derive(Serialize, Deserialize)]
struct File<'a> {
    version: u32,
    /// For people who look into the folder.
    server: String,
    lost: bool,
    commands: BTreeSet<String>,
    #[serde(borrow)]
    tools: BTreeMap<String, Vec<Pin<'a>>>,
}

#[derive(Serialize, Deserialize)]
struct Pin<'a> {
    command: String,
    digest: String,
    #[serde(borrow)]
    definition: &'a RawValue,
}

/// Where it is kept.
pub(super) fn path(folder: &Path, server: &str) -> PathBuf {
    let hash = Sha256::digest(server);
    let hex: String = hash[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    folder.join(format!("{hex}.json"))
}

/// What is kept; `None` where there is no file.
pub(super) fn read(folder: &Path, server: &str) -> io::Result<Option<Record>> {
    let path = path(folder, server);
    let meta = match fs::symlink_metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        meta => meta?,
    };
    check_private(folder)?;
    if !meta.is_file() || meta.len() > MAX_FILE {
        return Err(io::Error::other("it is no file of ours"));
    }
    let text = fs::read(&path)?;
    let file: File<'_> = serde_json::from_slice(&text)?;
    if file.version != VERSION {
        return Err(io::Error::other("it is of another version"));
    }
    let pin = |pin: Pin<'_>| Approved {
        command: pin.command,
        digest: pin.digest,
        definition: Bytes::copy_from_slice(pin.definition.get().as_bytes()),
    };
    let tools = file.tools.into_iter();
    let tools = tools.map(|(tool, pins)| (tool, pins.into_iter().map(pin).collect()));
    Ok(Some(Record {
        commands: file.commands,
        tools: tools.collect(),
        lost: file.lost,
    }))
}

/// Keeps it. Whoever reads meanwhile sees the old or the new; one that could not be read is put aside.
pub(super) fn write(folder: &Path, server: &str, record: &Record) -> io::Result<()> {
    make_private(folder)?;
    let mut tools = BTreeMap::new();
    for (tool, variants) in &record.tools {
        let mut pins = Vec::with_capacity(variants.len());
        for approved in variants {
            pins.push(Pin {
                command: approved.command.clone(),
                digest: approved.digest.clone(),
                definition: serde_json::from_slice(&approved.definition)?,
            });
        }
        tools.insert(tool.clone(), pins);
    }
    let file = File {
        version: VERSION,
        server: server.to_owned(),
        lost: record.lost,
        commands: record.commands.clone(),
        tools,
    };
    let (path, text) = (path(folder, server), serde_json::to_vec(&file)?);
    let draft = path.with_extension("new");
    // Of a daemon that was killed over it.
    let _ = fs::remove_file(&draft);
    let written = crate::platform::write_through(&draft, &text).and_then(|()| {
        if read(folder, server).is_err() {
            fs::rename(&path, path.with_extension("damaged"))?;
        }
        fs::rename(&draft, &path)
    });
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record {
            commands: BTreeSet::from(["c".to_owned()]),
            tools: BTreeMap::from([(
                "a".to_owned(),
                vec![Approved {
                    command: "c".to_owned(),
                    digest: "d".to_owned(),
                    definition: Bytes::from_static(br#"{ "name":"a","x":1.50 }"#),
                }],
            )]),
            lost: false,
        }
    }

    #[test]
    fn what_is_kept_comes_back_and_is_nobody_elses() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("state/pins");
        assert_eq!(read(&folder, "s").unwrap(), None);
        write(&folder, "s", &record()).unwrap();
        assert_eq!(read(&folder, "s").unwrap(), Some(record()));
        assert_eq!(read(&folder, "other").unwrap(), None);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&folder), mode(&path(&folder, "s"))), (0o700, 0o600));
        }
    }

    #[test]
    fn what_is_damaged_is_told_and_put_aside_when_there_is_something_new() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("pins");
        write(&folder, "s", &record()).unwrap();
        let path = path(&folder, "s");
        let good = fs::read(&path).unwrap();
        for end in (0..good.len()).step_by(7) {
            fs::write(&path, &good[..end]).unwrap();
            assert!(read(&folder, "s").is_err(), "{end}");
        }
        write(&folder, "s", &record()).unwrap();
        assert_eq!(read(&folder, "s").unwrap(), Some(record()));
        assert!(path.with_extension("damaged").exists());
    }
}
