//! Tells when a configuration file has been written.

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::{sync::mpsc, time::timeout};

/// Watches one file, for as long as it is held.
#[derive(Debug)]
pub struct FileWatch {
    file: PathBuf,
    text: Option<Vec<u8>>,
    changes: mpsc::Receiver<()>,
    _watcher: RecommendedWatcher,
}

impl FileWatch {
    /// Watches this file, of which `text` is known. It need not be there yet; the folder it belongs in
    /// has to.
    pub fn new(file: &Path, text: Option<Vec<u8>>) -> notify::Result<Self> {
        let (news, changes) = mpsc::channel(1);
        let names: Vec<OsString> = places(file)
            .iter()
            .filter_map(|place| place.file_name().map(OsStr::to_owned))
            .collect();
        // Others may live in the same folder, and write all the time.
        let is_ours = move |event: &notify::Event| {
            let is_named = |path: &PathBuf| names.iter().any(|name| path.file_name() == Some(name));
            event.need_rescan() || event.paths.iter().any(is_named)
        };
        let mut watcher =
            notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
                let counts = |event: notify::Event| {
                    !matches!(event.kind, EventKind::Access(_)) && is_ours(&event)
                };
                if event.map_or(true, counts) {
                    // One that waits to be seen is enough.
                    let _ = news.try_send(());
                }
            })?;
        let folders: BTreeSet<PathBuf> = places(file)
            .iter()
            .filter_map(|place| place.parent().map(Path::to_owned))
            .filter(|folder| !folder.as_os_str().is_empty())
            .collect();
        for folder in folders {
            watcher.watch(&folder, RecursiveMode::NonRecursive)?;
        }
        Ok(Self {
            text,
            file: file.to_owned(),
            changes,
            _watcher: watcher,
        })
    }

    /// Waits until there is something else in the file. An editor may take several steps for that: they
    /// are over when nothing happens for a moment, and taken to be over after eight.
    pub async fn changed(&mut self, moment: Duration) {
        loop {
            // First of all: it may have been written before it was watched.
            let text = read(&self.file);
            if text != self.text {
                self.text = text;
                return;
            }
            if self.changes.recv().await.is_none() {
                return std::future::pending().await;
            }
            for _ in 0..8 {
                match timeout(moment, self.changes.recv()).await {
                    Ok(Some(())) => {}
                    Ok(None) | Err(_) => break,
                }
            }
        }
    }
}

/// What is in a file. Anything that is none could keep us waiting for ever.
fn read(file: &Path) -> Option<Vec<u8>> {
    let is_file = fs::metadata(file).is_ok_and(|meta| meta.is_file());
    is_file.then(|| fs::read(file).ok()).flatten()
}

/// Where the file is, and where it really is if that is a link. Their folders are watched, not the file
/// itself: an editor puts a new one in its place.
fn places(file: &Path) -> [PathBuf; 2] {
    let real = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    [file.to_owned(), real]
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOMENT: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn every_way_to_write_a_file_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("mcp.json");
        let mut watch = FileWatch::new(&file, None).unwrap();
        fs::write(&file, "one").unwrap();
        watch.changed(MOMENT).await;
        fs::write(dir.path().join("new"), "two").unwrap();
        fs::rename(dir.path().join("new"), &file).unwrap();
        watch.changed(MOMENT).await;
        fs::remove_file(&file).unwrap();
        watch.changed(MOMENT).await;
    }

    #[tokio::test]
    async fn what_is_written_again_as_it_was_is_no_change() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("mcp.json");
        fs::write(&file, "one").unwrap();
        let mut watch = FileWatch::new(&file, Some(b"one".to_vec())).unwrap();
        fs::write(&file, "one").unwrap();
        fs::write(dir.path().join("other"), "").unwrap();
        let changed = tokio::time::timeout(Duration::from_millis(200), watch.changed(MOMENT));
        assert!(changed.await.is_err());
    }

    #[tokio::test]
    async fn what_was_written_before_it_was_watched_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("mcp.json");
        fs::write(&file, "two").unwrap();
        let mut watch = FileWatch::new(&file, Some(b"one".to_vec())).unwrap();
        watch.changed(MOMENT).await;
    }

    #[tokio::test]
    async fn neighbours_that_are_always_written_hide_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("mcp.json");
        let mut watch = FileWatch::new(&file, None).unwrap();
        let other = dir.path().join("other");
        let busy = tokio::spawn(async move {
            loop {
                fs::write(&other, "x").unwrap();
                tokio::time::sleep(MOMENT / 4).await;
            }
        });
        fs::write(&file, "one").unwrap();
        watch.changed(MOMENT).await;
        busy.abort();
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_file_behind_a_link_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let dotfiles = dir.path().join("dotfiles");
        fs::create_dir(&dotfiles).unwrap();
        fs::write(dotfiles.join("mcp.json"), "one").unwrap();
        let file = dir.path().join("mcp.json");
        std::os::unix::fs::symlink(dotfiles.join("mcp.json"), &file).unwrap();
        let mut watch = FileWatch::new(&file, Some(b"one".to_vec())).unwrap();
        fs::write(dotfiles.join("mcp.json"), "two").unwrap();
        watch.changed(MOMENT).await;
    }
}
