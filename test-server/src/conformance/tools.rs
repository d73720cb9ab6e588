//! The tools: what each is to do.

use std::time::Duration;

use serde::Deserialize;

use super::content;
use crate::catalog::List;
use crate::reply::Outcome;
use crate::tools::{Refusal, read};

/// How long a tool that takes its time takes between two steps.
const PAUSE: Duration = Duration::from_millis(50);

/// What such a tool is to do.
#[derive(Debug)]
pub(crate) enum Fixture {
    /// It has its result.
    Done(Outcome),
    /// Log messages, this far apart.
    Log(Duration),
    /// Progress, this far apart.
    Progress(Duration),
    /// Nothing, for a client that has a model.
    NeedsSampling,
    /// One more entry in a list.
    Grow(List),
    /// Questions to the client.
    Ask(Topic),
}

/// What is asked about, and so what is done with the answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Topic {
    /// What the model says to this prompt.
    Sampling(String),
    /// The user's name and address, with this message.
    Elicitation(String),
    /// A form with defaults.
    Defaults,
    /// A form of choices.
    Choices,
    /// A question that is asked while a tool works.
    Streaming,
    /// The user's name.
    Name,
    /// A capital.
    Capital,
    /// The client's folders.
    Roots,
    /// A yes, with a state; this is the name of the tool.
    Confirmation(&'static str),
    /// A name, a greeting and folders at once.
    Several,
    /// A name, then a colour.
    Steps,
    /// Whatever the client can be asked.
    Capabilities,
    /// What a prompt is to be about.
    Context,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Prompt {
    prompt: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    message: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// Checks the arguments (JSON text) of a call.
pub(crate) fn prepare(name: &str, arguments: &str) -> Result<Fixture, Refusal> {
    let fixture = match name {
        "test_sampling" => {
            let Prompt { prompt } = read(name, arguments)?;
            return Ok(Fixture::Ask(Topic::Sampling(prompt)));
        }
        "test_elicitation" => {
            let Message { message } = read(name, arguments)?;
            return Ok(Fixture::Ask(Topic::Elicitation(message)));
        }
        // Its schema is all that there is to it.
        "json_schema_2020_12_tool" => return Ok(Fixture::Done(Outcome::text(arguments, ""))),
        "test_tool_with_logging" => Fixture::Log(PAUSE),
        "test_logging_tool" => Fixture::Log(Duration::ZERO),
        "test_tool_with_progress" => Fixture::Progress(PAUSE),
        "test_missing_capability" => Fixture::NeedsSampling,
        "test_trigger_tool_change" => Fixture::Grow(List::Tools),
        "test_trigger_prompt_change" => Fixture::Grow(List::Prompts),
        "test_elicitation_sep1034_defaults" => Fixture::Ask(Topic::Defaults),
        "test_elicitation_sep1330_enums" => Fixture::Ask(Topic::Choices),
        "test_streaming_elicitation" => Fixture::Ask(Topic::Streaming),
        "test_input_required_result_elicitation" => Fixture::Ask(Topic::Name),
        "test_input_required_result_sampling" => Fixture::Ask(Topic::Capital),
        "test_input_required_result_list_roots" => Fixture::Ask(Topic::Roots),
        "test_input_required_result_request_state" => {
            Fixture::Ask(Topic::Confirmation("request_state"))
        }
        "test_input_required_result_tampered_state" => {
            Fixture::Ask(Topic::Confirmation("tampered_state"))
        }
        "test_input_required_result_multiple_inputs" => Fixture::Ask(Topic::Several),
        "test_input_required_result_multi_round" => Fixture::Ask(Topic::Steps),
        "test_input_required_result_capabilities" => Fixture::Ask(Topic::Capabilities),
        _ => Fixture::Done(content::of_tool(name).ok_or(Refusal::UnknownTool)?),
    };
    let Nothing {} = read(name, arguments)?;
    Ok(fixture)
}
