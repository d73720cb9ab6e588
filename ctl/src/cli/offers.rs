//! Resources, prompts and completions.

use super::{Json, call::pair};
use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use nexus_client::LogLevel;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct Resources {
    /// Only those of this server
    #[arg(value_name = "SERVER", conflicts_with = "server")]
    only: Option<String>,
    /// Only those of this server
    #[arg(short, long, value_name = "NAME")]
    server: Option<String>,
    #[command(flatten)]
    pub(crate) json: Json,
}

impl Resources {
    pub(crate) fn server(&self) -> Option<&str> {
        self.server.as_deref().or(self.only.as_deref())
    }
}

/// A resource: `URI`, or `SERVER URI`.
#[derive(Debug, Args)]
pub(crate) struct Address {
    /// Which server; may be left out where only one lists the URI
    server: Option<String>,
    /// Which resource
    pub(crate) uri: String,
}

impl Address {
    /// Empty where it was left out.
    pub(crate) fn server(&self) -> &str {
        self.server.as_deref().unwrap_or_default()
    }
}

#[derive(Debug, Args)]
pub(crate) struct Read {
    #[command(flatten)]
    pub(crate) address: Address,
    /// Write what it holds into a file
    #[arg(short, long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) asking: Asking,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Subscribe {
    #[command(flatten)]
    pub(crate) address: Address,
    /// Stop after so many changes
    #[arg(short, long, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    /// Print what it holds after each change
    #[arg(short, long)]
    pub(crate) read: bool,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Prompts {
    /// Show this prompt with its arguments
    pub(crate) name: Option<String>,
    /// Only the prompts of this server
    #[arg(short, long, value_name = "NAME", conflicts_with = "name")]
    pub(crate) server: Option<String>,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Prompt {
    /// Which prompt: server.prompt
    pub(crate) name: String,
    /// An argument; always text, or @FILE
    #[arg(short, long = "arg", value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) args: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) asking: Asking,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Complete {
    /// The prompt and its argument, or the variable of the template; then what has been typed of it
    #[arg(required = true, num_args = 1..=3, value_name = "NAME")]
    words: Vec<String>,
    /// Fill in this resource template instead of a prompt
    #[arg(short, long)]
    template: Option<String>,
    /// The server of the template; may be left out where only one lists it
    #[arg(short, long, value_name = "NAME", requires = "template")]
    server: Option<String>,
    /// An argument that is settled already
    #[arg(short, long = "arg", value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) args: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// What is to be completed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Completing<'a> {
    Prompt {
        name: &'a str,
        argument: &'a str,
        value: &'a str,
    },
    Template {
        server: &'a str,
        template: &'a str,
        variable: &'a str,
        value: &'a str,
    },
}

impl Complete {
    /// Sorts out what was given.
    pub(crate) fn what(&self) -> Result<Completing<'_>, &'static str> {
        let words: Vec<_> = self.words.iter().map(String::as_str).collect();
        match (self.template.as_deref(), &words[..]) {
            (None, [_]) => Err("which argument of the prompt?"),
            (None, [name, argument, rest @ ..]) => Ok(Completing::Prompt {
                name,
                argument,
                value: rest.first().copied().unwrap_or_default(),
            }),
            (Some(template), [variable, rest @ ..]) if rest.len() < 2 => Ok(Completing::Template {
                server: self.server.as_deref().unwrap_or_default(),
                template,
                variable,
                value: rest.first().copied().unwrap_or_default(),
            }),
            _ => Err("with --template, give the variable and what has been typed of it"),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct SetLogLevel {
    /// Which server
    pub(crate) server: String,
    /// The least urgent messages that it is to log
    #[arg(value_parser = level())]
    pub(crate) level: LogLevel,
    #[command(flatten)]
    pub(crate) json: Json,
}

pub(super) fn level() -> impl TypedValueParser<Value = LogLevel> {
    let names = LogLevel::ALL.map(LogLevel::as_str);
    PossibleValuesParser::new(names).try_map(|name| name.parse())
}

/// Whether somebody may be asked.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Asking {
    /// Never ask anything, even if the server does
    #[arg(long)]
    pub(crate) no_input: bool,
}
