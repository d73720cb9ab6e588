//! `nexusctl call`.

mod progress;
mod show;

use super::Context;
use crate::{
    arguments::{self, Wrong},
    ask::Screen,
    cli::{Call, Source},
    exit::Error,
};
use nexus_client::{Arguments, CallEvent, Error as ClientError, LogLevel, Nexus, ToolResult};
pub(crate) use progress::Bar;
use std::{fs, io, sync::Arc};
use tokio::io::AsyncReadExt as _;

pub(crate) async fn run(context: &Context, args: Call) -> Result<(), Error> {
    let input = args.input().map_err(Error::usage)?;
    // What is wrong here is wrong with or without a daemon.
    let given = read(&input.source).await?;
    let screen = Arc::new(Screen::new(context.output.clone()));
    let nexus = match input.source {
        // What is typed are the arguments.
        Source::Stdin => context.connect().await?,
        _ => context.connect_asking(args.asking, &screen).await?,
    };
    let arguments = match given {
        Given::Nothing => Arguments::none(),
        Given::Object(text) => Arguments::from_raw(text),
        Given::Pairs(pairs) => {
            let tool = nexus.tools().get(input.tool).await?;
            let schema = tool.input_schema().unwrap_or_default();
            Arguments::from_raw(arguments::build(&pairs, &schema)?)
        }
    };
    let result = call(
        context,
        &nexus,
        &screen,
        input.tool,
        arguments,
        args.log_level,
    )
    .await;
    screen.clear();
    let result = result?;
    show::result(&context.output, input.tool, &result)
}

/// Makes the call, and shows how far it has come and what is logged.
async fn call(
    context: &Context,
    nexus: &Nexus,
    screen: &Screen,
    tool: &str,
    arguments: Arguments,
    log_level: Option<LogLevel>,
) -> Result<ToolResult, Error> {
    let mut call = nexus.tools().call(tool, arguments);
    if let Some(time) = context.timeout {
        call = call.timeout(time);
    }
    if let Some(level) = log_level {
        call = call.log_level(level);
    } else if !context.output.shows_progress() {
        return Ok(call.await?);
    }
    let mut events = call.stream().await?;
    while let Some(event) = events.next().await {
        match event? {
            CallEvent::Progress(progress) if context.output.shows_progress() => {
                screen.progress(&progress);
            }
            CallEvent::Log(message) => screen.log(&message),
            CallEvent::Result(result) => return Ok(result),
            _ => {}
        }
    }
    // A stream ends in a result or in an error.
    let message = "the call ended without a result".to_owned();
    Err(ClientError::Protocol(message).into())
}

/// The arguments as they were given, with files read.
enum Given {
    Nothing,
    Object(String),
    Pairs(Vec<(String, String)>),
}

async fn read(source: &Source<'_>) -> Result<Given, Error> {
    let object = match source {
        Source::Pairs([]) => return Ok(Given::Nothing),
        Source::Pairs(pairs) => {
            let read = pairs.iter().map(|(name, value)| {
                let value = value_of(value)?;
                Ok((name.clone(), value))
            });
            return Ok(Given::Pairs(read.collect::<Result<_, Error>>()?));
        }
        Source::Text(text) => (*text).to_owned(),
        Source::File(path) => file(path)?,
        Source::Stdin => {
            let mut text = String::new();
            let read = tokio::io::stdin().read_to_string(&mut text).await;
            read.map_err(|source| Error::Io {
                attempt: "cannot read the arguments from standard input".to_owned(),
                source,
            })?;
            text
        }
    };
    arguments::check_object(&object)?;
    Ok(Given::Object(object))
}

/// `@FILE` is what the file holds, `@@` an `@`.
pub(super) fn value_of(text: &str) -> Result<String, Error> {
    match text.strip_prefix('@') {
        None => Ok(text.to_owned()),
        Some(rest) if rest.starts_with('@') => Ok(rest.to_owned()),
        Some(path) => file(path),
    }
}

fn file(path: &str) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|error| {
        let hint = (error.kind() == io::ErrorKind::NotFound)
            .then(|| format!("for the text `@{path}`, write `@@{path}`"));
        Error::Usage {
            message: format!("cannot read {path}: {error}"),
            hint,
        }
    })
}

impl From<Wrong> for Error {
    fn from(wrong: Wrong) -> Self {
        Self::Usage {
            message: wrong.message,
            hint: wrong.hint,
        }
    }
}
