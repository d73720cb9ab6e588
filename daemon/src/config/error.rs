//! Why the configuration cannot be used.

use nexus_config::{Diagnosis, Layer, Source};
use nexus_proto::reason::{Details, Failure, Reason};
use std::{fmt, path::Path};

/// Why the configuration cannot be used: at least one error, and what else looks wrong.
#[derive(Debug)]
pub struct ConfigError {
    /// All that is wrong, what matters first.
    pub diagnoses: Vec<Diagnosis>,
}

impl ConfigError {
    /// Of what was found.
    pub fn new(mut diagnoses: Vec<Diagnosis>) -> Self {
        diagnoses.sort_by_key(|diagnosis| !diagnosis.is_error());
        Self { diagnoses }
    }

    /// The file is no longer there.
    pub(super) fn gone(file: &Path) -> Self {
        let message = format!("cannot read {}: it has gone", file.display());
        let diagnosis = Diagnosis::error("config::unreadable", message)
            .in_file(&Source::new(file, Layer::User, ""))
            .fix("put it back, or restart the daemon to serve the demo");
        Self::new(vec![diagnosis])
    }

    /// It could not be read to the end.
    pub fn interrupted() -> Self {
        let message = "the configuration could not be read to its end";
        Self::new(vec![Diagnosis::error("config::unreadable", message)])
    }

    /// As a client is told of it.
    pub fn failure(&self) -> Failure {
        let failure = Failure::new(Reason::ConfigInvalid, self.to_string());
        match self.diagnoses.first() {
            Some(first) => failure.with(|details| {
                *details = self::details(first);
                let file = first.source.as_ref().map(|source| source.path.display());
                let look =
                    file.map(|file| format!("`nexusctl config check {file}` shows the line"));
                details.fixes.extend(look);
            }),
            None => failure,
        }
    }
}

/// A diagnosis as those are told of it who wait for what it is about.
pub(super) fn failure(diagnosis: &Diagnosis) -> Failure {
    Failure::new(Reason::ConfigInvalid, diagnosis.message.clone())
        .with(|details| *details = self::details(diagnosis))
}

fn details(diagnosis: &Diagnosis) -> Details {
    let mut fixes = diagnosis.fixes.iter().cloned();
    let source = diagnosis.source.as_ref().map(|source| {
        let place = diagnosis
            .place()
            .map(|(line, column)| format!(":{line}:{column}"));
        let path = source.path.display();
        format!("{path}{} ({})", place.unwrap_or_default(), source.layer)
    });
    Details {
        server: diagnosis.server.clone(),
        causes: diagnosis.notes.clone(),
        hint: fixes.next(),
        fixes: fixes.collect(),
        source,
        ..Details::default()
    }
}

/// The first error, in one line.
impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let errors = self.diagnoses.iter().filter(|d| d.is_error()).count();
        if let Some(first) = self.diagnoses.first() {
            write!(f, "{first}")?;
        }
        match errors {
            0 | 1 => Ok(()),
            n => write!(f, " (and {} more)", n - 1),
        }
    }
}

impl std::error::Error for ConfigError {}

/// The files say which programs are run: they must be the user's own. Who else may write them is left to
/// Windows: what lies in a user's folders is the user's.
#[cfg(windows)]
pub(super) fn check_owners(loaded: &mut nexus_config::Loaded) {
    for file in &loaded.files {
        // Where the file system knows no owners there is nothing to go by.
        if let Ok(Some(owner)) = crate::platform::foreign_owner(&file.path) {
            let message = format!("{} belongs to another user ({owner})", file.path.display());
            let diagnosis = Diagnosis::error("config::unsafe", message).in_file(file);
            let note = "this file says which programs are run: only you may be able to write it";
            loaded
                .diagnoses
                .push(diagnosis.note(note).fix("use a file of your own"));
        }
    }
}
