//! `nexusctl search`.

use super::{
    Context,
    tools::{ToolJson, table},
};
use crate::{cli::Search, exit::Error};
use serde::Serialize;

pub(crate) async fn run(context: &Context, args: Search) -> Result<(), Error> {
    let nexus = context.connect().await?;
    let query = args.words.join(" ");
    let matches = nexus.tools().search(&query, args.limit).await?;
    if context.output.json {
        let matches = matches.iter().map(|found| MatchJson {
            tool: ToolJson::new(&found.tool),
            score: found.score,
        });
        return context.output.value(&matches.collect::<Vec<_>>());
    }
    if matches.is_empty() {
        context.output.note(&format!("no tool fits `{query}`"));
        return Ok(());
    }
    let tools = matches.iter().map(|found| &found.tool);
    context.output.table(&table(tools))
}

#[derive(Serialize)]
struct MatchJson<'a> {
    #[serde(flatten)]
    tool: ToolJson<'a>,
    score: f32,
}
