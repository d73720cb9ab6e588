//! The tools of `--interactive`: their arguments.

use serde::Deserialize;

use crate::catalog::List;
use crate::level;
use crate::tools::{Refusal, bad, read};

/// What such a tool is to do.
#[derive(Debug)]
pub(crate) enum Interactive {
    Ask(Asking),
    Log {
        rank: usize,
        message: String,
        count: Option<u32>,
    },
    Touch(String),
    Grow(List),
    Odd(usize),
}

/// What the tool `ask` is to ask for, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asking {
    pub(crate) kind: Kind,
    pub(crate) text: String,
    pub(crate) rounds: usize,
}

/// What can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Sampling,
    Elicitation,
    Url,
    Roots,
    Both,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskArguments {
    kind: Kind,
    #[serde(default)]
    text: String,
    #[serde(default = "one")]
    rounds: usize,
    nonce: Option<String>,
}

fn one() -> usize {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LogArguments {
    level: String,
    message: String,
    count: Option<u32>,
    nonce: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TouchArguments {
    uri: String,
    nonce: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GrowArguments {
    what: String,
    nonce: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OddArguments {
    n: usize,
    nonce: Option<String>,
}

/// Checks the arguments (JSON text) of a call of one of these five; also returns the nonce among them.
pub(crate) fn prepare(
    name: &str,
    arguments: &str,
) -> Result<(Interactive, Option<String>), Refusal> {
    match name {
        "ask" => {
            let AskArguments {
                kind,
                text,
                rounds,
                nonce,
            } = read(name, arguments)?;
            if !(1..=10).contains(&rounds) {
                return Err(bad(name, "rounds must be between 1 and 10"));
            }
            Ok((Interactive::Ask(Asking { kind, text, rounds }), nonce))
        }
        "log" => {
            let LogArguments {
                level,
                message,
                count,
                nonce,
            } = read(name, arguments)?;
            let rank = level::rank(&level).map_err(|error| bad(name, &error.message))?;
            if count.is_some_and(|count| !(1..=100_000).contains(&count)) {
                return Err(bad(name, "count must be between 1 and 100000"));
            }
            Ok((
                Interactive::Log {
                    rank,
                    message,
                    count,
                },
                nonce,
            ))
        }
        "touch" => {
            let TouchArguments { uri, nonce } = read(name, arguments)?;
            Ok((Interactive::Touch(uri), nonce))
        }
        "grow" => {
            let GrowArguments { what, nonce } = read(name, arguments)?;
            let list = match &*what {
                "tools" => List::Tools,
                "resources" => List::Resources,
                "prompts" => List::Prompts,
                _ => return Err(bad(name, "what must be tools, resources or prompts")),
            };
            Ok((Interactive::Grow(list), nonce))
        }
        _ => {
            let OddArguments { n, nonce } = read(name, arguments)?;
            Ok((Interactive::Odd(n), nonce))
        }
    }
}
