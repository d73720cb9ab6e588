//! What is wrong, where, and what to do about it. Pure.

use crate::{node::Span, source::Source};
use serde_json::{Value, json};
use std::{fmt, sync::Arc};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It works, but probably not as it was meant.
    Warning,
    /// It does not work.
    Error,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosis {
    /// How bad it is.
    pub severity: Severity,
    /// What a program may know it by.
    pub code: &'static str,
    /// What is wrong, without any secret.
    pub message: String,
    /// The server it is about.
    pub server: Option<String>,
    /// The file it is about.
    pub source: Option<Arc<Source>>,
    /// The places in it.
    pub labels: Vec<Label>,
    /// What was expected, and what is likely the cause.
    pub notes: Vec<String>,
    /// What to do about it, the best first.
    pub fixes: Vec<String>,
}

/// A place, and what is there.
#[derive(Debug, Clone, PartialEq)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// What.
    pub text: String,
}

impl Diagnosis {
    fn new(severity: Severity, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            severity,
            code,
            message: message.into(),
            server: None,
            source: None,
            labels: Vec::new(),
            notes: Vec::new(),
            fixes: Vec::new(),
        }
    }

    /// Something that does not work.
    pub fn error(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, message)
    }

    /// Something that works, but probably not as it was meant.
    pub fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, message)
    }

    /// It is about this file.
    #[must_use]
    pub fn in_file(mut self, source: &Arc<Source>) -> Self {
        self.source = Some(Arc::clone(source));
        self
    }

    /// It is about this server.
    #[must_use]
    pub fn of_server(mut self, server: impl Into<String>) -> Self {
        self.server = Some(server.into());
        self
    }

    /// It is here.
    #[must_use]
    pub fn at(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label {
            span,
            text: text.into(),
        });
        self
    }

    /// What was expected, or a likely cause.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// What to do about it.
    #[must_use]
    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fixes.push(fix.into());
        self
    }

    /// The same, as something that can be lived with.
    #[must_use]
    pub fn as_warning(mut self) -> Self {
        self.severity = Severity::Warning;
        self
    }

    /// Whether nothing works with it.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The line and the column, both from one.
    pub fn place(&self) -> Option<(usize, usize)> {
        let label = self.labels.first()?;
        Some(self.source.as_ref()?.place(label.span.start))
    }

    /// For programs.
    pub fn to_json(&self) -> Value {
        let place = self.place();
        json!({
            "severity": match self.severity { Severity::Error => "error", Severity::Warning => "warning" },
            "code": self.code,
            "message": self.message,
            "server": self.server,
            "file": self.source.as_ref().map(|source| source.path.display().to_string()),
            "layer": self.source.as_ref().map(|source| source.layer.as_str()),
            "line": place.map(|(line, _)| line),
            "column": place.map(|(_, column)| column),
            "at": self.labels.first().map(|label| label.text.as_str()).filter(|text| !text.is_empty()),
            "notes": self.notes,
            "fixes": self.fixes,
        })
    }
}

/// In one line: where, which server, what.
impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(source) = &self.source {
            write!(f, "{}", source.path.display())?;
            if let Some((line, column)) = self.place() {
                write!(f, ":{line}:{column}")?;
            }
            f.write_str(": ")?;
        }
        if let Some(server) = &self.server {
            write!(f, "server {server:?}: ")?;
        }
        f.write_str(&self.message)?;
        if let Some(label) = self.labels.first().filter(|label| !label.text.is_empty()) {
            write!(f, " ({})", label.text)?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnosis {}
