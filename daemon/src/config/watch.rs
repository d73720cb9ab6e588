//! Tells when a configuration file has been written.

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};

/// How often the file is looked at though nothing has told of a change.
const LOOK: Duration = Duration::from_secs(5);

/// Watches one file, for as long as it is held.
#[derive(Debug)]
pub struct FileWatch {
    file: PathBuf,
    text: Option<Vec<u8>>,
    changes: mpsc::Receiver<()>,
    _watcher: Option<RecommendedWatcher>,
}

impl FileWatch {
    /// Watches this file, of which `text` is known. Neither it nor its folder need be there yet.
    pub fn new(file: &Path, text: Option<Vec<u8>>) -> Self {
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
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let counts = |event: notify::Event| {
                !matches!(event.kind, EventKind::Access(_)) && is_ours(&event)
            };
            if event.map_or(true, counts) {
                // One that waits to be seen is enough.
                let _ = news.try_send(());
            }
        });
        let folders: BTreeSet<PathBuf> = places(file)
            .iter()
            .filter_map(|place| place.parent().map(Path::to_owned))
            .filter(|folder| !folder.as_os_str().is_empty())
            .collect();
        let watcher = watcher.and_then(|mut watcher| {
            for folder in folders {
                watcher.watch(&folder, RecursiveMode::NonRecursive)?;
            }
            Ok(watcher)
        });
        // Without it, changes are seen a little later.
        if let Err(error) = &watcher {
            tracing::debug!(%error, "the folder of the configuration cannot be watched");
        }
        Self {
            text,
            file: file.to_owned(),
            changes,
            _watcher: watcher.ok(),
        }
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
            match timeout(LOOK, self.changes.recv()).await {
                Ok(Some(())) => {}
                // Folders come and go, and not every disk tells: now and then it is looked at all the same.
                Err(_) => continue,
                Ok(None) => sleep(LOOK).await,
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
        let mut watch = FileWatch::new(&file, None);
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
        let mut watch = FileWatch::new(&file, Some(b"one".to_vec()));
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
        let mut watch = FileWatch::new(&file, Some(b"one".to_vec()));
        watch.changed(MOMENT).await;
    }

    #[tokio::test]
    async fn neighbours_that_are_always_written_hide_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("mcp.json");
        let mut watch = FileWatch::new(&file, None);
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

    #[tokio::test(start_paused = true)]
    async fn a_folder_that_is_not_there_yet_is_no_reason_not_to_look() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("nexus/mcp.json");
        let mut watch = FileWatch::new(&file, None);
        fs::create_dir(dir.path().join("nexus")).unwrap();
        fs::write(&file, "one").unwrap();
        watch.changed(MOMENT).await;
        fs::remove_dir_all(dir.path().join("nexus")).unwrap();
        watch.changed(MOMENT).await;
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
        let mut watch = FileWatch::new(&file, Some(b"one".to_vec()));
        fs::write(dotfiles.join("mcp.json"), "two").unwrap();
        watch.changed(MOMENT).await;
    }
}
