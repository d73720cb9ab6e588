//! Results that are larger than they may be: refused, or cut so that they stay results. Pure.
//!
//! A result within the limit is never looked at. One that is cut keeps all of it that is small; text is cut at the end
//! of a character, what cannot be cut is left out, and each says so in its place.

use bytes::Bytes;
use nexus_config::policy::Oversize;
use nexus_proto::reason::{Failure, Reason};
use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};
use std::{borrow::Cow, collections::BTreeMap};

/// The largest result where nothing else is said.
pub const MAX_RESULT: usize = 10_000_000;

/// What the marks may take.
const MARKS: usize = 512;

/// Text is not cut to less than this: it is left out.
const LEAST: usize = 64;

/// What a result is the answer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `tools/call`: `content`, `structuredContent`.
    Call,
    /// `resources/read`: `contents`.
    Read,
    /// `prompts/get`: `messages`.
    Prompt,
}

/// The limit of a server.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    /// In bytes.
    pub max: usize,
    /// What becomes of a larger result.
    pub oversize: Oversize,
}

impl Limit {
    /// The result if it is small enough, or what becomes of it. `what` is what it is a result of, for people.
    pub fn apply(
        self,
        shape: Shape,
        result: Bytes,
        what: impl FnOnce() -> String,
    ) -> Result<Bytes, Failure> {
        if result.len() <= self.max {
            return Ok(result);
        }
        let cut = match self.oversize {
            Oversize::Refuse => None,
            Oversize::Truncate => cut(shape, &result, self.max),
        };
        cut.map(Bytes::from)
            .ok_or_else(|| self.too_large(result.len(), &what()))
    }

    fn too_large(self, length: usize, what: &str) -> Failure {
        let message = format!(
            "the result of {what} is too large: {}, the limit is {}",
            size(length),
            size(self.max)
        );
        Failure::new(Reason::TooLarge, message).with(|details| {
            details.maybe_executed = true;
            let hint = match self.oversize {
                Oversize::Refuse => {
                    "ask for less, raise \"max_result\" of the server or in [policy] of nexus.toml, or have it cut \
                     with \"oversize\": \"truncate\""
                }
                Oversize::Truncate => {
                    "there is no text in it that could be cut: raise \"max_result\" of the server or in [policy] of \
                     nexus.toml"
                }
            };
            details.hint = Some(hint.to_owned());
        })
    }
}

/// The result with as much of it as fits; `None` where there is no cutting it.
fn cut(shape: Shape, result: &[u8], max: usize) -> Option<Vec<u8>> {
    let members: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_slice(result).ok()?;
    // A question is no result: half of it cannot be answered.
    if members
        .get("resultType")
        .is_some_and(|kind| kind.get() != "\"complete\"")
    {
        return None;
    }
    let list = match shape {
        Shape::Call => "content",
        Shape::Read => "contents",
        Shape::Prompt => "messages",
    };
    let items: Vec<&RawValue> = match members.get(list) {
        Some(items) => serde_json::from_str(items.get()).ok()?,
        None => Vec::new(),
    };
    let cost = |name: &str, value: &RawValue| name.len() + value.get().len() + 4;
    let mut fixed = 2 + list.len() + 6;
    let mut kept = Vec::new();
    let mut left_out = Vec::new();
    for (name, value) in &members {
        if name == list {
            continue;
        }
        // As a rule it says the same as the text once more, which is of use to more clients.
        if shape == Shape::Call && name == "structuredContent" && cost(name, value) > max / 2 {
            left_out.push(format!("structuredContent ({})", size(value.get().len())));
            continue;
        }
        fixed += cost(name, value) + name.len();
        kept.push((name, *value));
    }
    let room = max.checked_sub(fixed + MARKS)?;
    let mut cutter = Cutter {
        shape,
        room,
        whole: result.len(),
        max,
        out: Vec::new(),
        dropped: 0,
    };
    items.iter().for_each(|item| cutter.add(item));
    if cutter.dropped > 0 {
        left_out.push(format!("{} more items", cutter.dropped));
    }
    if !left_out.is_empty() {
        let uri = items
            .first()
            .and_then(|item| Resource::read(item))
            .map(|resource| resource.uri);
        let text = format!("[left out by Nexus: {}]", left_out.join(", "));
        cutter.out.push(note(shape, uri.unwrap_or_default(), &text));
    }
    let mut text = format!("{{\"{list}\":[{}]", cutter.out.join(","));
    for (name, value) in kept {
        text += &format!(",{}:{}", Value::from(&**name), value.get());
    }
    text.push('}');
    (text.len() <= max).then(|| text.into_bytes())
}

/// Takes items while there is room.
struct Cutter {
    shape: Shape,
    room: usize,
    whole: usize,
    max: usize,
    out: Vec<String>,
    dropped: usize,
}

impl Cutter {
    fn add(&mut self, item: &RawValue) {
        let fits = |text: &String| text.len() < self.room;
        let whole = item.get().to_owned();
        let taken = Some(whole)
            .filter(fits)
            .or_else(|| self.shortened(item).filter(fits))
            .or_else(|| self.replaced(item).filter(fits));
        match taken {
            Some(text) => {
                self.room -= text.len() + 1;
                self.out.push(text);
            }
            None => self.dropped += 1,
        }
    }

    /// The item with less text, if it has text.
    fn shortened(&self, item: &RawValue) -> Option<String> {
        let mut item: Map<String, Value> = serde_json::from_str(item.get()).ok()?;
        let holder = match self.shape {
            Shape::Call => content(&mut item)?,
            Shape::Prompt => content(item.get_mut("content")?.as_object_mut()?)?,
            Shape::Read => &mut item,
        };
        let Value::String(text) = holder.get_mut("text")?.take() else {
            return None;
        };
        let mark = format!(
            "… [cut by Nexus: {} of {}]",
            size(self.max),
            size(self.whole)
        );
        holder.insert("text".to_owned(), json!(mark));
        let around = Value::Object(item.clone()).to_string().len();
        let room = self
            .room
            .checked_sub(around + 1)
            .filter(|room| *room >= LEAST)?;
        let head = head(&text, room);
        // Once more, because the holder lent it away.
        let holder = match self.shape {
            Shape::Call => content(&mut item)?,
            Shape::Prompt => content(item.get_mut("content")?.as_object_mut()?)?,
            Shape::Read => &mut item,
        };
        holder.insert("text".to_owned(), json!(format!("{head}{mark}")));
        Some(Value::Object(item).to_string())
    }

    /// What stands for an item that cannot be cut.
    fn replaced(&self, item: &RawValue) -> Option<String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct About<'a> {
            #[serde(borrow, default)]
            r#type: Option<Cow<'a, str>>,
            #[serde(borrow, default)]
            mime_type: Option<Cow<'a, str>>,
        }
        #[derive(Deserialize)]
        struct Message<'a> {
            #[serde(borrow)]
            content: &'a RawValue,
        }
        let inner = match self.shape {
            Shape::Prompt => {
                serde_json::from_str::<Message<'_>>(item.get())
                    .ok()?
                    .content
            }
            Shape::Call | Shape::Read => item,
        };
        let about: About<'_> = serde_json::from_str(inner.get()).ok()?;
        let kind = about.mime_type.or(about.r#type).unwrap_or("data".into());
        let kind: String = kind.chars().take(64).collect();
        let text = format!("[left out by Nexus: {kind}, {}]", size(item.get().len()));
        let uri = Resource::read(item).map(|resource| resource.uri);
        Some(note(self.shape, uri.unwrap_or_default(), &text))
    }
}

#[derive(Deserialize)]
struct Resource<'a> {
    #[serde(borrow)]
    uri: Cow<'a, str>,
}

impl<'a> Resource<'a> {
    fn read(item: &'a RawValue) -> Option<Self> {
        serde_json::from_str(item.get()).ok()
    }
}

/// What holds the text of a content: itself, or the resource in it.
fn content(item: &mut Map<String, Value>) -> Option<&mut Map<String, Value>> {
    match item.get("type").and_then(Value::as_str) {
        Some("text") => Some(item),
        Some("resource") => item.get_mut("resource")?.as_object_mut(),
        _ => None,
    }
}

/// An item of this shape that is a text.
fn note(shape: Shape, uri: Cow<'_, str>, text: &str) -> String {
    let content = json!({"type": "text", "text": text});
    match shape {
        Shape::Call => content,
        Shape::Prompt => json!({"role": "user", "content": content}),
        Shape::Read => json!({"uri": uri, "mimeType": "text/plain", "text": text}),
    }
    .to_string()
}

/// As much of the text as takes no more than this in JSON.
fn head(text: &str, room: usize) -> &str {
    let mut taken = 0;
    for (at, c) in text.char_indices() {
        taken += match c {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            '\0'..'\u{20}' => 6,
            c => c.len_utf8(),
        };
        if taken > room {
            return &text[..at];
        }
    }
    text
}

/// A size for people.
fn size(bytes: usize) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests;
