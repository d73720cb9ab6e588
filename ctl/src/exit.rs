//! How a command ends: the exit code, and what stderr says.

use crate::output::{Output, style, time};
use nexus_client::{Error as ClientError, Failure, Reason};
use std::{error::Error as _, fmt, io, process::ExitCode, time::Duration};

/// Why a command did not do what it should.
#[derive(Debug)]
pub(crate) enum Error {
    /// It was asked for in a way that makes no sense.
    Usage {
        message: String,
        hint: Option<String>,
    },
    /// The daemon, or the way to it.
    Client(ClientError),
    /// The tool ran and failed; that has been said.
    ToolFailed,
    /// The time of `--timeout` is up.
    Timeout(Duration),
    /// Ctrl-C.
    Interrupted,
    /// Nobody reads what we write.
    BrokenPipe,
    /// What is wrong has been shown.
    Told,
    /// A file, or stdout.
    Io { attempt: String, source: io::Error },
}

impl Error {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Usage {
            message: message.into(),
            hint: None,
        }
    }

    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::BrokenPipe => 0,
            Self::Usage { .. } => 2,
            Self::Timeout(_) => 4,
            Self::Interrupted => 130,
            Self::Client(error) if error.is_timeout() => 4,
            Self::Client(ClientError::Unreachable { .. } | ClientError::Endpoint(_)) => 3,
            Self::ToolFailed | Self::Told | Self::Client(_) | Self::Io { .. } => 1,
        }
    }

    /// Says it, and gives the code to exit with.
    pub(crate) fn report(&self, output: &Output) -> ExitCode {
        match self {
            Self::ToolFailed | Self::Told | Self::Interrupted | Self::BrokenPipe => {}
            Self::Usage { message, hint } => {
                say_error(output, message);
                say_hints(output, hint.iter().cloned());
            }
            Self::Timeout(after) => {
                say_error(output, &format!("no answer within {}", time::exact(*after)));
            }
            Self::Io { attempt, source } => {
                say_error(output, attempt);
                say_cause(output, source);
            }
            Self::Client(error) => say_client(output, error),
        }
        ExitCode::from(self.code())
    }
}

impl From<ClientError> for Error {
    fn from(error: ClientError) -> Self {
        Self::Client(error)
    }
}

/// Of writing to stdout: other files say what was attempted.
impl From<io::Error> for Error {
    fn from(source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::BrokenPipe {
            return Self::BrokenPipe;
        }
        Self::Io {
            attempt: "cannot write to standard output".to_owned(),
            source,
        }
    }
}

fn say_error(output: &Output, message: &str) {
    let mark = output.paint_stderr("error:", style::ERROR);
    output.stderr_line(&format!("{mark} {}", output.safe_stderr(message)));
}

fn say_cause(output: &Output, cause: &dyn fmt::Display) {
    let mark = output.paint_stderr("caused by:", style::ERROR);
    let cause = cause.to_string();
    output.stderr_line(&format!("{mark} {}", output.safe_stderr(&cause)));
}

fn say_hints(output: &Output, hints: impl IntoIterator<Item = String>) {
    for (at, hint) in hints.into_iter().enumerate() {
        if at == 0 {
            output.stderr_line("");
        }
        let mark = output.paint_stderr("hint:", style::HINT);
        output.stderr_line(&format!("{mark} {}", output.safe_stderr(&hint)));
    }
}

fn say_client(output: &Output, error: &ClientError) {
    let Some(failure) = error.failure() else {
        say_error(output, &error.to_string());
        let mut cause = error.source();
        while let Some(error) = cause {
            say_cause(output, &error);
            cause = error.source();
        }
        let unknown = error.maybe_executed().then(|| MAYBE_EXECUTED.to_owned());
        say_hints(
            output,
            error.hint().map(str::to_owned).into_iter().chain(unknown),
        );
        return;
    };
    say_error(output, &failure.message);
    let details = &failure.details;
    // The daemon's sentence often has it already.
    let exit = details.exit.as_ref();
    if let Some(exit) = exit.filter(|exit| !failure.message.contains(*exit)) {
        say_cause(output, exit);
    }
    // The sentence may have it already.
    let is_told = |source: &&String| {
        let place = source.split(" (").next().unwrap_or_default();
        failure.message.contains(place)
    };
    if let Some(source) = details.source.as_ref().filter(|source| !is_told(source)) {
        let line = match &details.server {
            Some(server) => format!("  server {server:?}, in {source}"),
            None => format!("  in {source}"),
        };
        output.stderr_line(&output.safe_stderr(&line));
    }
    for violation in &details.violations {
        let place = match violation.field.as_str() {
            "" => "arguments",
            field => field,
        };
        let line = format!("  {place}: {}", violation.description);
        output.stderr_line(&output.safe_stderr(&line));
    }
    say_stderr(output, details.server.as_deref(), &details.stderr);
    for (at, cause) in details.causes.iter().enumerate() {
        let word = if at == 0 { "likely:" } else { "    or:" };
        let line = format!("  {word} {cause}");
        output.stderr_line(&output.safe_stderr(&line));
    }
    say_hints(output, hints(failure));
}

const MAYBE_EXECUTED: &str = "it may have been carried out: find out before you call it again";

/// The last words of a server, indented.
pub(crate) fn say_stderr(output: &Output, server: Option<&str>, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let head = format!("  {} wrote:", server.unwrap_or("the server"));
    output.stderr_line(&output.safe_stderr(&head));
    for line in lines {
        let line = format!("    {}", output.safe_stderr(line));
        output.stderr_line(&output.paint_stderr(&line, style::DIM));
    }
}

/// What can be done about a failure.
fn hints(failure: &Failure) -> Vec<String> {
    let details = &failure.details;
    let mut hints = Vec::new();
    if let Some(name) = &details.suggestion {
        hints.push(format!("did you mean `{name}`?"));
    }
    hints.extend(details.hint.clone());
    hints.extend(details.fixes.iter().cloned());
    if details.maybe_executed && details.hint.is_none() {
        hints.push(MAYBE_EXECUTED.to_owned());
    }
    // A limit says itself when it is over, and nobody but the caller tries again.
    let after = details.retry_after;
    if let Some(after) = after.filter(|_| failure.reason != Reason::RateLimited) {
        let seconds = Duration::from_secs(after.as_secs_f64().ceil() as u64);
        hints.push(format!("it is tried again in {}", time::long(seconds)));
    }
    hints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_has_its_code() {
        let unreachable = ClientError::Unreachable {
            endpoint: "/x".into(),
            source: io::ErrorKind::NotFound.into(),
        };
        let failed = |reason| Error::from(ClientError::from(Failure::new(reason, "x")));
        assert_eq!(Error::usage("x").code(), 2);
        assert_eq!(Error::from(unreachable).code(), 3);
        assert_eq!(failed(Reason::Deadline).code(), 4);
        assert_eq!(failed(Reason::ServerExited).code(), 1);
        assert_eq!(Error::Timeout(Duration::from_secs(1)).code(), 4);
        let closed = io::Error::from(io::ErrorKind::BrokenPipe);
        assert_eq!(Error::from(closed).code(), 0);
    }

    #[test]
    fn all_that_helps_is_a_hint() {
        let failure = Failure::new(Reason::ServerExited, "x").with(|details| {
            details.suggestion = Some("demo.add".into());
            details.hint = Some("look".into());
            details.maybe_executed = true;
            details.retry_after = Some(Duration::from_millis(1500));
        });
        assert_eq!(
            hints(&failure),
            [
                "did you mean `demo.add`?",
                "look",
                "it is tried again in 2s"
            ]
        );
    }
}
