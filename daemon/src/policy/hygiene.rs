//! What servers say of themselves, without what nobody sees and somebody acts on. Pure.
//!
//! A definition with nothing hostile in it stays byte for byte. In one that has, only the strings are written anew
//! that have it. Names are never mended: whoever calls by a mended name calls something else.

mod names;
mod strings;

use crate::mcp::{
    handshake::ServerInfo,
    lists::{Definition, Kind, List},
};
use bytes::Bytes;
use nexus_proto::{reason::Failure, text};
use std::borrow::Cow;

/// The longest name, in characters.
const MAX_NAME: usize = 128;

/// The longest text in a definition.
const MAX_TEXT: usize = 8 * 1024;

/// So many entries of one list are named in warnings.
const MAX_WARNINGS: usize = 20;

/// A list as agents may see it. What was wrong with it is among its warnings.
pub fn list(kind: Kind, list: List) -> List {
    let List { entries, warnings } = list;
    let mut warnings = Warnings {
        kind,
        told: warnings,
        count: 0,
    };
    let mut kept: Vec<Definition> = Vec::with_capacity(entries.len());
    for entry in entries {
        match why_not(kind, &entry.key) {
            Some(why) => warnings.left_out(&entry.key, why),
            None => kept.push(entry),
        }
    }
    if matches!(kind, Kind::Tools | Kind::Prompts) {
        for (at, other) in names::impostors(&kept).into_iter().rev() {
            let why = format!("its name looks like {other:?}");
            let impostor = kept.remove(at);
            warnings.left_out(&impostor.key, &why);
        }
    }
    for entry in &mut kept {
        if let Some(cleaned) = json(&entry.json) {
            entry.json = cleaned;
            warnings.cleaned(&entry.key);
        }
    }
    List {
        entries: kept,
        warnings: warnings.end(),
    }
}

/// What a server says of itself, as agents may see it.
pub fn info(mut info: ServerInfo) -> ServerInfo {
    for (text, max) in [
        (&mut info.name, MAX_NAME),
        (&mut info.version, MAX_NAME),
        (&mut info.title, MAX_NAME),
        (&mut info.instructions, usize::MAX),
    ] {
        mend(text);
        if let Some((end, _)) = text.char_indices().nth(max) {
            text.truncate(end);
        }
    }
    if let Some(cleaned) = json(&info.capabilities) {
        info.capabilities = cleaned;
    }
    info
}

/// A failure as anybody may see it: servers have a say in what it says.
pub fn failure(mut failure: Failure) -> Failure {
    mend(&mut failure.message);
    let details = &mut failure.details;
    let lines = [&mut details.stderr, &mut details.causes, &mut details.fixes];
    lines.into_iter().flatten().for_each(mend);
    let texts = [
        &mut details.hint,
        &mut details.exit,
        &mut details.suggestion,
    ];
    texts.into_iter().flatten().for_each(mend);
    if let Some(data) = &mut details.rpc_data
        && let Some(cleaned) = strings::cleaned(data, MAX_TEXT)
    {
        *data = cleaned;
    }
    failure
}

/// JSON text without anything hostile; `None` where it has nothing.
fn json(json: &Bytes) -> Option<Bytes> {
    let text = str::from_utf8(json).ok()?;
    strings::cleaned(text, MAX_TEXT).map(Bytes::from)
}

fn mend(text: &mut String) {
    if let Cow::Owned(cleaned) = text::clean(text) {
        *text = cleaned;
    }
}

/// Why there can be none of that name, if so.
fn why_not(kind: Kind, key: &str) -> Option<&'static str> {
    if !text::is_clean(key) || key.contains(['\n', '\t', '\r']) {
        return Some(match kind {
            Kind::Tools | Kind::Prompts => "its name has characters that nobody sees",
            Kind::Resources | Kind::Templates => "its URI has characters that nobody sees",
        });
    }
    let is_name = matches!(kind, Kind::Tools | Kind::Prompts);
    // Bytes first: characters need to be counted.
    (is_name && key.len() > MAX_NAME && key.chars().count() > MAX_NAME)
        .then_some("its name has more than 128 characters")
}

struct Warnings {
    kind: Kind,
    told: Vec<String>,
    count: usize,
}

impl Warnings {
    fn left_out(&mut self, key: &str, why: &str) {
        let (what, key) = (self.kind.plural(), shown(key));
        self.add(format!("\"{key}\" among its {what} is left out: {why}"));
    }

    fn cleaned(&mut self, key: &str) {
        let (what, key) = (self.kind.plural(), shown(key));
        self.add(format!(
            "\"{key}\" among its {what} is shown without characters that nobody sees, or that hide something, or shortened"
        ));
    }

    fn add(&mut self, warning: String) {
        self.count += 1;
        if self.count <= MAX_WARNINGS {
            self.told.push(warning);
        }
    }

    fn end(mut self) -> Vec<String> {
        if self.count > MAX_WARNINGS {
            let (more, what) = (self.count - MAX_WARNINGS, self.kind.plural());
            let warning =
                format!("{more} more of its {what} are left out or shown without something");
            self.told.push(warning);
        }
        self.told
    }
}

/// A name for people, with everything in it spelt out.
fn shown(key: &str) -> String {
    let mut shown = text::reveal(key).replace(['\n', '\t', '\r'], " ");
    if shown.len() > MAX_NAME {
        shown.truncate(shown.floor_char_boundary(MAX_NAME));
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests;
