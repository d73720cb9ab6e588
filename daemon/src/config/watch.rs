//! Tells when one of the configuration files has been written.

use nexus_config::{belief, source::MAX_SIZE};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    io::Read as _,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};

/// How often the files are looked at though nothing has told of a change.
const LOOK: Duration = Duration::from_secs(5);

/// Watches files, for as long as it is held.
#[derive(Debug)]
pub struct FileWatch {
    files: Vec<(PathBuf, Option<Vec<u8>>)>,
    changes: mpsc::Receiver<()>,
    _watcher: Option<RecommendedWatcher>,
}

impl FileWatch {
    /// Watches these files, of which the content is known. Neither they nor their folders need be there yet.
    pub fn new(files: Vec<(PathBuf, Option<Vec<u8>>)>) -> Self {
        let (news, changes) = mpsc::channel(1);
        let places: Vec<PathBuf> = files.iter().flat_map(|(file, _)| places(file)).collect();
        let names: BTreeSet<OsString> = places
            .iter()
            .filter_map(|place| place.file_name().map(OsStr::to_owned))
            .collect();
        // Others may live in the same folder, and write all the time.
        let is_ours = move |event: &notify::Event| {
            let is_named =
                |path: &PathBuf| path.file_name().is_some_and(|name| names.contains(name));
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
        let folders: BTreeSet<&Path> = places
            .iter()
            .filter_map(|place| place.parent())
            .filter(|folder| !folder.as_os_str().is_empty())
            .collect();
        let watcher = watcher.map(|mut watcher| {
            for folder in folders {
                // Without it, changes are seen a little later.
                if let Err(error) = watcher.watch(folder, RecursiveMode::NonRecursive) {
                    let folder = folder.display();
                    tracing::debug!(%error, %folder, "a folder of the configuration cannot be watched");
                }
            }
            watcher
        });
        Self {
            files,
            changes,
            _watcher: watcher.ok(),
        }
    }

    /// Whether these are the files that it watches.
    pub fn is_of<'a>(&self, files: impl IntoIterator<Item = &'a Path>) -> bool {
        files
            .into_iter()
            .eq(self.files.iter().map(|(file, _)| file.as_path()))
    }

    /// Waits until there is something else in a file. An editor may take several steps for that: they
    /// are over when nothing happens for a moment, and taken to be over after eight.
    pub async fn changed(&mut self, moment: Duration) {
        loop {
            // First of all: they may have been written before they were watched.
            let mut has_changed = false;
            for (file, known) in &mut self.files {
                let content = read(file);
                has_changed |= content != *known;
                *known = content;
            }
            if has_changed {
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

/// What is in a file, as far as it was read before.
fn read(file: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let (file, _) = belief::open(file).ok()?;
    let mut limited = file.take(MAX_SIZE as u64 + 1);
    limited.read_to_end(&mut bytes).ok().map(|_| bytes)
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
    use std::fs;

    const MOMENT: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn every_way_to_write_a_file_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("mcp.json");
        let mut watch = FileWatch::new(vec![(file.clone(), None)]);
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
        let mut watch = FileWatch::new(vec![(file.clone(), Some(b"one".to_vec()))]);
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
        let mut watch = FileWatch::new(vec![(file.clone(), Some(b"one".to_vec()))]);
        watch.changed(MOMENT).await;
    }

    #[tokio::test]
    async fn neighbours_that_are_always_written_hide_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("mcp.json");
        let mut watch = FileWatch::new(vec![(file.clone(), None)]);
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
        let mut watch = FileWatch::new(vec![(file.clone(), None)]);
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
        let mut watch = FileWatch::new(vec![(file.clone(), Some(b"one".to_vec()))]);
        fs::write(dotfiles.join("mcp.json"), "two").unwrap();
        watch.changed(MOMENT).await;
    }
}
