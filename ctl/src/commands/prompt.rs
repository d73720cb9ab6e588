//! `nexusctl prompt`.

use super::{Context, call::value_of};
use crate::{
    ask::Screen,
    cli::Prompt,
    exit::Error,
    output::{Output, content::describe, style},
};
use nexus_client::Message;
use std::sync::Arc;

pub(crate) async fn run(context: &Context, args: Prompt) -> Result<(), Error> {
    // What is wrong here is wrong with or without a daemon.
    let pairs = args.args.iter();
    let pairs = pairs.map(|(name, value)| Ok((name, value_of(value)?)));
    let pairs = pairs.collect::<Result<Vec<_>, Error>>()?;
    let screen = Arc::new(Screen::new(context.output.clone()));
    let nexus = context.connect_asking(args.asking, &screen).await?;
    let mut get = nexus.prompts().get(&args.name);
    for (name, value) in pairs {
        get = get.arg(name, value);
    }
    if let Some(time) = context.timeout {
        get = get.timeout(time);
    }
    let prompt = get.await?;
    let output = &context.output;
    if output.json {
        return output.raw_json(prompt.raw().as_str());
    }
    let messages = prompt.messages();
    let messages: Vec<_> = messages.into_iter().map(|it| text(output, it)).collect();
    output.data(&messages.join("\n"))
}

/// Who says it, and what, each from the start of a line.
fn text(output: &Output, message: Message) -> String {
    let role = output.safe(message.role.as_str()).into_owned();
    let mut text = output.paint(&format!("{role}:"), style::BOLD) + "\n";
    for content in message.content {
        text += &output.safe(&describe(content));
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    text
}
