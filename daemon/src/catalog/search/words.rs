//! Words: how names and sentences are taken apart, for the index and for queries alike. Pure.

use frostem::{Algorithm, Stemmer};

/// The longest word. Whatever is longer is a token or a hash, and nobody types it.
const MAX_WORD: usize = 40;

/// What says nothing of what a tool does. Kept short: `get`, `all` and `from` may well be what is meant.
const EMPTY: [&str; 31] = [
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "for", "how", "i", "in", "is",
    "it", "me", "my", "of", "on", "or", "please", "that", "the", "this", "to", "want", "what",
    "which", "with", "you",
];

/// The words of a text, in small letters: `readFile`, `read_file` and `read-file` are two each.
pub(super) fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut before = Kind::Other;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let kind = Kind::of(c);
        let next = rest.peek().map_or(Kind::Other, |&next| Kind::of(next));
        let ends = match (before, kind) {
            (_, Kind::Other) | (Kind::Small, Kind::Large) => true,
            // `HTTPServer` is `http` and `server`.
            (Kind::Large, Kind::Large) => next == Kind::Small,
            _ => false,
        };
        if ends {
            finish(&mut word, &mut words);
        }
        if kind != Kind::Other {
            word.extend(c.to_lowercase());
        }
        before = kind;
    }
    finish(&mut word, &mut words);
    words
}

fn finish(word: &mut String, words: &mut Vec<String>) {
    let done = std::mem::take(word);
    if !done.is_empty() && done.len() <= MAX_WORD {
        words.push(done);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Small,
    Large,
    Digit,
    Other,
}

impl Kind {
    fn of(c: char) -> Self {
        match c {
            c if c.is_uppercase() => Self::Large,
            c if c.is_alphabetic() => Self::Small,
            c if c.is_numeric() => Self::Digit,
            _ => Self::Other,
        }
    }
}

/// What a word has in common with its other forms: `files` and `file`, `creating` and `create`.
pub(super) fn stem(word: &str) -> String {
    Stemmer::new(Algorithm::English).stem(word).into_owned()
}

/// A text without what stands between its words: `read_file`, `readFile` and `read file` are the same.
pub(super) fn squash(text: &str) -> String {
    let letters = text.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// Whether a word says nothing of what a tool does.
pub(super) fn is_empty(word: &str) -> bool {
    EMPTY.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_apart_however_they_are_written() {
        for name in [
            "readFile",
            "read_file",
            "read-file",
            "read.file",
            "ReadFile",
            "READ_FILE",
            "read  file",
        ] {
            assert_eq!(split(name), ["read", "file"], "{name}");
        }
        assert_eq!(
            split("getHTTPResponseCode"),
            ["get", "http", "response", "code"]
        );
        assert_eq!(split("list_k8s_pods2"), ["list", "k8s", "pods2"]);
        assert_eq!(split("Überprüfe die Größe"), ["überprüfe", "die", "größe"]);
        assert_eq!(split("__ -- !"), [""; 0]);
        assert_eq!(split(&"x".repeat(MAX_WORD + 1)), [""; 0]);
    }

    #[test]
    fn forms_of_a_word_have_one_stem() {
        for (one, other) in [
            ("files", "file"),
            ("creating", "create"),
            ("repositories", "repository"),
            ("searches", "search"),
        ] {
            assert_eq!(stem(one), stem(other));
        }
        assert_ne!(stem("read"), stem("write"));
    }

    #[test]
    fn what_stands_between_words_does_not_count() {
        assert_eq!(squash("Read_File"), squash("read file"));
        assert_eq!(squash(" -_ "), "");
    }
}
