//! `nexusctl tools`.

mod describe;

use super::{Context, servers::verbatim};
use crate::{
    cli::Tools,
    exit::Error,
    output::{safe, table::Table},
};
use nexus_client::{MissingServer, Nexus, Reason, Tool, ToolList};
use serde::Serialize;
use serde_json::value::RawValue;

pub(crate) async fn run(context: &Context, args: Tools) -> Result<(), Error> {
    let nexus = context.connect().await?;
    let list = match (&args.name, &args.server) {
        (Some(name), _) => match nexus.tools().get(name).await {
            Ok(tool) => return show(context, &tool),
            // The name of a server is a good way to ask for its tools.
            Err(error) if error.reason() == Some(Reason::ToolNotFound) => {
                match nexus.tools().list_of(name).await {
                    Ok(list) => list,
                    Err(_) => return Err(error.into()),
                }
            }
            Err(error) => return Err(error.into()),
        },
        (None, Some(server)) => nexus.tools().list_of(server).await?,
        (None, None) => nexus.tools().list().await?,
    };
    print(context, &nexus, &list, args.schema).await
}

async fn print(
    context: &Context,
    nexus: &Nexus,
    list: &ToolList,
    schema: bool,
) -> Result<(), Error> {
    let output = &context.output;
    if output.json {
        return output.value(&ListJson::new(list));
    }
    warn_of(context, &list.missing);
    if list.tools.is_empty() {
        return nothing(context, nexus, "no tools").await;
    }
    if schema {
        let tools = list.tools.iter();
        let texts: Vec<_> = tools.map(|tool| describe::text(output, tool)).collect();
        return output.data(&texts.join("\n"));
    }
    output.table(&table(&list.tools))
}

/// Says which servers are not in a list, and why.
pub(super) fn warn_of(context: &Context, missing: &[MissingServer]) {
    for missing in missing {
        let server = safe::line(&missing.server);
        let why = safe::line(&missing.message);
        context.output.warn(&format!("{server}: {why}"));
    }
}

/// Says why a list is empty.
pub(super) async fn nothing(context: &Context, nexus: &Nexus, what: &str) -> Result<(), Error> {
    let hint = match nexus.servers().list().await?.is_empty() {
        true => "no servers are configured",
        false => what,
    };
    context.output.note(hint);
    Ok(())
}

/// Tools with what they do, one in a line.
pub(super) fn table<'a>(tools: impl IntoIterator<Item = &'a Tool>) -> Table {
    let mut table = Table::new(&["NAME", "DESCRIPTION"]);
    for tool in tools {
        let about = tool.description().or_else(|| tool.title());
        table.row([
            safe::line(&tool.dotted()).into(),
            safe::line(&about.unwrap_or_default()).into(),
        ]);
    }
    table
}

fn show(context: &Context, tool: &Tool) -> Result<(), Error> {
    if context.output.json {
        return context.output.value(&ToolJson::new(tool));
    }
    context.output.data(&describe::text(&context.output, tool))
}

#[derive(Serialize)]
struct ListJson<'a> {
    tools: Vec<ToolJson<'a>>,
    missing: Vec<MissingJson<'a>>,
}

#[derive(Serialize)]
pub(super) struct ToolJson<'a> {
    name: &'a str,
    server: &'a str,
    tool: &'a str,
    definition: Option<&'a RawValue>,
}

#[derive(Serialize)]
pub(super) struct MissingJson<'a> {
    server: &'a str,
    reason: Option<&'static str>,
    message: &'a str,
}

impl<'a> ListJson<'a> {
    fn new(list: &'a ToolList) -> Self {
        Self {
            tools: list.tools.iter().map(ToolJson::new).collect(),
            missing: MissingJson::list(&list.missing),
        }
    }
}

impl<'a> MissingJson<'a> {
    pub(super) fn list(missing: &'a [MissingServer]) -> Vec<Self> {
        let json = |missing: &'a MissingServer| Self {
            server: &missing.server,
            reason: missing.reason.map(|reason| reason.as_str()),
            message: &missing.message,
        };
        missing.iter().map(json).collect()
    }
}

impl<'a> ToolJson<'a> {
    pub(super) fn new(tool: &'a Tool) -> Self {
        Self {
            name: &tool.name,
            server: &tool.server,
            tool: &tool.tool,
            definition: verbatim(&tool.definition),
        }
    }
}
