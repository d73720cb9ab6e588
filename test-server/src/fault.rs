//! The faults by name: what each does, and what its number counts.

mod plan;
mod start;

use std::fmt::Write as _;
use std::str::FromStr;

pub(crate) use plan::Plan;
pub(crate) use start::{at_start, banner, chatter, exit_at_init, exit_at_probe};

/// What the `N` of `NAME@N` means for a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counts {
    /// The Nth `tools/call` of the process, counted as they arrive.
    Call,
    /// The Nth message read.
    Message,
    /// The Nth `initialize` or `server/discover`.
    Start,
    /// The Nth `tools/list`.
    List,
    /// An amount.
    Amount,
    /// Nothing: the fault takes no number.
    Nothing,
}

macro_rules! faults {
    ($($variant:ident, $name:literal, $counts:expr, $default:literal, $about:literal;)*) => {
        /// A way to misbehave.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Fault {
            $(#[doc = $about] $variant,)*
        }

        const TABLE: &[Row] = &[
            $(Row { fault: Fault::$variant, name: $name, counts: $counts, default: $default, about: $about },)*
        ];
    };
}

struct Row {
    fault: Fault,
    name: &'static str,
    counts: Counts,
    default: u64,
    about: &'static str,
}

faults! {
    // start
    CrashStart, "crash-start", Counts::Nothing, 1, "at start: says `fatal: cannot open database` on stderr, exits with 1";
    SlowStart, "slow-start", Counts::Amount, 1000, "at start: sleeps N ms before it reads anything";
    StderrFlood, "stderr-flood", Counts::Amount, 1, "at start: writes N MiB to stderr before anything else";
    Banner, "banner", Counts::Amount, 3, "at start: prints N lines that are not JSON on stdout";
    Grandchild, "grandchild", Counts::Amount, 600, "at start: leaves a process behind that holds stdout for N s";
    IgnoreTerm, "ignore-term", Counts::Nothing, 1, "ignores SIGTERM and the end of stdin";
    InitHang, "init-hang", Counts::Start, 1, "from the Nth initialize or server/discover on, answers neither";
    InitExit, "init-exit", Counts::Start, 1, "exits with 3 at the Nth initialize or server/discover; two stderr lines";
    BadVersion, "bad-version", Counts::Nothing, 1, "speaks 1999-01-01 only (modern requests: -32022)";
    ExitOnProbe, "exit-on-probe", Counts::Nothing, 1, "legacy era only: exits with 4 when its first request is not initialize";
    IgnoreUnknown, "ignore-unknown", Counts::Nothing, 1, "legacy era only: never answers a method it does not know, such as server/discover";
    AskInit, "ask-init", Counts::Nothing, 1, "answers initialize and server/discover only once its ping and its sampling/createMessage are answered";
    // death
    Exit, "exit", Counts::Call, 1, "exits with 7 when the Nth call arrives, before executing it";
    ExitAfter, "exit-after", Counts::Call, 1, "executes and journals the Nth call, then exits with 7 instead of answering";
    ExitIdle, "exit-idle", Counts::Call, 1, "stdio: exits with 0 right after answering the Nth call";
    Segv, "segv", Counts::Call, 1, "dies of SIGSEGV when the Nth call arrives (Windows: aborts)";
    ExitAfterMs, "exit-after-ms", Counts::Amount, 1000, "exits with 9 N ms after the start, whatever happens";
    Alloc, "alloc", Counts::Amount, 256, "takes N MiB of memory, and touches it, as a call arrives, before executing it; keeps it";
    // silence
    Hang, "hang", Counts::Call, 1, "never answers (nor executes) the Nth call; others go on";
    HangAll, "hang-all", Counts::Call, 1, "answers the Nth call, then nothing at all; goes on reading";
    Late, "late", Counts::Call, 1, "answers the Nth call 1.5 s later, even if it was cancelled";
    StopReading, "stop-reading", Counts::Message, 1, "stdio: handles the Nth message, then reads no more; lives on";
    CloseStdin, "close-stdin", Counts::Call, 1, "stdio: closes stdin once the Nth call is handled; lives on";
    CloseStdout, "close-stdout", Counts::Call, 1, "stdio: closes stdout when the Nth call arrives; lives on";
    // wrong bytes
    Crlf, "crlf", Counts::Nothing, 1, "stdio: ends its lines with CR LF and starts stdout with a byte order mark";
    NoNewlineExit, "no-newline-exit", Counts::Call, 1, "stdio: answers the Nth call without the final newline and exits with 0";
    Trickle, "trickle", Counts::Call, 1, "stdio: writes the Nth answer one byte every 10 ms";
    Partial, "partial", Counts::Call, 1, "stdio: begins the Nth answer and never ends it; reads on, but nothing more comes out";
    BadUtf8, "bad-utf8", Counts::Call, 1, "a byte 0xff inside a string of the Nth answer";
    Nul, "nul", Counts::Call, 1, "a raw NUL byte inside a string of the Nth answer";
    Surrogate, "surrogate", Counts::Call, 1, "the escape of a lone surrogate, \\ud800, inside a string of the Nth answer";
    Deep, "deep", Counts::Call, 1, "structuredContent nested 100,000 deep in the Nth answer";
    Huge, "huge", Counts::Call, 1, "the Nth answer is a message of 100 MB";
    BigNumber, "big-number", Counts::Call, 1, "numbers of 30 digits and of 1e400 in the Nth answer's structuredContent";
    Batch, "batch", Counts::Call, 1, "the Nth answer comes as a JSON array of one";
    StdoutGarbage, "stdout-garbage", Counts::Amount, 200, "stdio: prints N lines that are not JSON before the answer to the first call";
    // wrong messages
    DupResponse, "dup-response", Counts::Call, 1, "answers the Nth call twice";
    UnknownId, "unknown-id", Counts::Nothing, 1, "sends a response with id 999999999 before each real one";
    StringId, "string-id", Counts::Call, 1, "the Nth answer has the id as a string";
    NullId, "null-id", Counts::Call, 1, "the Nth answer has the id null";
    NotificationFlood, "notification-flood", Counts::Call, 1, "50,000 log notifications before the Nth answer";
    ListChanged, "list-changed", Counts::Call, 1, "after the Nth answer: tools/list_changed, and one more tool `extra_tool`";
    CursorLoop, "cursor-loop", Counts::List, 1, "from the Nth tools/list on, always the same page and nextCursor";
    ListError, "list-error", Counts::List, 1, "from the Nth tools/list on, error -32603";
    TemplatesMissing, "templates-missing", Counts::Nothing, 1, "does not know resources/templates/list (-32601), resources though it has";
    ListStorm, "list-storm", Counts::Call, 1, "after the Nth answer: 1,000 times tools/list_changed, and one more tool `extra_tool`";
    ProgressFlood, "progress-flood", Counts::Call, 1, "20,000 progress notifications before the Nth answer, if the caller gave a token";
    // http
    HttpSession, "http-session", Counts::Amount, 5, "HTTP: a legacy session is over after N requests (404)";
    HttpLimit, "http-429", Counts::Call, 1, "HTTP: the Nth tools/call is answered 429, Retry-After: 1";
    HttpError, "http-503", Counts::Call, 1, "HTTP: the Nth tools/call is answered 503";
    HttpAuth, "http-401", Counts::Call, 1, "HTTP: from the Nth tools/call on, every POST is answered 401";
    HttpPage, "http-html", Counts::Call, 1, "HTTP: the Nth tools/call is answered with a page";
    HttpSlow, "http-slow", Counts::Amount, 500, "HTTP: every answer to a tools/call comes in two halves, N ms apart";
    HttpCut, "http-cut", Counts::Call, 1, "HTTP: the stream of the Nth tools/call ends before its answer; legacy: the rest is had by GET with Last-Event-ID";
    // questions
    AskSampling, "ask-sampling", Counts::Call, 1, "sampling/createMessage in the Nth call; its result text is the answer";
    AskRoots, "ask-roots", Counts::Call, 1, "the same with roots/list";
    AskElicit, "ask-elicit", Counts::Call, 1, "the same with elicitation/create (modern: all by input_required)";
}

/// A fault and its number: the value of `--fault NAME[@N]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultSpec {
    /// What to do.
    pub fault: Fault,
    /// When, or how much: see [`fault_help`].
    pub number: u64,
}

impl From<Fault> for FaultSpec {
    /// The fault with its default number.
    fn from(fault: Fault) -> Self {
        let number = TABLE
            .iter()
            .find(|row| row.fault == fault)
            .map_or(1, |row| row.default);
        FaultSpec { fault, number }
    }
}

impl FromStr for FaultSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, number) = match text.split_once('@') {
            Some((name, number)) => (name, Some(number)),
            None => (text, None),
        };
        let row = TABLE.iter().find(|row| row.name == name).ok_or_else(|| {
            let names: Vec<_> = TABLE.iter().map(|row| row.name).collect();
            format!("no fault `{name}`; there are {}", names.join(", "))
        })?;
        let number = match number {
            None => row.default,
            Some(_) if row.counts == Counts::Nothing => {
                return Err(format!("`{name}` takes no number"));
            }
            Some(number) => match number.parse() {
                Ok(number) if number > 0 => number,
                _ => return Err(format!("`{number}` is not a number from 1 on")),
            },
        };
        Ok(FaultSpec {
            fault: row.fault,
            number,
        })
    }
}

/// The table of faults, for the end of a `--help`.
pub fn fault_help() -> String {
    let mut text = String::from(
        "Faults:\n  \"the Nth call\" is the Nth tools/call of the process, counted as they arrive; N is 1 by default.\n\n",
    );
    for row in TABLE {
        let name = match row.counts {
            Counts::Nothing => row.name.to_owned(),
            _ => format!("{}@N", row.name),
        };
        let default = match row.counts {
            Counts::Amount => format!(" (default {})", row.default),
            _ => String::new(),
        };
        let _ = writeln!(text, "  {name:<21}{}{default}", row.about);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_found_by_its_name_with_its_default_number() {
        for row in TABLE {
            let spec: FaultSpec = row.name.parse().unwrap();
            assert_eq!(spec, FaultSpec::from(row.fault), "{}", row.name);
        }
    }

    #[test]
    fn a_number_after_the_at_sign_says_when() {
        let spec: FaultSpec = "exit@12".parse().unwrap();
        assert_eq!(
            spec,
            FaultSpec {
                fault: Fault::Exit,
                number: 12
            }
        );
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        let error = "exti".parse::<FaultSpec>().unwrap_err();
        assert!(
            error.contains("`exti`") && error.contains("exit-after"),
            "{error}"
        );
    }

    #[test]
    fn numbers_that_make_no_sense_are_refused() {
        for text in ["exit@", "exit@0", "exit@-1", "exit@x", "crlf@2", "exit@1@2"] {
            assert!(text.parse::<FaultSpec>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_help_has_a_line_for_every_fault() {
        let help = fault_help();
        assert_eq!(
            help.lines().filter(|line| line.starts_with("  ")).count(),
            TABLE.len() + 1
        );
    }
}
