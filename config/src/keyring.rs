//! Entries of the system's keyring, and the programs that know them. Pure.
//!
//! On Linux and macOS the keyring's own program is asked, which is there wherever people use one: the libraries
//! for it would bring D-Bus and a hundred crates into a daemon that asks once. On Windows the system is asked.

use std::fmt;

/// The service of an entry that names none.
const OURS: &str = "nexus";

/// What is kept under a service and a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The service.
    pub service: String,
    /// The name, or the user, or the account.
    pub name: String,
}

impl Entry {
    /// `SERVICE/NAME`, or just a name. Nothing, if it could be taken for an option of a program.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (service, name) = text.rsplit_once('/').unwrap_or((OURS, text));
        let is_good = |part: &str| {
            !part.is_empty() && !part.starts_with('-') && !part.contains(char::is_control)
        };
        (is_good(service) && is_good(name)).then(|| Self {
            service: service.to_owned(),
            name: name.to_owned(),
        })
    }

    /// What tells it. Nothing where the system itself does.
    pub fn lookup(&self) -> Option<Vec<String>> {
        let (service, name) = (self.service.as_str(), self.name.as_str());
        if cfg!(windows) {
            return None;
        }
        let words = if cfg!(target_os = "macos") {
            [
                "security",
                "find-generic-password",
                "-ws",
                service,
                "-a",
                name,
            ]
        } else {
            // As the libraries of most languages write them.
            [
                "secret-tool",
                "lookup",
                "service",
                service,
                "username",
                name,
            ]
        };
        Some(words.map(str::to_owned).to_vec())
    }

    /// What keeps one. The secret is asked for.
    pub fn store(&self) -> Vec<String> {
        let (service, name) = (self.service.as_str(), self.name.as_str());
        let label = self.to_string();
        let target = format!("/generic:{label}");
        let user = format!("/user:{name}");
        let words: &[&str] = if cfg!(windows) {
            &["cmdkey", &target, &user, "/pass"]
        } else if cfg!(target_os = "macos") {
            &[
                "security",
                "add-generic-password",
                "-s",
                service,
                "-a",
                name,
                "-w",
            ]
        } else {
            &[
                "secret-tool",
                "store",
                "--label",
                &label,
                "service",
                service,
                "username",
                name,
            ]
        };
        words.iter().map(|&word| word.to_owned()).collect()
    }

    /// What it may be called on Windows, the likeliest first: by `cmdkey`, and by the libraries of Rust, Go and
    /// Python.
    pub fn targets(&self) -> [String; 5] {
        let Self { service, name } = self;
        [
            format!("{service}/{name}"),
            format!("{name}.{service}"),
            format!("{service}:{name}"),
            format!("{name}@{service}"),
            service.clone(),
        ]
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.service, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_a_service_and_a_name() {
        for (text, service, name) in [
            ("github/token", "github", "token"),
            (
                "https://api.example.com/me",
                "https://api.example.com",
                "me",
            ),
            (" token ", "nexus", "token"),
        ] {
            let entry = Entry::parse(text).unwrap();
            assert_eq!((&*entry.service, &*entry.name), (service, name), "{text}");
        }
        for text in ["", " ", "/x", "x/", "-x", "a/--all", "a\n/b"] {
            assert_eq!(Entry::parse(text), None, "{text:?}");
        }
    }
}
