//! `nexusctl prompts`.

use super::{
    Context,
    servers::verbatim,
    tools::{MissingJson, nothing, warn_of},
};
use crate::{
    cli::Prompts,
    exit::Error,
    output::{Output, safe, style, table::Table},
};
use nexus_client::{Failure, Prompt, PromptList, Reason};
use serde::Serialize;
use serde_json::value::RawValue;

pub(crate) async fn run(context: &Context, args: Prompts) -> Result<(), Error> {
    let nexus = context.connect().await?;
    let list = match (&args.name, &args.server) {
        (Some(name), _) => {
            let list = nexus.prompts().list().await?;
            match find(&list, name)? {
                Some(prompt) => return show(context, prompt),
                // The name of a server is a good way to ask for its prompts.
                None => match nexus.prompts().list_of(name).await {
                    Ok(list) => list,
                    Err(_) => return Err(unknown(name)),
                },
            }
        }
        (None, Some(server)) => nexus.prompts().list_of(server).await?,
        (None, None) => nexus.prompts().list().await?,
    };
    if context.output.json {
        return context.output.value(&ListJson {
            prompts: list.prompts.iter().map(PromptJson::new).collect(),
            missing: MissingJson::list(&list.missing),
        });
    }
    warn_of(context, &list.missing);
    if list.prompts.is_empty() {
        return nothing(context, &nexus, "no prompts").await;
    }
    context.output.table(&table(&list.prompts))
}

/// The prompt of that name, in any of its spellings.
fn find<'a>(list: &'a PromptList, name: &str) -> Result<Option<&'a Prompt>, Error> {
    let prompts = &list.prompts;
    let whole = |prompt: &&Prompt| {
        let dotted = name.strip_prefix("mcp:").unwrap_or(name);
        prompt.name == name || prompt.dotted().eq_ignore_ascii_case(dotted)
    };
    if let Some(prompt) = prompts.iter().find(whole) {
        return Ok(Some(prompt));
    }
    let mut bare = prompts.iter().filter(|prompt| prompt.prompt == name);
    match (bare.next(), bare.next()) {
        (Some(first), Some(second)) => Err(Error::Usage {
            message: format!("several servers have a prompt `{name}`"),
            hint: Some(format!(
                "write `{}` or `{}`",
                first.dotted(),
                second.dotted()
            )),
        }),
        (found, _) => Ok(found),
    }
}

fn unknown(name: &str) -> Error {
    let failure = Failure::new(
        Reason::PromptNotFound,
        format!("there is no prompt `{name}`"),
    );
    let hint = "see them all with `nexusctl prompts`";
    let failure = failure.with(|details| details.hint = Some(hint.to_owned()));
    Error::Client(failure.into())
}

fn table(prompts: &[Prompt]) -> Table {
    let mut table = Table::new(&["NAME", "ARGUMENTS", "DESCRIPTION"]);
    for prompt in prompts {
        let arguments = prompt.arguments().into_iter().map(|argument| {
            let name = safe::line(&argument.name);
            if argument.required {
                name
            } else {
                format!("[{name}]")
            }
        });
        let arguments: Vec<_> = arguments.collect();
        let about = prompt.description().or_else(|| prompt.title());
        table.row([
            safe::line(&prompt.dotted()).into(),
            arguments.join(" ").into(),
            about
                .map(|about| safe::line(&about))
                .unwrap_or_default()
                .into(),
        ]);
    }
    table
}

fn show(context: &Context, prompt: &Prompt) -> Result<(), Error> {
    if context.output.json {
        return context.output.value(&PromptJson::new(prompt));
    }
    context.output.data(&describe(&context.output, prompt))
}

fn describe(output: &Output, prompt: &Prompt) -> String {
    let mut text = output.paint(&safe::line(&prompt.dotted()), style::BOLD) + "\n";
    if let Some(about) = prompt.description().or_else(|| prompt.title()) {
        for line in safe::text(&about).trim().lines() {
            text += &format!("  {line}\n");
        }
    }
    let arguments = prompt.arguments();
    if arguments.is_empty() {
        return text + "  takes no arguments\n";
    }
    let mut table = Table::new(&["  ARGUMENT", "REQUIRED", "DESCRIPTION"]);
    for argument in arguments {
        let about = argument.description.or(argument.title);
        table.row([
            format!("  {}", safe::line(&argument.name)).into(),
            if argument.required { "yes" } else { "" }.into(),
            about
                .map(|about| safe::line(&about))
                .unwrap_or_default()
                .into(),
        ]);
    }
    text + &table.render(output.color(), output.width())
}

#[derive(Serialize)]
struct ListJson<'a> {
    prompts: Vec<PromptJson<'a>>,
    missing: Vec<MissingJson<'a>>,
}

#[derive(Serialize)]
struct PromptJson<'a> {
    name: &'a str,
    server: &'a str,
    prompt: &'a str,
    definition: Option<&'a RawValue>,
}

impl<'a> PromptJson<'a> {
    fn new(prompt: &'a Prompt) -> Self {
        Self {
            name: &prompt.name,
            server: &prompt.server,
            prompt: &prompt.prompt,
            definition: verbatim(&prompt.definition),
        }
    }
}
