//! All that is written: data to stdout, everything else to stderr.

pub(crate) mod content;
pub(crate) mod diff;
pub(crate) mod json;
pub(crate) mod safe;
pub(crate) mod style;
pub(crate) mod table;
pub(crate) mod time;

use crate::{cli::Color, exit::Error};
use anstream::{AutoStream, ColorChoice};
use anstyle::Style;
use nexus_config::{
    Diagnosis,
    render::{Look, render},
};
use serde::Serialize;
use std::{
    borrow::Cow,
    io::{self, IsTerminal as _, Write as _},
};
use table::Table;

/// Where output goes, and what it may look like there.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    pub(crate) json: bool,
    quiet: bool,
    stdout: Stream,
    stderr: Stream,
}

#[derive(Debug, Clone, Copy)]
struct Stream {
    terminal: bool,
    color: bool,
}

impl Output {
    pub(crate) fn new(json: bool, quiet: bool, color: Color) -> Self {
        let stream = |terminal, auto| Stream {
            terminal,
            color: match color {
                Color::Always => true,
                Color::Never => false,
                // Knows of NO_COLOR, CLICOLOR and TERM.
                Color::Auto => auto != ColorChoice::Never,
            },
        };
        let (stdout, stderr) = (io::stdout(), io::stderr());
        Self {
            json,
            quiet,
            stdout: stream(stdout.is_terminal(), AutoStream::choice(&stdout)),
            stderr: stream(stderr.is_terminal(), AutoStream::choice(&stderr)),
        }
    }

    /// Data, as it is, and the end of its last line.
    pub(crate) fn data(&self, text: &str) -> Result<(), Error> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        if !text.is_empty() && !text.ends_with('\n') {
            stdout.write_all(b"\n")?;
        }
        Ok(stdout.flush()?)
    }

    /// One line of data, even an empty one.
    pub(crate) fn line(&self, line: &str) -> Result<(), Error> {
        self.data(&format!("{line}\n"))
    }

    /// Data from a server: a terminal gets it without what it would act on.
    pub(crate) fn foreign(&self, text: &str) -> Result<(), Error> {
        self.data(&self.safe(text))
    }

    /// JSON text: verbatim into a pipe, set out on a terminal.
    pub(crate) fn raw_json(&self, json: &str) -> Result<(), Error> {
        if self.stdout.terminal {
            self.data(&json::pretty(json))
        } else {
            self.data(json)
        }
    }

    /// A value as JSON, for `--json`.
    pub(crate) fn value(&self, value: &impl Serialize) -> Result<(), Error> {
        self.raw_json(&serde_json::to_string(value).map_err(io::Error::from)?)
    }

    /// One of many values, each in a line of its own.
    pub(crate) fn value_line(&self, value: &impl Serialize) -> Result<(), Error> {
        self.data(&serde_json::to_string(value).map_err(io::Error::from)?)
    }

    /// A table, cut to a terminal and never to a pipe.
    pub(crate) fn table(&self, table: &Table) -> Result<(), Error> {
        self.data(&table.render(self.stdout.color, self.width()))
    }

    /// Whether stdout may have colours.
    pub(crate) fn color(&self) -> bool {
        self.stdout.color
    }

    /// Text for stdout, in a style if it may have one.
    pub(crate) fn paint(&self, text: &str, style: Style) -> String {
        style::paint(text, style, self.stdout.color)
    }

    /// What a server says, for stdout.
    pub(crate) fn safe<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.stdout.terminal {
            safe::text(text)
        } else {
            Cow::Borrowed(text)
        }
    }

    /// Something worth knowing, unless nobody wants to.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            self.stderr_line(&self.safe_stderr(text));
        }
    }

    /// Something that is not as it should be.
    pub(crate) fn warn(&self, text: &str) {
        if !self.quiet {
            let mark = self.paint_stderr("warning:", style::CARE);
            self.stderr_line(&format!("{mark} {}", self.safe_stderr(text)));
        }
    }

    /// What is wrong with the configuration.
    pub(crate) fn diagnosis(&self, diagnosis: &Diagnosis) {
        let look = if self.stderr.terminal {
            let width = terminal_size::terminal_size_of(io::stderr());
            Look::Fancy {
                color: self.stderr.color,
                width: width.map_or(100, |(width, _)| usize::from(width.0)),
            }
        } else {
            Look::Plain
        };
        if diagnosis.is_error() || !self.quiet {
            self.stderr_line(&render(diagnosis, look));
        }
    }

    /// Asks, where somebody can answer.
    pub(crate) fn confirm(&self, question: &str) -> Result<bool, Error> {
        if !(self.stderr.terminal && io::stdin().is_terminal()) {
            return Err(Error::Usage {
                message: "there is nobody to ask".to_owned(),
                hint: Some("look at what --dry-run says, and then add --yes".to_owned()),
            });
        }
        let _ = write!(io::stderr().lock(), "{question} [y/N] ");
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
    }

    /// A line of an error. It is shown even to those who want quiet.
    pub(crate) fn stderr_line(&self, line: &str) {
        // Whoever has closed stderr cannot be told.
        let _ = writeln!(io::stderr().lock(), "{line}");
    }

    /// Text on stderr without the end of a line: the place for an answer follows.
    pub(crate) fn stderr_text(&self, text: &str) {
        let mut stderr = io::stderr().lock();
        let _ = write!(stderr, "{text}").and_then(|()| stderr.flush());
    }

    /// Whether there is somebody who can be asked.
    pub(crate) fn can_ask(&self) -> bool {
        self.stderr.terminal && io::stdin().is_terminal()
    }

    /// Data as it is, to the last byte.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Result<(), Error> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes)?;
        Ok(stdout.flush()?)
    }

    /// Whether somebody reads stdout as it comes.
    pub(crate) fn to_terminal(&self) -> bool {
        self.stdout.terminal
    }

    pub(crate) fn paint_stderr(&self, text: &str, style: Style) -> String {
        style::paint(text, style, self.stderr.color)
    }

    pub(crate) fn safe_stderr<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.stderr.terminal {
            safe::text(text)
        } else {
            Cow::Borrowed(text)
        }
    }

    /// Whether somebody watches stderr.
    pub(crate) fn shows_progress(&self) -> bool {
        self.stderr.terminal && !self.quiet
    }

    /// The width of the terminal that stdout is.
    pub(crate) fn width(&self) -> Option<usize> {
        let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
        Some(usize::from(width.0))
    }
}
