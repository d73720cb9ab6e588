//! The servers: which there are, how each misbehaves, and what they wrote down.

use crate::{
    history::Execution,
    support::{Home, NEXUSD},
};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// A server that comes and goes with the configuration.
pub(crate) const GUEST: &str = "guest";

/// The servers of a run.
#[derive(Debug, Clone)]
pub(crate) struct Roster {
    folder: PathBuf,
    config_file: PathBuf,
    planned: Vec<Planned>,
    /// In the environment of all of them.
    pub(crate) mark: Option<(String, String)>,
}

/// A name, arguments, and whether a shell stands between.
#[derive(Debug, Clone)]
struct Planned {
    name: String,
    args: String,
    wrapped: bool,
}

/// The names, and what is special about each. Those that end do so again and again: a process counts
/// from one.
const MIXED: &[(&str, &str, bool)] = &[
    ("plain-a", "", false),
    ("exit-after", "--fault exit-after@60", false),
    (
        "hang",
        "--fault hang@40 --fault hang@160 --fault dup-response@20 --fault string-id@60",
        false,
    ),
    ("wrapped", "--fault grandchild@600", true),
    ("banner", "--fault banner", false),
    ("plain-b", "", false),
    ("crlf", "--fault crlf", false),
    ("legacy", "--era legacy", false),
    ("plain-c", "", false),
    ("exit", "--fault exit@400", false),
    ("exit-idle", "--fault exit-idle@350", false),
    ("segv", "--fault segv@450", false),
    ("no-newline", "--fault no-newline-exit@300", false),
    (
        "dup",
        "--fault dup-response@20 --fault dup-response@90",
        false,
    ),
    ("unknown-id", "--fault unknown-id", false),
    (
        "string-id",
        "--fault string-id@70 --fault null-id@120",
        false,
    ),
    (
        "late",
        "--fault late@30 --fault late@90 --fault late@91",
        false,
    ),
    ("wrapped-exit-after", "--fault exit-after@250", true),
    ("deaf", "--fault ignore-term", false),
    (
        "wrapped-deaf",
        "--fault ignore-term --fault grandchild@600",
        true,
    ),
];

/// Those that do not go by themselves, in turns.
const STUBBORN: &[(&str, bool)] = &[
    ("", false),
    ("--fault ignore-term", true),
    ("--fault ignore-term --fault grandchild@600", false),
    ("", true),
    ("--fault ignore-term", false),
    ("--fault grandchild@600", true),
];

impl Roster {
    /// The first `n` of a mixed company.
    pub(crate) fn mixed(home: &Home, n: usize) -> Self {
        let planned = MIXED.iter().take(n).map(|(name, args, wrapped)| Planned {
            name: (*name).to_owned(),
            args: (*args).to_owned(),
            wrapped: *wrapped,
        });
        Self::of(home, planned.collect())
    }

    /// `n` servers that are hard to end.
    pub(crate) fn stubborn(home: &Home, n: usize) -> Self {
        let turns = STUBBORN.iter().cycle().take(n).enumerate();
        let planned = turns.map(|(i, (args, wrapped))| Planned {
            name: format!("s{i:02}"),
            args: (*args).to_owned(),
            wrapped: *wrapped,
        });
        Self::of(home, planned.collect())
    }

    fn of(home: &Home, planned: Vec<Planned>) -> Self {
        let folder = home.path().join("journals");
        fs::create_dir_all(&folder).unwrap();
        Self {
            folder,
            config_file: home.config_file(),
            planned,
            mark: None,
        }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.planned.iter().map(|p| p.name.clone()).collect()
    }

    /// Writes the configuration, with the guest or without, at once: it may be read at any moment.
    pub(crate) fn configure(&self, with_guest: bool) {
        let guest = Planned {
            name: GUEST.to_owned(),
            args: String::new(),
            wrapped: false,
        };
        let planned = self.planned.iter().chain(with_guest.then_some(&guest));
        let servers: serde_json::Map<_, _> = planned
            .map(|planned| (planned.name.clone(), self.config(planned)))
            .collect();
        let new = self.config_file.with_extension("new");
        fs::create_dir_all(self.config_file.parent().unwrap()).unwrap();
        fs::write(&new, json!({ "mcpServers": servers }).to_string()).unwrap();
        fs::rename(new, &self.config_file).unwrap();
    }

    fn config(&self, planned: &Planned) -> Value {
        let Planned {
            name,
            args,
            wrapped,
        } = planned;
        let journal = self.folder.join(name);
        let mut words = vec!["demo-server", "--tools", "1", "--journal"];
        words.push(journal.to_str().unwrap());
        words.extend(args.split_ascii_whitespace());
        let mut config = if *wrapped {
            let words = words.join("' '");
            json!({"command": "sh", "args": ["-c", format!("'{NEXUSD}' '{words}'; true")]})
        } else {
            json!({"command": NEXUSD, "args": words})
        };
        if let Some((name, value)) = &self.mark {
            config["env"] = json!({ name: value });
        }
        config
    }

    /// All that the servers wrote down. To be read when none of them lives any more.
    pub(crate) fn executions(&self) -> Vec<Execution> {
        let names = self.names();
        let names = names.iter().map(String::as_str).chain([GUEST]);
        names.flat_map(|name| journal(&self.folder, name)).collect()
    }
}

fn journal(folder: &Path, server: &str) -> Vec<Execution> {
    let text = fs::read_to_string(folder.join(server)).unwrap_or_default();
    let line = |line: &str| {
        let mut fields = line.split('\t');
        Some(Execution {
            server: server.to_owned(),
            unix_ms: fields.next()?.parse().ok()?,
            pid: fields.next()?.parse().ok()?,
            tool: fields.next()?.to_owned(),
            nonce: fields.next()?.to_owned(),
        })
    };
    let executions = text
        .lines()
        .map(|text| line(text).expect("a journal's line is whole"));
    // Calls without a nonce are those that look whether a server answers.
    executions
        .filter(|execution| execution.nonce != "-")
        .collect()
}
