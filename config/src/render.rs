//! Shows a diagnosis to people: in colours and frames on a terminal, plainly elsewhere. Pure.

use crate::{
    diagnosis::{Diagnosis, Severity},
    mask::mask,
};
use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode,
};
use std::fmt::{self, Write as _};

/// Longer lines are cut: a file may be one single line.
const MAX_LINE: usize = 160;

/// What a terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Frames, in colours or without.
    Fancy {
        /// With colours.
        color: bool,
        /// How wide it is.
        width: usize,
    },
    /// Text and nothing else.
    Plain,
}

/// As it is shown, with what may be secret left out.
pub fn render(diagnosis: &Diagnosis, look: Look) -> String {
    match look {
        Look::Plain => plain(diagnosis),
        Look::Fancy { color, width } => {
            let theme = if color {
                GraphicalTheme::unicode()
            } else {
                GraphicalTheme::unicode_nocolor()
            };
            let handler = GraphicalReportHandler::new_themed(theme)
                .with_width(width.max(40))
                .with_links(false)
                .with_context_lines(1);
            let mut text = String::new();
            match handler.render_report(&mut text, &Shown::new(diagnosis)) {
                Ok(()) => text,
                Err(_) => plain(diagnosis),
            }
        }
    }
}

fn head(diagnosis: &Diagnosis) -> String {
    match &diagnosis.server {
        Some(server) => format!("server {server:?}: {}", diagnosis.message),
        None => diagnosis.message.clone(),
    }
}

fn plain(diagnosis: &Diagnosis) -> String {
    let word = match diagnosis.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let mut text = format!("{word}: {}\n", head(diagnosis));
    let put = |text: &mut String, line: fmt::Arguments<'_>| {
        // Writing to a text does not fail.
        let _ = text.write_fmt(line);
    };
    if let Some(source) = &diagnosis.source {
        let place = diagnosis
            .place()
            .map(|(line, column)| format!(":{line}:{column}"));
        put(
            &mut text,
            format_args!(
                "  --> {}{} ({})\n",
                source.path.display(),
                place.unwrap_or_default(),
                source.layer
            ),
        );
        if !diagnosis.labels.is_empty() {
            let masked = mask(&source.text);
            for label in &diagnosis.labels {
                let span = source.clip(&label.span);
                let (number, column) = source.place(span.start);
                let line = masked.lines().nth(number - 1).unwrap_or_default();
                let (line, column) = window(line, column);
                let len = masked[span.clone()]
                    .lines()
                    .next()
                    .unwrap_or_default()
                    .chars()
                    .count();
                let arrows = "^".repeat(len.clamp(
                    1,
                    (line.chars().count() + 1).saturating_sub(column - 1).max(1),
                ));
                let pad: String = line
                    .chars()
                    .take(column - 1)
                    .map(|c| if c == '\t' { '\t' } else { ' ' })
                    .collect();
                put(
                    &mut text,
                    format_args!(
                        "     |\n{number:>4} | {line}\n     | {pad}{arrows} {}\n",
                        label.text
                    ),
                );
            }
        }
    }
    for note in &diagnosis.notes {
        put(&mut text, format_args!("  note: {note}\n"));
    }
    for fix in &diagnosis.fixes {
        put(&mut text, format_args!("  hint: {fix}\n"));
    }
    text
}

/// The part of a line around a column.
fn window(line: &str, column: usize) -> (String, usize) {
    let len = line.chars().count();
    if len <= MAX_LINE {
        return (line.to_owned(), column);
    }
    let from = column.saturating_sub(MAX_LINE / 2).min(len - MAX_LINE);
    let part: String = line.chars().skip(from).take(MAX_LINE).collect();
    (part, column - from)
}

/// A diagnosis as miette wants it.
struct Shown<'a> {
    diagnosis: &'a Diagnosis,
    code: Option<NamedSource<String>>,
    labels: Vec<LabeledSpan>,
}

impl<'a> Shown<'a> {
    fn new(diagnosis: &'a Diagnosis) -> Self {
        let mut labels = Vec::new();
        let mut code = None;
        if let Some(source) = &diagnosis.source {
            let name = format!("{} ({})", source.path.display(), source.layer);
            // A frame around a file that is one endless line would be of no use.
            let is_long = |label: &crate::diagnosis::Label| {
                line_around(&source.text, label.span.start).len() > 4 * MAX_LINE
            };
            if !diagnosis.labels.is_empty() && !diagnosis.labels.iter().any(is_long) {
                code = Some(NamedSource::new(name, mask(&source.text)));
                for label in &diagnosis.labels {
                    let span = source.clip(&label.span);
                    let text = (!label.text.is_empty()).then(|| label.text.clone());
                    labels.push(LabeledSpan::new(text, span.start, span.len()));
                }
            }
        }
        Self {
            diagnosis,
            code,
            labels,
        }
    }
}

fn line_around(text: &str, at: usize) -> &str {
    let at = text.floor_char_boundary(at.min(text.len()));
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
    &text[start..end]
}

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.diagnosis)
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&head(self.diagnosis))?;
        match &self.diagnosis.source {
            // Otherwise the frame says it.
            Some(source) if self.code.is_none() => {
                write!(f, "\nin {} ({})", source.path.display(), source.layer)
            }
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Shown<'_> {}

impl Diagnostic for Shown<'_> {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.diagnosis.code))
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.diagnosis.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let lines: Vec<&str> = self
            .diagnosis
            .notes
            .iter()
            .chain(&self.diagnosis.fixes)
            .map(String::as_str)
            .collect();
        (!lines.is_empty()).then(|| Box::new(lines.join("\n")) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.code.as_ref().map(|code| code as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        (!self.labels.is_empty())
            .then(|| Box::new(self.labels.iter().cloned()) as Box<dyn Iterator<Item = LabeledSpan>>)
    }
}
