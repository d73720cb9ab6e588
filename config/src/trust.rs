//! Which project files somebody has looked at: bound to what was in them.

use crate::{belief, source::Layer};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

/// The files that are trusted, and what was in them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trust {
    /// The hash of each, by its path.
    #[serde(default)]
    pub files: BTreeMap<PathBuf, String>,
}

/// Whether a file is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// As it is now.
    Trusted,
    /// As it was once.
    Changed,
    /// Never.
    Unknown,
}

impl Trust {
    /// Reads it. One that cannot be read, or believed, is none.
    pub fn read(path: &Path) -> Result<Self, String> {
        match belief::read(path, Layer::User) {
            Ok(None) => Ok(Self::default()),
            Ok(Some(bytes)) => serde_json::from_slice(&bytes)
                .map_err(|error| format!("{}: {error}", path.display())),
            Err(diagnosis) => Err(diagnosis.to_string()),
        }
    }

    /// Writes it, for nobody else to read, all or nothing.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("."));
        create_private_folder(folder)?;
        let text = serde_json::to_string_pretty(self)?;
        replace(path, text.as_bytes(), 0o600)
    }

    /// Whether a file with this content is trusted.
    pub fn verdict(&self, path: &Path, content: &[u8]) -> Verdict {
        match self.files.get(path) {
            Some(hash) if *hash == self::hash(content) => Verdict::Trusted,
            Some(_) => Verdict::Changed,
            None => Verdict::Unknown,
        }
    }
}

/// What a content is known by.
pub fn hash(content: &[u8]) -> String {
    let hex = |byte: &u8| format!("{byte:02x}");
    Sha256::digest(content).iter().map(hex).collect()
}

fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Puts a new file in the place of another, all of it or nothing. A link stays one.
pub fn replace(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    use io::Write as _;
    let path = behind_links(path);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let fresh = path.with_file_name(format!(".{name}.{}.new", std::process::id()));
    // Of a process of the same number that was killed while it wrote.
    let _ = fs::remove_file(&fresh);
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    let _ = mode;
    let written = options.open(&fresh).and_then(|mut file| {
        file.write_all(content)?;
        file.sync_all()
    });
    let done = written.and_then(|()| fs::rename(&fresh, &path));
    if done.is_err() {
        let _ = fs::remove_file(&fresh);
    }
    // So that it is there also if the power fails now. Where folders cannot be opened, nothing is lost by that.
    #[cfg(unix)]
    if let Some(folder) = path.parent().and_then(|folder| fs::File::open(folder).ok()) {
        let _ = folder.sync_all();
    }
    done
}

/// Where a file really is. A link may lead to one that is not there yet.
fn behind_links(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    match fs::read_link(path) {
        Ok(target) => path.parent().unwrap_or(Path::new("")).join(target),
        Err(_) => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_is_bound_to_the_content() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("state/trust.json");
        let file = Path::new("/p/.mcp.json");
        let mut trust = Trust::read(&store).unwrap();
        assert_eq!(trust.verdict(file, b"a"), Verdict::Unknown);
        trust.files.insert(file.to_owned(), hash(b"a"));
        trust.write(&store).unwrap();
        trust.write(&store).unwrap();
        let trust = Trust::read(&store).unwrap();
        assert_eq!(trust.verdict(file, b"a"), Verdict::Trusted);
        assert_eq!(trust.verdict(file, b"b"), Verdict::Changed);
        assert_eq!(fs::read_dir(store.parent().unwrap()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_one_also_if_it_leads_nowhere_yet() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("mcp.json");
        fs::create_dir(dir.path().join("dotfiles")).unwrap();
        std::os::unix::fs::symlink("dotfiles/mcp.json", &link).unwrap();
        for text in ["one", "two"] {
            replace(&link, text.as_bytes(), 0o600).unwrap();
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
            let real = dir.path().join("dotfiles/mcp.json");
            assert_eq!(fs::read_to_string(real).unwrap(), text);
        }
    }

    #[test]
    fn a_store_that_is_broken_trusts_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("trust.json");
        fs::write(&store, "{").unwrap();
        assert!(Trust::read(&store).is_err());
    }
}
