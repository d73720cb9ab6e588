//! Tools are held to what they were when they were first seen, or approved of.

mod canonical;
mod file;
mod record;

pub use record::Change;

use crate::{config::ServerConfig, mcp::lists::List};
use nexus_config::policy::Pins as Mode;
use nexus_proto::reason::{Failure, Reason};
use parking_lot::Mutex;
use record::Record;
use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Weak,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
};
use tracing::{error, warn};

/// So many tools of one server are named in warnings.
const MAX_NAMED: usize = 20;

/// What was approved of, of all servers. Clones share it.
#[derive(Debug, Clone)]
pub struct Pins(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    mode: AtomicU8,
    /// Another whenever what is held back may be another.
    revision: AtomicU64,
    servers: Mutex<HashMap<String, Server>>,
    folder: Option<PathBuf>,
    /// Held by whoever writes: the last to write has the latest.
    writing: Mutex<()>,
}

#[derive(Debug, Default)]
struct Server {
    record: Record,
    /// Why what was written down cannot be read.
    damage: Option<String>,
    is_being_written: bool,
    has_news: bool,
    judged: Vec<(Weak<List>, u64, Arc<Judgement>)>,
}

/// What has changed in one list.
#[derive(Debug, Default, PartialEq)]
pub struct Judgement {
    /// The tools that are not what was approved of.
    pub changes: Vec<Change>,
    /// They are held back.
    pub holds: bool,
    /// Why it is not known what was approved of.
    pub damage: Option<String>,
}

impl Judgement {
    /// The tool of that name, if it is held back.
    pub fn held(&self, tool: &str) -> Option<&Change> {
        let mut changes = self.changes.iter().filter(|_| self.holds);
        changes.find(|change| change.tool == tool)
    }

    /// The tools that are held back.
    pub fn held_tools(&self) -> impl Iterator<Item = &str> {
        let changes = self.changes.iter().filter(|_| self.holds);
        changes.map(|change| change.tool.as_str())
    }

    /// What the operator is to be told of a server, whose tools are called after `slug`.
    pub fn warnings(&self, slug: &str) -> Vec<String> {
        let damage = self.damage.iter().map(|damage| {
            format!("what its tools are held to is lost, so that all of them wait for approval: {damage}")
        });
        let held = if self.holds { ", and held back" } else { "" };
        // Another command is one thing to look at, however many tools there are.
        let commands = self.changes.iter().filter(|it| it.other_command).count();
        let (by_command, by_itself): (Vec<_>, Vec<_>) = self
            .changes
            .iter()
            .partition(|change| change.other_command && commands > 1);
        let all = by_command.first().map(|change| {
            let (n, what) = (by_command.len(), change.what());
            format!(
                "{n} of its tools are not what was approved of{held} ({what}): `nexusctl approve {slug}`"
            )
        });
        let named = by_itself.iter().take(MAX_NAMED).map(|change| {
            let (tool, what) = (&change.tool, change.what());
            format!(
                "the tool {tool:?} is not what was approved of{held} ({what}): `nexusctl approve {slug}.{tool}`"
            )
        });
        let more = by_itself.len().saturating_sub(MAX_NAMED);
        let more = (more > 0).then(|| {
            format!("{more} more of its tools are not what was approved of{held}: `nexusctl approve {slug}`")
        });
        damage.chain(all).chain(named).chain(more).collect()
    }

    /// What to tell somebody who wants a tool that is held back.
    pub fn refusal(config: &ServerConfig, change: &Change) -> Failure {
        let (slug, tool) = (&config.slug, &change.tool);
        let message = format!(
            "the tool {slug}.{tool} is held back until somebody approves of it: it is not what it was"
        );
        Failure::new(Reason::ToolChanged, message).with(|details| {
            details.server = Some(config.name.clone());
            details.tool = Some(tool.clone());
            details.causes = vec![change.what()];
            let hint = format!(
                "look at what has changed, and approve of it: `nexusctl approve {slug}.{tool}`"
            );
            details.hint = Some(hint);
        })
    }
}

impl Pins {
    /// What is kept in this folder. Nobody looks until somebody says how closely.
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self(Arc::new(Shared {
            mode: AtomicU8::new(Mode::Off as u8),
            revision: AtomicU64::new(0),
            servers: Mutex::default(),
            folder,
            writing: Mutex::default(),
        }))
    }

    /// What becomes of tools that change, from now on. Whether that is new.
    pub fn set_mode(&self, mode: Mode) -> bool {
        let before = self.0.mode.swap(mode as u8, Ordering::Relaxed);
        let is_new = before != mode as u8;
        if is_new {
            self.advance();
        }
        is_new
    }

    /// Another whenever what is held back may be another.
    pub fn revision(&self) -> u64 {
        self.0.revision.load(Ordering::Acquire)
    }

    fn advance(&self) {
        self.0.revision.fetch_add(1, Ordering::Release);
    }

    /// What has changed in a list of tools. What is seen for the first time is taken down.
    pub fn judge(&self, config: &ServerConfig, list: &Arc<List>) -> Arc<Judgement> {
        let mode = self.0.mode.load(Ordering::Relaxed);
        if mode == Mode::Off as u8 {
            return Arc::default();
        }
        let revision = self.revision();
        let key = key_of(config);
        let mut servers = self.0.servers.lock();
        let server = self.server(&mut servers, &key);
        let is_it = |(known, at, _): &&(Weak<List>, u64, Arc<Judgement>)| {
            *at == revision && std::ptr::eq(known.as_ptr(), Arc::as_ptr(list))
        };
        if let Some((_, _, judgement)) = server.judged.iter().find(is_it) {
            return Arc::clone(judgement);
        }
        let (changes, news) = server.record.look(&config.run_identity(), list);
        let judgement = Arc::new(Judgement {
            changes,
            holds: mode == Mode::Block as u8,
            damage: server.damage.clone(),
        });
        server
            .judged
            .retain(|(known, at, _)| *at == revision && known.strong_count() > 0);
        server
            .judged
            .push((Arc::downgrade(list), revision, Arc::clone(&judgement)));
        if news {
            self.write_soon(&key, server);
        }
        judgement
    }

    /// Approves of what has changed in these lists of one server, as far as it is wanted. How many tools that are.
    pub async fn approve(
        &self,
        config: &ServerConfig,
        lists: &[Arc<List>],
        is_wanted: impl Fn(&Change) -> bool + Send,
    ) -> io::Result<usize> {
        let (key, command) = (key_of(config), config.run_identity());
        let approved = {
            let mut servers = self.0.servers.lock();
            let server = self.server(&mut servers, &key);
            let mut approved: Vec<String> = Vec::new();
            for list in lists {
                let (changes, _) = server.record.look(&command, list);
                for change in changes.into_iter().filter(&is_wanted) {
                    server.record.approve(&command, &change);
                    approved.push(change.tool);
                }
            }
            let waits = |list: &Arc<List>| !server.record.look(&command, list).0.is_empty();
            if !approved.is_empty() && !lists.iter().any(waits) {
                server.record.settle(&command);
                server.damage = None;
            }
            approved.sort();
            approved.dedup();
            approved.len()
        };
        self.advance();
        if approved > 0 {
            let pins = self.clone();
            let written = tokio::task::spawn_blocking(move || pins.write(&key)).await;
            written.map_err(io::Error::other)??;
        }
        Ok(approved)
    }

    /// What is known of a server: from memory, or from disk.
    fn server<'a>(&self, servers: &'a mut HashMap<String, Server>, key: &str) -> &'a mut Server {
        let folder = self.0.folder.as_deref();
        servers.entry(key.to_owned()).or_insert_with(|| {
            folder
                .map(|folder| Server::read(folder, key))
                .unwrap_or_default()
        })
    }

    /// Has it written without anybody waiting for it.
    fn write_soon(&self, key: &str, server: &mut Server) {
        server.has_news = true;
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        if self.0.folder.is_none() || std::mem::replace(&mut server.is_being_written, true) {
            return;
        }
        let (pins, key) = (self.clone(), key.to_owned());
        runtime.spawn_blocking(move || {
            while pins.has_news(&key) {
                if let Err(error) = pins.write(&key) {
                    warn!(server = key, %error, "what its tools are held to cannot be kept on disk");
                }
            }
        });
    }

    /// Whether there is something to write; if not, nobody writes any more.
    fn has_news(&self, key: &str) -> bool {
        let mut servers = self.0.servers.lock();
        let Some(server) = servers.get_mut(key) else {
            return false;
        };
        server.is_being_written = std::mem::take(&mut server.has_news);
        server.is_being_written
    }

    fn write(&self, key: &str) -> io::Result<()> {
        let Some(folder) = &self.0.folder else {
            return Ok(());
        };
        let _turn = self.0.writing.lock();
        let record = self
            .0
            .servers
            .lock()
            .get(key)
            .map(|server| server.record.clone());
        record.map_or(Ok(()), |record| file::write(folder, key, &record))
    }
}

impl Server {
    fn read(folder: &Path, key: &str) -> Self {
        match file::read(folder, key) {
            Ok(record) => Self {
                record: record.unwrap_or_default(),
                ..Self::default()
            },
            Err(why) => {
                let path = file::path(folder, key);
                let damage = format!("{} cannot be read: {why}", path.display());
                error!(
                    server = key,
                    damage, "what its tools are held to is lost: all of them wait for approval"
                );
                Self {
                    record: Record {
                        lost: true,
                        ..Record::default()
                    },
                    damage: Some(damage),
                    ..Self::default()
                }
            }
        }
    }
}

/// What a server is remembered by: its name, and the folder of its project.
fn key_of(config: &ServerConfig) -> String {
    match &config.scope.folder {
        None => config.name.clone(),
        // Of several of one name, each has its folder in the name already.
        Some(folder) if config.name.ends_with(&format!("({})", folder.display())) => {
            config.name.clone()
        }
        Some(folder) => format!("{} ({})", config.name, folder.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn another_command_is_told_once_and_other_changes_one_by_one() {
        let change = |tool: &str, other_command| Change {
            tool: tool.to_owned(),
            approved: Some(Bytes::from_static(br#"{"name":"t","description":"old"}"#)),
            now: Bytes::from_static(br#"{"name":"t","description":"new"}"#),
            other_command,
        };
        let mut judgement = Judgement {
            changes: vec![
                change("one", true),
                change("two", true),
                change("three", false),
            ],
            ..Judgement::default()
        };
        assert_eq!(
            judgement.warnings("mail"),
            [
                "2 of its tools are not what was approved of (its server is run by another command): `nexusctl approve mail`",
                "the tool \"three\" is not what was approved of (other than before: description): `nexusctl approve mail.three`",
            ]
        );
        judgement.changes.remove(1);
        assert!(judgement.warnings("mail")[0].starts_with("the tool \"one\" is"));
        judgement.changes.truncate(1);
        judgement.holds = true;
        assert_eq!(
            judgement.warnings("mail"),
            [
                "the tool \"one\" is not what was approved of, and held back (its server is run by another command): `nexusctl approve mail.one`"
            ]
        );
    }
}
