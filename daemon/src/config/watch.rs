//! Tells when a configuration file has been written.

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};
use tokio::sync::mpsc;

/// Watches one file, for as long as it is held.
#[derive(Debug)]
pub struct FileWatch {
    file: PathBuf,
    text: Option<Vec<u8>>,
    changes: mpsc::Receiver<()>,
    _watcher: RecommendedWatcher,
}

impl FileWatch {
    /// Watches this file, which need not be there yet; the folder it belongs in has to.
    pub fn new(file: &Path) -> notify::Result<Self> {
        let (news, changes) = mpsc::channel(1);
        let mut watcher =
            notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
                let is_change = |kind: &EventKind| !matches!(kind, EventKind::Access(_));
                if event.map_or(true, |event| is_change(&event.kind)) {
                    // One that waits to be seen is enough.
                    let _ = news.try_send(());
                }
            })?;
        for folder in folders(file) {
            watcher.watch(&folder, RecursiveMode::NonRecursive)?;
        }
        Ok(Self {
            text: fs::read(file).ok(),
            file: file.to_owned(),
            changes,
            _watcher: watcher,
        })
    }

    /// Waits until there is something else in the file. An editor may take several steps for that: they
    /// are over when nothing happens for a moment.
    pub async fn changed(&mut self, moment: std::time::Duration) {
        loop {
            if self.changes.recv().await.is_none() {
                return std::future::pending().await;
            }
            while tokio::time::timeout(moment, self.changes.recv())
                .await
                .is_ok()
            {}
            let text = fs::read(&self.file).ok();
            if text != self.text {
                self.text = text;
                return;
            }
        }
    }
}

/// Not the file itself is watched: an editor puts a new one in its place. Behind a link, both places.
fn folders(file: &Path) -> BTreeSet<PathBuf> {
    let real = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let folder = |path: &Path| path.parent().map(Path::to_owned);
    [file, &real]
        .into_iter()
        .filter_map(folder)
        .filter(|folder| !folder.as_os_str().is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const MOMENT: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn every_way_to_write_a_file_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("mcp.json");
        let mut watch = FileWatch::new(&file).unwrap();
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
        let mut watch = FileWatch::new(&file).unwrap();
        fs::write(&file, "one").unwrap();
        fs::write(dir.path().join("other"), "").unwrap();
        let changed = tokio::time::timeout(Duration::from_millis(200), watch.changed(MOMENT));
        assert!(changed.await.is_err());
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
        let mut watch = FileWatch::new(&file).unwrap();
        fs::write(dotfiles.join("mcp.json"), "two").unwrap();
        watch.changed(MOMENT).await;
    }
}
