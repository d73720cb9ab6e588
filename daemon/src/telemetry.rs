//! Logs: for people on a terminal, for machines elsewhere. On standard error, or in a file.

pub mod file;

use std::{
    io::{self, IsTerminal as _},
    path::Path,
};
use tracing_subscriber::{
    EnvFilter, Layer,
    fmt::{MakeWriter, writer::BoxMakeWriter},
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

/// How log lines look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// Human on a terminal and in a file, journald where systemd reads it, JSON elsewhere
    #[default]
    Auto,
    /// For people
    Human,
    /// One JSON object a line
    Json,
    /// Straight to systemd's journal
    Journald,
}

/// Why nothing is logged.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter cannot be read.
    #[error("--log {filter:?} is no filter")]
    Filter {
        /// What was asked for.
        filter: String,
        /// What is wrong with it.
        #[source]
        source: tracing_subscriber::filter::ParseError,
    },
    /// The journal cannot be reached.
    #[error("cannot log to journald")]
    Journald(#[source] io::Error),
}

impl LogFormat {
    /// What `Auto` comes to here.
    pub fn resolve(self, file: Option<&Path>) -> Self {
        match self {
            Self::Auto if file.is_some() => Self::Human,
            Self::Auto if io::stderr().is_terminal() => Self::Human,
            // systemd says so when it reads our standard error.
            Self::Auto if std::env::var_os("JOURNAL_STREAM").is_some() => Self::Journald,
            Self::Auto => Self::Json,
            other => other,
        }
    }
}

/// Writes whole lines to a file.
struct Lines(Box<Path>);

impl io::Write for &Lines {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        file::append(&self.0, text)?;
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

/// Starts logging, to standard error or to a file.
pub fn start(format: LogFormat, filter: &str, file: Option<&Path>) -> Result<(), LogError> {
    let filter = EnvFilter::try_new(filter).map_err(|source| LogError::Filter {
        filter: filter.to_owned(),
        source,
    })?;
    let on_terminal = file.is_none() && io::stderr().is_terminal();
    let writer = match file {
        Some(file) => BoxMakeWriter::new(Lines(file.into())),
        None => BoxMakeWriter::new(io::stderr),
    };
    let layer = match format.resolve(file) {
        LogFormat::Json => tracing_subscriber::fmt::layer()
            .with_writer(writer)
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .boxed(),
        LogFormat::Journald => journald()?,
        LogFormat::Auto | LogFormat::Human => tracing_subscriber::fmt::layer()
            .with_writer(writer)
            .with_target(false)
            .with_ansi(on_terminal && no_color().is_none())
            .boxed(),
    };
    tracing_subscriber::registry()
        .with(layer.with_filter(filter))
        .init();
    Ok(())
}

fn no_color() -> Option<std::ffi::OsString> {
    std::env::var_os("NO_COLOR").filter(|value| !value.is_empty())
}

type BoxedLayer = Box<dyn Layer<tracing_subscriber::Registry> + Send + Sync>;

#[cfg(target_os = "linux")]
fn journald() -> Result<BoxedLayer, LogError> {
    let layer = tracing_journald::layer().map_err(LogError::Journald)?;
    Ok(layer.with_field_prefix(None).boxed())
}

#[cfg(not(target_os = "linux"))]
fn journald() -> Result<BoxedLayer, LogError> {
    Err(LogError::Journald(io::ErrorKind::Unsupported.into()))
}
