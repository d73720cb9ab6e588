//! How errors travel: a gRPC code, a stable [`Reason`], and details, both ways in this one file.
//!
//! Nobody matches on the text of a message. What a program may decide by is in [`Reason`] and
//! [`Details`]; the message is for people.

use crate::text;
use std::{borrow::Cow, collections::HashMap, time::Duration};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, FieldViolation, StatusExt as _};

/// The `domain` of every error detail of ours.
pub const DOMAIN: &str = "nexus";

// Details ride in an HTTP/2 trailer: a peer refuses one of more than 16 KiB.
const MAX_MESSAGE: usize = 1024;
const MAX_TEXT: usize = 1024;
const MAX_ADVICE: usize = 512;
const MAX_STDERR: usize = 3072;
const MAX_VIOLATIONS: usize = 8;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $wire:literal => $code:ident,)*) => {
        /// Why something failed. The names on the wire never change.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Reason { $($(#[$doc])* $name,)* }

        impl Reason {
            /// All of them.
            pub const ALL: &[Reason] = &[$(Reason::$name,)*];

            /// Its name on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Reason::$name => $wire,)* }
            }

            /// The gRPC code that goes with it.
            pub const fn code(self) -> Code {
                match self { $(Reason::$name => Code::$code,)* }
            }
        }
    };
}

reasons! {
    /// No server has that name.
    ServerNotFound = "SERVER_NOT_FOUND" => NotFound,
    /// The server has no tool of that name.
    ToolNotFound = "TOOL_NOT_FOUND" => NotFound,
    /// No server lists that resource, or it is gone.
    ResourceNotFound = "RESOURCE_NOT_FOUND" => NotFound,
    /// The server has no prompt of that name.
    PromptNotFound = "PROMPT_NOT_FOUND" => NotFound,
    /// The server does not have what is asked of it: resources, prompts, completions, log messages.
    NotSupported = "NOT_SUPPORTED" => Unimplemented,
    /// The server asks its caller for what the caller cannot answer.
    CannotAnswer = "CANNOT_ANSWER" => FailedPrecondition,
    /// A bare name that several servers have.
    AmbiguousName = "AMBIGUOUS_NAME" => InvalidArgument,
    /// The request itself is malformed.
    InvalidRequest = "INVALID_REQUEST" => InvalidArgument,
    /// The arguments break the tool's input schema. The server did not see them.
    InvalidArguments = "INVALID_ARGUMENTS" => InvalidArgument,
    /// The server's command does not exist.
    CommandNotFound = "COMMAND_NOT_FOUND" => FailedPrecondition,
    /// The server's command could not be run.
    SpawnFailed = "SPAWN_FAILED" => FailedPrecondition,
    /// The server is starting, and was not waited for any longer.
    ServerStarting = "SERVER_STARTING" => Unavailable,
    /// The server was started but did not complete the handshake.
    HandshakeFailed = "HANDSHAKE_FAILED" => Unavailable,
    /// The server is stopped because somebody wanted it so.
    ServerStopped = "SERVER_STOPPED" => FailedPrecondition,
    /// The server's process ended; `maybe_executed` says whether it had been sent the call.
    ServerExited = "SERVER_EXITED" => Unavailable,
    /// The server lived, but there was no talking to it any more, and it was ended.
    ServerHung = "SERVER_HUNG" => Unavailable,
    /// The server keeps ending; it is tried again after `retry_after`.
    CrashLoop = "CRASH_LOOP" => Unavailable,
    /// The server cannot be reached over the network.
    Unreachable = "UNREACHABLE" => Unavailable,
    /// The server wants a credential, or another one.
    NeedsAuth = "NEEDS_AUTH" => Unauthenticated,
    /// The credential is good, but not for this.
    Forbidden = "FORBIDDEN" => PermissionDenied,
    /// The server answered with an HTTP error, or its answer broke off.
    HttpError = "HTTP_ERROR" => Unavailable,
    /// The server answered with a JSON-RPC error: `rpc_code`, `rpc_data`.
    ServerError = "SERVER_ERROR" => Unknown,
    /// What the server sent is not MCP.
    ProtocolError = "PROTOCOL_ERROR" => Internal,
    /// The call took longer than it may.
    Deadline = "DEADLINE" => DeadlineExceeded,
    /// The call was cancelled.
    Cancelled = "CANCELLED" => Cancelled,
    /// Too many calls are waiting for this server.
    Overloaded = "OVERLOADED" => ResourceExhausted,
    /// A message is larger than is allowed.
    TooLarge = "TOO_LARGE" => ResourceExhausted,
    /// The caller is not trusted with servers.
    Sandboxed = "SANDBOXED" => PermissionDenied,
    /// Somebody was asked, and said no.
    Denied = "DENIED" => PermissionDenied,
    /// Somebody was asked, and did not answer in time.
    Unanswered = "UNANSWERED" => PermissionDenied,
    /// Only the operator may do it.
    NotOperator = "NOT_OPERATOR" => PermissionDenied,
    /// No question of that number waits for an answer.
    ApprovalNotFound = "APPROVAL_NOT_FOUND" => NotFound,
    /// Called more often than is allowed; `retry_after` says when it is again.
    RateLimited = "RATE_LIMITED" => ResourceExhausted,
    /// The tool is not what was approved of, and is held back.
    ToolChanged = "TOOL_CHANGED" => FailedPrecondition,
    /// What was looked at is something else by now.
    Changed = "CHANGED" => Aborted,
    /// The daemon is stopping.
    ShuttingDown = "SHUTTING_DOWN" => Unavailable,
    /// The configuration cannot be used.
    ConfigInvalid = "CONFIG_INVALID" => FailedPrecondition,
    /// A fault of Nexus.
    Internal = "INTERNAL" => Internal,
}

impl Reason {
    /// The reason of that name on the wire.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|reason| reason.as_str() == name)
    }
}

/// An error as the daemon tells it and a client reads it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What a program decides by.
    pub reason: Reason,
    /// What a person reads.
    pub message: String,
    /// What else is known.
    pub details: Box<Details>,
}

/// What else is known of a [`Failure`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Details {
    /// The server it is about.
    pub server: Option<String>,
    /// The tool it is about.
    pub tool: Option<String>,
    /// How the server's process ended: `exit code 7`, `signal 11 (SIGSEGV)`.
    pub exit: Option<String>,
    /// The last lines the server wrote to its standard error.
    pub stderr: Vec<String>,
    /// The server may have carried the call out although there is no result.
    pub maybe_executed: bool,
    /// When it makes sense to try again.
    pub retry_after: Option<Duration>,
    /// The nearest name there is.
    pub suggestion: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// Where the server is configured: a file, a line, a layer.
    pub source: Option<String>,
    /// What is likely the cause.
    pub causes: Vec<String>,
    /// What else can be done about it.
    pub fixes: Vec<String>,
    /// What is wrong with the arguments, one entry for each fault.
    pub violations: Vec<Violation>,
    /// The code of the server's JSON-RPC error.
    pub rpc_code: Option<i64>,
    /// The `data` of the server's JSON-RPC error, as JSON text.
    pub rpc_data: Option<String>,
}

/// One fault in the arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Where: a JSON pointer, empty for the whole.
    pub field: String,
    /// What is wrong there.
    pub description: String,
}

impl Failure {
    /// A failure without details.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            details: Box::default(),
        }
    }

    /// The same, with details filled in.
    #[must_use]
    pub fn with(mut self, fill: impl FnOnce(&mut Details)) -> Self {
        fill(&mut self.details);
        self
    }

    /// The gRPC code: the reason's, except that a server's own error keeps its meaning.
    pub fn code(&self) -> Code {
        match (self.reason, self.details.rpc_code) {
            (Reason::ServerError, Some(-32602)) => Code::InvalidArgument,
            (Reason::ServerError, Some(-32601)) => Code::Unimplemented,
            (Reason::ServerError, Some(-32603)) => Code::Internal,
            (reason, _) => reason.code(),
        }
    }

    /// Reads what the daemon told; `None` where the status is not one of ours.
    pub fn from_status(status: &Status) -> Option<Self> {
        let found = status.get_error_details();
        let info = found.error_info().filter(|info| info.domain == DOMAIN)?;
        let text = |key: &str| info.metadata.get(key).cloned();
        let lines = |key: &str| {
            text(key).map_or(Vec::new(), |text| text.lines().map(str::to_owned).collect())
        };
        let mut details = Details {
            server: text("server"),
            tool: text("tool"),
            exit: text("exit"),
            maybe_executed: info.metadata.contains_key("maybe_executed"),
            suggestion: text("suggestion"),
            hint: text("hint"),
            source: text("source"),
            causes: lines("causes"),
            fixes: lines("fixes"),
            rpc_code: text("rpc_code").and_then(|code| code.parse().ok()),
            rpc_data: text("rpc_data"),
            ..Details::default()
        };
        let reason = Reason::parse(&info.reason).unwrap_or(Reason::Internal);
        details.retry_after = found.retry_info().and_then(|retry| retry.retry_delay);
        if let Some(debug) = found.debug_info() {
            details.stderr.clone_from(&debug.stack_entries);
        }
        if let Some(bad) = found.bad_request() {
            let violation = |v: &FieldViolation| Violation {
                field: v.field.clone(),
                description: v.description.clone(),
            };
            details.violations = bad.field_violations.iter().map(violation).collect();
        }
        Some(Self {
            reason,
            message: status.message().to_owned(),
            details: Box::new(details),
        })
    }
}

impl From<Failure> for Status {
    fn from(failure: Failure) -> Self {
        let code = failure.code();
        let Failure {
            reason,
            message,
            details,
        } = failure;
        let mut metadata = HashMap::new();
        let mut put = |key: &str, value: Option<String>| {
            if let Some(value) = value {
                metadata.insert(key.to_owned(), clip(value, MAX_TEXT));
            }
        };
        put("server", details.server);
        put("tool", details.tool);
        put("exit", details.exit);
        put("suggestion", details.suggestion);
        put("hint", details.hint);
        put("source", details.source.map(|text| clip(text, MAX_ADVICE)));
        put("causes", joined(&details.causes));
        put("fixes", joined(&details.fixes));
        put(
            "maybe_executed",
            details.maybe_executed.then(|| "true".to_owned()),
        );
        put("rpc_code", details.rpc_code.map(|code| code.to_string()));
        // Half of a JSON text is of no use to anybody.
        put(
            "rpc_data",
            details.rpc_data.filter(|data| data.len() <= MAX_TEXT),
        );

        let mut found = ErrorDetails::new();
        found.set_error_info(reason.as_str(), DOMAIN, metadata);
        if let Some(after) = details.retry_after {
            found.set_retry_info(Some(after));
        }
        if !details.stderr.is_empty() {
            found.set_debug_info(last_lines(details.stderr), "stderr");
        }
        if !details.violations.is_empty() {
            let violations = details.violations.into_iter().take(MAX_VIOLATIONS);
            found.set_bad_request(
                violations
                    .map(|v| FieldViolation::new(clip(v.field, 256), clip(v.description, 256)))
                    .collect::<Vec<_>>(),
            );
        }
        Status::with_error_details(code, clip(message, MAX_MESSAGE), found)
    }
}

/// A line for each.
fn joined(texts: &[String]) -> Option<String> {
    let lines: Vec<String> = texts.iter().map(|text| text.replace('\n', " ")).collect();
    (!lines.is_empty()).then(|| clip(lines.join("\n"), MAX_ADVICE))
}

/// The last of the lines, as many as fit.
fn last_lines(lines: Vec<String>) -> Vec<String> {
    let mut room = MAX_STDERR;
    let mut kept: Vec<String> = lines
        .into_iter()
        .rev()
        .map(|line| clip(line, 512))
        .take_while(|line| {
            let fits = line.len() < room;
            room = room.saturating_sub(line.len() + 1);
            fits
        })
        .collect();
    kept.reverse();
    kept
}

/// What a server said may be in any of it.
fn clip(text: String, max: usize) -> String {
    let mut text = match text::clean(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(cleaned) => cleaned,
    };
    if text.len() > max {
        text.truncate(text.floor_char_boundary(max - '…'.len_utf8()));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Failure {
        Failure::new(Reason::ServerExited, "the server ended").with(|d| {
            d.server = Some("Sequential Thinking".into());
            d.tool = Some("think".into());
            d.exit = Some("exit code 7".into());
            d.stderr = vec!["one".into(), "two".into()];
            d.maybe_executed = true;
            d.retry_after = Some(Duration::from_millis(1500));
            d.suggestion = Some("demo".into());
            d.hint = Some("look at the log".into());
            d.source = Some("/etc/nexus/mcp.json:3 (system)".into());
            d.causes = vec!["this".into(), "or that".into()];
            d.fixes = vec!["do this".into()];
            d.violations = vec![Violation {
                field: "/a".into(),
                description: "is not a number".into(),
            }];
            d.rpc_code = Some(-32000);
            d.rpc_data = Some("{\"x\":1}".into());
        })
    }

    #[test]
    fn what_the_daemon_tells_is_what_the_client_reads() {
        let failure = full();
        let status = Status::from(failure.clone());
        assert_eq!(Failure::from_status(&status), Some(failure));
    }

    #[test]
    fn every_reason_survives_the_wire() {
        for &reason in Reason::ALL {
            let status = Status::from(Failure::new(reason, "x"));
            assert_eq!(status.code(), reason.code());
            assert_eq!(
                Failure::from_status(&status).map(|f| f.reason),
                Some(reason)
            );
        }
    }

    #[test]
    fn nothing_hostile_travels_with_an_error() {
        let hostile = "\x1b[2J\u{202e}ab\u{200b}c\u{9b}1m";
        let failure = Failure::new(Reason::ServerError, hostile).with(|d| {
            d.stderr = vec![hostile.into()];
            d.hint = Some(hostile.into());
            d.causes = vec![hostile.into()];
        });
        let read = Failure::from_status(&Status::from(failure)).unwrap();
        assert_eq!(read.message, "abc");
        assert_eq!(read.details.stderr, ["abc"]);
        assert_eq!(read.details.causes, ["abc"]);
        assert_eq!(read.details.hint.as_deref(), Some("abc"));
    }

    #[test]
    fn a_status_of_somebody_else_is_not_ours() {
        assert_eq!(Failure::from_status(&Status::internal("h2 broke")), None);
    }

    #[test]
    fn a_servers_own_error_keeps_its_meaning() {
        let failure = Failure::new(Reason::ServerError, "no").with(|d| d.rpc_code = Some(-32602));
        assert_eq!(failure.code(), Code::InvalidArgument);
    }

    #[test]
    fn the_largest_failure_fits_into_a_trailer() {
        let failure = full().with(|d| {
            d.stderr = vec!["é".repeat(10_000); 1000];
            d.hint = Some("h".repeat(100_000));
            d.source = Some("s".repeat(10_000));
            d.causes = vec!["c".repeat(10_000); 10];
            d.fixes = vec!["f".repeat(10_000); 10];
            d.rpc_data = Some("d".repeat(100_000));
            d.violations = vec![
                Violation {
                    field: "f".repeat(10_000),
                    description: "d".repeat(10_000),
                };
                100
            ];
        });
        let status = Status::from(Failure {
            message: "m".repeat(100_000),
            ..failure
        });
        let size = status.message().len() + status.details().len() * 4 / 3;
        assert!(size < 16 * 1024, "{size}");
        let read = Failure::from_status(&status).unwrap();
        assert!(!read.details.stderr.is_empty());
        assert_eq!(read.details.rpc_data, None);
    }
}
