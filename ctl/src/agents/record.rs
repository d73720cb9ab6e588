//! What was done to files of others, so that it can be undone byte for byte.

use crate::output::time;
use nexus_config::{layers::Places, trust};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

/// All that was done, the latest last.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Records {
    agents: BTreeMap<String, Vec<Record>>,
}

/// One file that was written.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Which file.
    pub(crate) path: PathBuf,
    /// What was in it before; nothing, if there was no such file.
    pub(crate) backup: Option<PathBuf>,
    /// What was written is known by this.
    pub(crate) written: String,
}

fn folder() -> io::Result<PathBuf> {
    let state = Places::ours().state;
    state.ok_or_else(|| io::Error::other("there is no place to keep backups: HOME is not set"))
}

impl Records {
    pub(crate) fn read() -> io::Result<Self> {
        match fs::read(folder()?.join("connect.json")) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    fn write(&self) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        trust::replace(&folder()?.join("connect.json"), text.as_bytes(), 0o600)
    }

    /// The latest of an agent.
    pub(crate) fn last(&self, agent: &str) -> Option<&Record> {
        self.agents.get(agent)?.last()
    }

    /// Writes a file of an agent, after what was in it has been put aside.
    pub(crate) fn replace(
        &mut self,
        agent: &str,
        path: &Path,
        before: Option<&[u8]>,
        after: &[u8],
    ) -> io::Result<Option<PathBuf>> {
        let folder = folder()?.join("backups");
        create_private(&folder)?;
        let backup = match before {
            Some(before) => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let stamp = time::rfc3339(SystemTime::now()).replace(':', "-");
                let backup = folder.join(format!("{agent}-{stamp}-{name}"));
                trust::replace(&backup, before, 0o600)?;
                Some(backup)
            }
            None => None,
        };
        let record = Record {
            path: path.to_owned(),
            backup: backup.clone(),
            written: trust::hash(after),
        };
        // Known before it is done: what was written and is not known could not be undone.
        self.agents
            .entry(agent.to_owned())
            .or_default()
            .push(record);
        self.write()?;
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        write_as_it_was(path, after)?;
        Ok(backup)
    }

    /// Puts back what was there. Refuses where somebody has changed it since, unless forced.
    pub(crate) fn undo(&mut self, agent: &str, force: bool) -> io::Result<Undone> {
        let Some(record) = self.last(agent).cloned() else {
            return Ok(Undone::Nothing);
        };
        let now = match fs::read(&record.path) {
            Ok(now) => Some(now),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let is_ours = now
            .as_deref()
            .is_some_and(|now| trust::hash(now) == record.written);
        if !is_ours && !force {
            return Ok(Undone::Changed(record));
        }
        match &record.backup {
            Some(backup) => write_as_it_was(&record.path, &fs::read(backup)?)?,
            None if now.is_some() => fs::remove_file(&record.path)?,
            None => {}
        }
        if let Some(records) = self.agents.get_mut(agent) {
            records.pop();
        }
        self.write()?;
        Ok(Undone::Done(record))
    }
}

/// What became of it.
pub(crate) enum Undone {
    /// It is as it was.
    Done(Record),
    /// There is nothing to undo.
    Nothing,
    /// It has changed since.
    Changed(Record),
}

/// With the permissions that it had.
pub(crate) fn write_as_it_was(path: &Path, content: &[u8]) -> io::Result<()> {
    #[cfg(unix)]
    let mode = {
        use std::os::unix::fs::PermissionsExt as _;
        fs::metadata(path).map_or(0o600, |meta| meta.permissions().mode() & 0o777)
    };
    #[cfg(not(unix))]
    let mode = 0;
    trust::replace(path, content, mode)?;
    // Whatever the umask took away.
    #[cfg(unix)]
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode))?;
    Ok(())
}

pub(crate) fn create_private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
