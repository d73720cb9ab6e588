//! The tools: their arguments, and what the quick ones return.

use std::mem;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Number, Value, json};

use crate::catalog::{Catalog, List};
use crate::clock;
use crate::conformance::{self, Fixture};
use crate::interactive::{self, Interactive};
use crate::reply::Outcome;

/// A call whose arguments are checked.
#[derive(Debug)]
pub(crate) enum Job {
    /// Done at once.
    Quick(Quick),
    /// Takes a thread of its own.
    Slow { duration: Duration, steps: u32 },
    /// Has to do with the client.
    Interactive(Interactive),
    /// What the conformance suite expects.
    Fixture(Fixture),
}

/// What a quick tool is to do.
#[derive(Debug)]
pub(crate) enum Quick {
    Echo(String),
    GetTime,
    Add(Number, Number),
    Env,
    Remember(String),
    WhoAmI,
    Generated { name: String, input: Option<String> },
}

/// What the tool `remember` keeps from one call to the next, whoever makes them.
#[derive(Debug, Default)]
pub(crate) struct Memory(Mutex<String>);

impl Memory {
    fn replace(&self, value: String) -> String {
        mem::replace(
            &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner),
            value,
        )
    }
}

/// Why there is no job.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    UnknownTool,
    /// For the agent to read: it can mend its arguments.
    BadArguments(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EchoArguments {
    message: String,
    nonce: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoArguments {
    nonce: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AddArguments {
    a: Number,
    b: Number,
    nonce: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SlowArguments {
    #[serde(default = "two_seconds")]
    duration: f64,
    #[serde(default = "five_steps")]
    steps: u32,
    nonce: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RememberArguments {
    value: String,
    nonce: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GeneratedArguments {
    input: Option<String>,
    nonce: Option<String>,
}

fn two_seconds() -> f64 {
    2.0
}

fn five_steps() -> u32 {
    5
}

/// Checks the arguments (JSON text) of a call; also returns the nonce among them.
pub(crate) fn prepare(
    catalog: &Catalog,
    name: &str,
    arguments: &str,
) -> Result<(Job, Option<String>), Refusal> {
    match name {
        "echo" => {
            let EchoArguments { message, nonce } = read(name, arguments)?;
            Ok((Job::Quick(Quick::Echo(message)), nonce))
        }
        "get_time" => {
            let NoArguments { nonce } = read(name, arguments)?;
            Ok((Job::Quick(Quick::GetTime), nonce))
        }
        "add" => {
            let AddArguments { a, b, nonce } = read(name, arguments)?;
            Ok((Job::Quick(Quick::Add(a, b)), nonce))
        }
        "slow_operation" => {
            let SlowArguments {
                duration,
                steps,
                nonce,
            } = read(name, arguments)?;
            if !(0.0..=600.0).contains(&duration) {
                return Err(bad(name, "duration must be between 0 and 600 seconds"));
            }
            if !(1..=1000).contains(&steps) {
                return Err(bad(name, "steps must be between 1 and 1000"));
            }
            Ok((
                Job::Slow {
                    duration: Duration::from_secs_f64(duration),
                    steps,
                },
                nonce,
            ))
        }
        "env" if catalog.has_env_tool() => {
            let NoArguments { nonce } = read(name, arguments)?;
            Ok((Job::Quick(Quick::Env), nonce))
        }
        "remember" if catalog.has_state_tools() => {
            let RememberArguments { value, nonce } = read(name, arguments)?;
            Ok((Job::Quick(Quick::Remember(value)), nonce))
        }
        "whoami" if catalog.has_state_tools() => {
            let NoArguments { nonce } = read(name, arguments)?;
            Ok((Job::Quick(Quick::WhoAmI), nonce))
        }
        "ask" | "log" | "touch" | "grow" | "odd" if catalog.is_interactive() => {
            let (job, nonce) = interactive::prepare(name, arguments)?;
            Ok((Job::Interactive(job), nonce))
        }
        _ if catalog.has_written_tool(name) => Ok((
            Job::Quick(Quick::Generated {
                name: name.to_owned(),
                input: None,
            }),
            None,
        )),
        _ if catalog.has_generated_tool(name)
            || catalog.has_grown(List::Tools, name)
            || name == "extra_tool" && catalog.has_extra_tool() =>
        {
            let GeneratedArguments { input, nonce } = read(name, arguments)?;
            Ok((
                Job::Quick(Quick::Generated {
                    name: name.to_owned(),
                    input,
                }),
                nonce,
            ))
        }
        _ if catalog.has_fixtures() => {
            Ok((Job::Fixture(conformance::prepare(name, arguments)?), None))
        }
        _ => Err(Refusal::UnknownTool),
    }
}

/// The arguments of a tool, or why they are none.
pub(crate) fn read<'a, T: Deserialize<'a>>(tool: &str, arguments: &'a str) -> Result<T, Refusal> {
    // A derived struct would read an array by position.
    if !arguments.starts_with('{') {
        return Err(bad(tool, "they must be an object"));
    }
    serde_json::from_str(arguments).map_err(|error| {
        let text = error.to_string();
        bad(tool, text.split(" at line ").next().unwrap_or(&text))
    })
}

/// Why the arguments of a tool are none.
pub(crate) fn bad(tool: &str, why: &str) -> Refusal {
    Refusal::BadArguments(format!("Invalid arguments for tool {tool}: {why}"))
}

/// Does what a quick tool does.
pub(crate) fn run(quick: Quick, memory: &Memory) -> Outcome {
    match quick {
        Quick::Echo(message) => Outcome::text(&message, ""),
        Quick::GetTime => Outcome::text(&clock::rfc3339(clock::since_epoch()), ""),
        Quick::Add(a, b) => match sum(&a, &b) {
            Some(sum) => Outcome::text(&sum, &format!(r#""structuredContent":{{"sum":{sum}}}"#)),
            None => Outcome::text("The sum is too large for a number", r#""isError":true"#),
        },
        Quick::Env => {
            let environment = environment();
            Outcome::text(
                &environment.to_string(),
                &format!(r#""structuredContent":{environment}"#),
            )
        }
        Quick::Remember(value) => Outcome::text(&memory.replace(value), ""),
        Quick::WhoAmI => Outcome::text(&json!({ "pid": std::process::id() }).to_string(), ""),
        Quick::Generated { name, input } => Outcome::text(
            &format!("{name}: {}", input.as_deref().unwrap_or("no input")),
            "",
        ),
    }
}

/// The sum as JSON text, a whole number without a fraction.
fn sum(a: &Number, b: &Number) -> Option<String> {
    if let (Some(a), Some(b)) = (a.as_i64(), b.as_i64()) {
        return Some((i128::from(a) + i128::from(b)).to_string());
    }
    let sum = a.as_f64()? + b.as_f64()?;
    sum.is_finite().then(|| sum.to_string())
}

fn environment() -> Value {
    let variables: Map<String, Value> = std::env::vars_os()
        .map(|(name, value)| {
            (
                name.to_string_lossy().into_owned(),
                value.to_string_lossy().into(),
            )
        })
        .collect();
    let arguments: Vec<String> = std::env::args_os()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let directory = std::env::current_dir()
        .map(|directory| directory.to_string_lossy().into_owned())
        .ok();
    json!({ "env": variables, "cwd": directory, "argv": arguments })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    fn job(name: &str, arguments: &str) -> Result<(Job, Option<String>), Refusal> {
        job_of(false, name, arguments)
    }

    fn job_of(state: bool, name: &str, arguments: &str) -> Result<(Job, Option<String>), Refusal> {
        prepare(
            &Catalog::new(&Options {
                tools: 3,
                state,
                ..Options::default()
            })
            .unwrap(),
            name,
            arguments,
        )
    }

    fn added(a: &str, b: &str) -> Option<String> {
        sum(&a.parse().unwrap(), &b.parse().unwrap())
    }

    #[test]
    fn sums_are_written_as_short_as_they_can_be() {
        assert_eq!(added("2", "3").unwrap(), "5");
        assert_eq!(added("2.5", "2.5").unwrap(), "5");
        assert_eq!(added("-0.25", "1").unwrap(), "0.75");
        assert_eq!(
            added("9223372036854775807", "1").unwrap(),
            "9223372036854775808"
        );
        assert_eq!(added("1.7e308", "1.7e308"), None);
    }

    #[test]
    fn wrong_arguments_are_explained() {
        for (name, arguments, part) in [
            ("echo", "{}", "missing field `message`"),
            ("echo", r#"{"message":7}"#, "expected a string"),
            ("echo", r#"{"message":"a","x":1}"#, "unknown field `x`"),
            ("echo", "[\"a\",null]", "must be an object"),
            ("add", r#"{"a":1}"#, "missing field `b`"),
            ("slow_operation", r#"{"duration":601}"#, "between 0 and 600"),
            ("slow_operation", r#"{"steps":0}"#, "between 1 and 1000"),
            ("tool_0003", r#"{"input":1}"#, "expected a string"),
        ] {
            match job(name, arguments) {
                Err(Refusal::BadArguments(text)) => {
                    assert!(text.contains(part) && text.contains(name), "{text}")
                }
                other => panic!("{name} {arguments}: {other:?}"),
            }
        }
    }

    #[test]
    fn tools_that_are_not_offered_are_unknown() {
        for name in [
            "",
            "nope",
            "env",
            "remember",
            "whoami",
            "extra_tool",
            "tool_0004",
            "ask",
            "odd",
            "grown_tool_0001",
        ] {
            assert_eq!(job(name, "{}").unwrap_err(), Refusal::UnknownTool, "{name}");
        }
    }

    #[test]
    fn a_nonce_is_allowed_everywhere() {
        for (name, arguments) in [
            ("echo", r#"{"message":"a","nonce":"n"}"#),
            ("get_time", r#"{"nonce":"n"}"#),
            ("add", r#"{"a":1,"b":2,"nonce":"n"}"#),
            ("slow_operation", r#"{"nonce":"n"}"#),
            ("tool_0001", r#"{"nonce":"n"}"#),
            ("remember", r#"{"value":"a","nonce":"n"}"#),
            ("whoami", r#"{"nonce":"n"}"#),
        ] {
            assert_eq!(
                job_of(true, name, arguments).unwrap().1.as_deref(),
                Some("n"),
                "{name}"
            );
        }
    }
}
