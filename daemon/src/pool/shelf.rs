//! What was known of the servers when the daemon last ran, on disk: lists are served from it without
//! waking anyone. It can be thrown away at any time.

use crate::{
    mcp::{
        handshake::ServerInfo,
        lists::{Kind, List, definition},
        revision::Revision,
    },
    platform::{check_private, make_private},
    supervisor::lists::Lists,
};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::{
    fs, io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// Files of another form are not read.
const VERSION: u32 = 3;

/// How many servers, in how many folders, are remembered.
const MAX_FILES: usize = 1000;

/// No list is longer.
const MAX_FILE: u64 = 64 * 1024 * 1024;

/// The folder that the lists are kept in.
#[derive(Debug, Clone)]
pub struct Shelf {
    folder: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct File<'a> {
    version: u32,
    /// For people who look into the folder.
    server: &'a str,
    asks: bool,
    #[serde(borrow)]
    info: Info<'a>,
    #[serde(borrow)]
    tools: Kept<'a>,
    #[serde(borrow)]
    resources: Option<Kept<'a>>,
    #[serde(borrow)]
    templates: Option<Kept<'a>>,
    #[serde(borrow)]
    prompts: Option<Kept<'a>>,
}

#[derive(Serialize, Deserialize)]
struct Kept<'a> {
    #[serde(borrow)]
    entries: Vec<&'a RawValue>,
    warnings: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct Info<'a> {
    name: String,
    version: String,
    title: String,
    protocol_version: String,
    instructions: String,
    #[serde(borrow)]
    capabilities: &'a RawValue,
}

impl Shelf {
    /// In this folder, which is made when there is something to keep.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// What is kept under this name. Whatever is wrong with it, there is nothing then.
    pub fn read(&self, identity: &str) -> Lists {
        let path = self.path(identity);
        // A link or a pipe is not ours, and a folder that others can write holds what they want.
        let meta = fs::symlink_metadata(&path);
        let is_ours = meta.is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_FILE)
            && check_private(&self.folder).is_ok();
        let kept = || parse(&fs::read(&path).ok()?);
        is_ours.then(kept).flatten().unwrap_or_default()
    }

    /// Keeps it. Whoever reads meanwhile sees the old or the new, and never a part.
    pub fn write(&self, identity: &str, server: &str, lists: &Lists) -> io::Result<()> {
        let Some(text) = print(server, lists) else {
            return Ok(()); // nothing is known yet
        };
        make_private(&self.folder)?;
        // A name of its own: two servers that run the same may write at the same time.
        static DRAFTS: AtomicU64 = AtomicU64::new(0);
        let n = DRAFTS.fetch_add(1, Ordering::Relaxed);
        let draft = self.folder.join(format!(".{}-{n}.new", std::process::id()));
        let written = crate::platform::write_through(&draft, &text);
        let kept = written.and_then(|()| fs::rename(&draft, self.path(identity)));
        if kept.is_err() {
            let _ = fs::remove_file(&draft);
        }
        kept
    }

    /// Throws away what has not been written for longest, when there is too much.
    pub fn tidy(&self) {
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut files: Vec<_> = files
            .filter_map(|file| Some((file.metadata().ok()?.modified().ok()?, file.path())))
            .collect();
        files.sort();
        let surplus = files.len().saturating_sub(MAX_FILES);
        for (_, path) in files.into_iter().take(surplus) {
            let _ = fs::remove_file(path);
        }
    }

    fn path(&self, identity: &str) -> PathBuf {
        self.folder.join(format!("{identity}.json"))
    }
}

fn parse(text: &[u8]) -> Option<Lists> {
    let file: File<'_> = serde_json::from_slice(text).ok()?;
    if file.version != VERSION {
        return None;
    }
    let mut lists = Lists::default();
    lists.info = Some(Arc::new(ServerInfo {
        name: file.info.name,
        version: file.info.version,
        title: file.info.title,
        revision: Revision::parse(&file.info.protocol_version)?,
        instructions: file.info.instructions,
        capabilities: Bytes::copy_from_slice(file.info.capabilities.get().as_bytes()),
    }));
    lists.asks = file.asks;
    let kept = [
        (Kind::Tools, Some(file.tools)),
        (Kind::Resources, file.resources),
        (Kind::Templates, file.templates),
        (Kind::Prompts, file.prompts),
    ];
    for (kind, kept) in kept {
        let Some(kept) = kept else { continue };
        let entries = kept.entries.into_iter().map(|raw| definition(kind, raw));
        let list = List {
            entries: entries.collect::<Option<_>>()?,
            warnings: kept.warnings,
        };
        lists.put(kind, list);
    }
    Some(lists)
}

/// `None` when there is nothing that would be worth it.
fn print(server: &str, lists: &Lists) -> Option<Vec<u8>> {
    fn raw(json: &Bytes) -> Option<&RawValue> {
        serde_json::from_slice(json).ok()
    }
    let info = lists.info.as_ref()?;
    if lists.of(Kind::Tools).error.is_some() {
        return None;
    }
    let kept = |kind| {
        let list = lists.of(kind).list.as_ref()?;
        let entries: Option<Vec<_>> = list.entries.iter().map(|entry| raw(&entry.json)).collect();
        Some(Kept {
            entries: entries?,
            warnings: list.warnings.clone(),
        })
    };
    let file = File {
        version: VERSION,
        server,
        asks: lists.asks,
        info: Info {
            name: info.name.clone(),
            version: info.version.clone(),
            title: info.title.clone(),
            protocol_version: info.revision.as_str().to_owned(),
            instructions: info.instructions.clone(),
            capabilities: raw(&info.capabilities)?,
        },
        tools: kept(Kind::Tools)?,
        resources: kept(Kind::Resources),
        templates: kept(Kind::Templates),
        prompts: kept(Kind::Prompts),
    };
    serde_json::to_vec(&file).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::handshake::Listed;

    fn kept() -> Lists {
        let tool = r#"{ "name":"a \"b\"","x":[1.50, 123456789012345678901234567890] }"#;
        let raw = serde_json::from_str(tool).unwrap();
        let mut lists = Lists::default();
        lists.asks = true;
        lists.info = Some(Arc::new(ServerInfo {
            name: "n".into(),
            version: "1".into(),
            title: String::new(),
            revision: Revision::V2025_11_25,
            instructions: "be kind".into(),
            capabilities: Bytes::from_static(br#"{"tools": {}}"#),
        }));
        let list = List {
            entries: vec![definition(Kind::Tools, raw).unwrap()],
            warnings: vec!["odd".into()],
        };
        lists.put(Kind::Tools, list);
        lists.put(Kind::Prompts, List::default());
        lists
    }

    fn tools(lists: &Lists) -> Option<Arc<List>> {
        lists.of(Kind::Tools).list.clone()
    }

    #[test]
    fn what_is_kept_comes_back_byte_for_byte() {
        let dir = tempfile::tempdir().unwrap();
        let shelf = Shelf::new(dir.path().join("a/b"));
        shelf.write("x", "server", &kept()).unwrap();
        let back = shelf.read("x");
        assert!(back.asks);
        assert_eq!(tools(&back), tools(&kept()));
        assert_eq!(back.of(Kind::Prompts).list, Some(Arc::default()));
        assert!(back.of(Kind::Resources).list.is_none());
        assert_eq!(back.info, kept().info);
        assert!(tools(&shelf.read("y")).is_none());
    }

    #[test]
    fn a_file_that_is_cut_off_anywhere_is_no_file() {
        let text = print("server", &kept()).unwrap();
        assert!(parse(&text).is_some());
        for end in 0..text.len() {
            assert!(parse(&text[..end]).is_none(), "{end}");
        }
    }

    #[test]
    fn what_could_not_be_listed_does_not_replace_what_could() {
        let dir = tempfile::tempdir().unwrap();
        let shelf = Shelf::new(dir.path().to_owned());
        shelf.write("x", "server", &kept()).unwrap();
        let mut failed = kept();
        failed.note(Listed {
            kind: Kind::Tools,
            list: Err("no".into()),
        });
        shelf.write("x", "server", &failed).unwrap();
        assert_eq!(tools(&shelf.read("x")), tools(&kept()));
    }

    #[test]
    fn only_so_many_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let shelf = Shelf::new(dir.path().join("lists"));
        shelf.write("first", "server", &kept()).unwrap();
        let old = std::time::SystemTime::UNIX_EPOCH;
        let first = fs::OpenOptions::new()
            .write(true)
            .open(dir.path().join("lists/first.json"));
        // Closed at once: a file that is open stays, on Windows.
        first.unwrap().set_modified(old).unwrap();
        for n in 0..MAX_FILES {
            fs::write(dir.path().join(format!("lists/{n}.json")), "").unwrap();
        }
        shelf.tidy();
        assert!(tools(&shelf.read("first")).is_none());
        assert_eq!(
            fs::read_dir(dir.path().join("lists")).unwrap().count(),
            MAX_FILES
        );
    }

    #[cfg(unix)]
    #[test]
    fn what_others_could_have_written_is_not_read() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("lists");
        let shelf = Shelf::new(folder.clone());
        shelf.write("x", "server", &kept()).unwrap();
        std::os::unix::fs::symlink(folder.join("x.json"), folder.join("link.json")).unwrap();
        assert!(tools(&shelf.read("link")).is_none());
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(tools(&shelf.read("x")).is_none());
        assert!(shelf.write("x", "server", &kept()).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_can_read_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("lists");
        Shelf::new(folder.clone())
            .write("x", "server", &kept())
            .unwrap();
        let mode =
            |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder), 0o700);
        assert_eq!(mode(&folder.join("x.json")), 0o600);
    }
}
