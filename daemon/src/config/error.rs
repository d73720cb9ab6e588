//! Why the configuration cannot be used.

use nexus_config::{Diagnosis, Layer, Source};
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

    /// What to do about it.
    pub fn hint(&self) -> Option<&str> {
        let first = self.diagnoses.first()?;
        first.fixes.first().map(String::as_str)
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
