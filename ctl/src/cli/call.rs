//! `call`, whose `--json` is two things: with a value the arguments, without one the output.

use super::offers::{Asking, level};
use clap::Args;
use nexus_client::LogLevel;

#[derive(Debug, Args)]
pub(crate) struct Call {
    // Not required here: `call --json demo.add` makes clap take the name for the value of --json.
    /// Which tool: server.tool
    #[arg(required_unless_present = "json")]
    pub(crate) tool: Option<String>,
    /// `-` reads the arguments from standard input, as a JSON object
    #[arg(value_name = "-")]
    pub(crate) input: Option<String>,
    /// An argument; the type of the value is that of the tool's schema
    #[arg(short, long = "arg", value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) args: Vec<(String, String)>,
    /// All arguments as a JSON object, or @FILE; without a value, print the result as JSON
    #[arg(long, value_name = "OBJECT", num_args = 0..=1)]
    pub(crate) json: Option<Option<String>>,
    /// Show what the server logs meanwhile, from this level up
    #[arg(short, long, value_name = "LEVEL", value_parser = level())]
    pub(crate) log_level: Option<LogLevel>,
    #[command(flatten)]
    pub(crate) asking: Asking,
}

/// What `call` was given, once it is clear what belongs to `--json`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CallInput<'a> {
    pub(crate) tool: &'a str,
    pub(crate) source: Source<'a>,
}

/// Where the arguments of a call come from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Source<'a> {
    /// `--arg`, or nowhere.
    Pairs(&'a [(String, String)]),
    /// `--json '{…}'`.
    Text(&'a str),
    /// `--json @FILE`.
    File(&'a str),
    /// `-`.
    Stdin,
}

impl Call {
    /// The value of `--json`, if it is one and not the name of the tool.
    fn json_value(&self) -> Option<&str> {
        let value = self.json.as_ref()?.as_deref()?;
        (!self.json_took_the_tool()).then_some(value)
    }

    /// In `call --json demo.add`, clap gives the name to `--json`.
    fn json_took_the_tool(&self) -> bool {
        let tool_is_missing = match (self.tool.as_deref(), self.input.as_deref()) {
            (None, None) => true,
            (Some(tool), None) => tool == "-",
            _ => false,
        };
        let is_name =
            |value: &str| value != "-" && !value.trim_start().starts_with(['{', '[', '@', '"']);
        let value = self.json.as_ref().and_then(Option::as_deref);
        tool_is_missing && value.is_some_and(is_name)
    }

    /// Whether the result is to be JSON.
    pub(super) fn wants_json(&self) -> bool {
        self.json.is_some() && self.json_value().is_none()
    }

    /// Sorts out what was given.
    pub(crate) fn input(&self) -> Result<CallInput<'_>, &'static str> {
        let took = self.json_took_the_tool();
        let (tool, input) = if took {
            let value = self.json.as_ref().and_then(Option::as_deref);
            (value, self.tool.as_deref())
        } else {
            (self.tool.as_deref(), self.input.as_deref())
        };
        let tool = tool.ok_or("which tool?")?;
        let text = self.json_value();
        let sources = [!self.args.is_empty(), text.is_some(), input.is_some()];
        if sources.into_iter().filter(|given| *given).count() > 1 {
            return Err("give the arguments in one way only: --arg, --json '{…}' or -");
        }
        let source = match (text, input) {
            (Some("-"), _) | (_, Some("-")) => Source::Stdin,
            (_, Some(_)) => {
                return Err("arguments are given as --arg NAME=VALUE, --json '{…}' or - alone");
            }
            (Some(text), None) => match text.strip_prefix('@') {
                Some(file) => Source::File(file),
                None => Source::Text(text),
            },
            (None, None) => Source::Pairs(&self.args),
        };
        Ok(CallInput { tool, source })
    }
}

pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}
