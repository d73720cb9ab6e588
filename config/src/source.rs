//! The text of a file, and where it came from. Pure.

use crate::{diagnosis::Diagnosis, layers::workspace_of, node::Span};
use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

/// No configuration is larger. What is, is something else.
pub const MAX_SIZE: usize = 4 * 1024 * 1024;

/// No file of another program is larger: some keep their history beside their servers.
pub const MAX_FOREIGN: usize = 64 * 1024 * 1024;

/// Which of the files wins: a later layer over an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// For everybody on this machine.
    System,
    /// The user's own.
    User,
    /// Beside the files of a project.
    Project,
    /// The one that was asked for by name; no other counts then.
    Asked,
}

impl Layer {
    /// As people call it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Project => "project",
            Self::Asked => "given by name",
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON, with comments and trailing commas.
    Json,
    /// YAML.
    Yaml,
    /// TOML.
    Toml,
}

impl Format {
    /// What the name of a file says.
    pub fn of(path: &Path) -> Self {
        let ending = path.extension().and_then(|ending| ending.to_str());
        match ending.unwrap_or_default().to_ascii_lowercase().as_str() {
            "yaml" | "yml" => Self::Yaml,
            "toml" => Self::Toml,
            _ => Self::Json,
        }
    }

    /// As people call it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Json => "JSON",
            Self::Yaml => "YAML",
            Self::Toml => "TOML",
        }
    }
}

/// A file that was read.
#[derive(PartialEq, Eq)]
pub struct Source {
    /// Where it is.
    pub path: PathBuf,
    /// Which files it wins over.
    pub layer: Layer,
    /// How it is written.
    pub format: Format,
    /// What is in it.
    pub text: String,
}

/// Not the text: it may hold secrets.
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("path", &self.path)
            .field("layer", &self.layer)
            .finish_non_exhaustive()
    }
}

impl Source {
    /// A file of which the text is known.
    pub fn new(path: impl Into<PathBuf>, layer: Layer, text: impl Into<String>) -> Arc<Self> {
        let path = path.into();
        Arc::new(Self {
            format: Format::of(&path),
            path,
            layer,
            text: text.into(),
        })
    }

    /// A file of which the content is known: UTF-8 or UTF-16, with or without a mark of that.
    pub fn of_bytes(path: &Path, layer: Layer, bytes: &[u8]) -> Result<Arc<Self>, Box<Diagnosis>> {
        if bytes.len() > MAX_SIZE {
            let empty = Self::new(path, layer, "");
            let megabytes = bytes.len() / (1024 * 1024);
            return Err(Box::new(
                Diagnosis::error(
                    "config::too-large",
                    format!("the file is too large for a configuration ({megabytes} MiB)"),
                )
                .in_file(&empty)
                .note(format!(
                    "no configuration may have more than {} MiB",
                    MAX_SIZE / (1024 * 1024)
                ))
                .fix("is it the right file?"),
            ));
        }
        Self::of_foreign(path, layer, bytes)
    }

    /// The same for the file of another program, which may be larger.
    pub fn of_foreign(
        path: &Path,
        layer: Layer,
        bytes: &[u8],
    ) -> Result<Arc<Self>, Box<Diagnosis>> {
        match decode(bytes) {
            Ok(text) => Ok(Self::new(path, layer, text)),
            Err(valid) => {
                let shown = String::from_utf8_lossy(&bytes[..valid]);
                let line = shown.matches('\n').count() + 1;
                Err(Box::new(
                    Diagnosis::error(
                        "config::not-text",
                        format!("the file is not text: line {line} is not UTF-8"),
                    )
                    .in_file(&Self::new(path, layer, ""))
                    .fix("save it as UTF-8"),
                ))
            }
        }
    }

    /// The folder of the project that it belongs to.
    pub fn project(&self) -> Option<&Path> {
        let is_of_project = self.layer == Layer::Project;
        is_of_project.then(|| workspace_of(&self.path)).flatten()
    }

    /// The line and the column, both from one, of a place in it.
    pub fn place(&self, at: usize) -> (usize, usize) {
        let at = self.text.floor_char_boundary(at.min(self.text.len()));
        let before = &self.text[..at];
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        let line = before.matches('\n').count() + 1;
        (line, before[line_start..].chars().count() + 1)
    }

    /// A span that is certainly in the text.
    pub(crate) fn clip(&self, span: &Span) -> Span {
        let start = self
            .text
            .floor_char_boundary(span.start.min(self.text.len()));
        let end = self.text.ceil_char_boundary(span.end.min(self.text.len()));
        start..end.max(start)
    }
}

/// The text, or how much of it is good.
fn decode(bytes: &[u8]) -> Result<String, usize> {
    let wide = |pair: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes[2..]
            .chunks(2)
            .map(|two| pair([two[0], *two.get(1).unwrap_or(&0)]))
            .collect();
        String::from_utf16(&units).map_err(|_| 0)
    };
    match bytes {
        [0xff, 0xfe, ..] => wide(u16::from_le_bytes),
        [0xfe, 0xff, ..] => wide(u16::from_be_bytes),
        _ => {
            let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
            match str::from_utf8(bytes) {
                Ok(text) => Ok(text.to_owned()),
                Err(error) => Err(error.valid_up_to()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_save_text_is_read() {
        let utf16 = |bytes: fn(u16) -> [u8; 2]| {
            "\u{feff}{} é"
                .encode_utf16()
                .flat_map(bytes)
                .collect::<Vec<u8>>()
        };
        for bytes in [
            "{} é".as_bytes().to_vec(),
            "\u{feff}{} é".as_bytes().to_vec(),
            utf16(u16::to_le_bytes),
            utf16(u16::to_be_bytes),
        ] {
            let source = Source::of_bytes(Path::new("a.json"), Layer::User, &bytes).unwrap();
            assert_eq!(source.text, "{} é");
        }
    }

    #[test]
    fn what_is_no_text_says_where() {
        let error = Source::of_bytes(Path::new("a.json"), Layer::User, b"{\n\n\xff}").unwrap_err();
        assert!(error.message.contains("line 3"), "{}", error.message);
        let large = vec![b' '; MAX_SIZE + 1];
        assert!(Source::of_bytes(Path::new("a.json"), Layer::User, &large).is_err());
    }

    #[test]
    fn places_count_from_one_in_characters() {
        let source = Source::new("a", Layer::User, "a\néx");
        assert_eq!(
            [
                source.place(0),
                source.place(2),
                source.place(4),
                source.place(99)
            ],
            [(1, 1), (2, 1), (2, 2), (2, 3)]
        );
    }
}
