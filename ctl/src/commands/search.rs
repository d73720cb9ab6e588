//! `nexusctl search`.

use super::{
    Context,
    tools::{ToolJson, nothing},
};
use crate::{
    cli::Search,
    exit::Error,
    output::{safe, table::Table},
};
use nexus_client::ToolMatch;
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
        let what = format!(
            "no tool fits `{query}`\n\nhint: try fewer or other words; `nexusctl tools` lists the tools there are"
        );
        return nothing(context, &nexus, &what).await;
    }
    context.output.table(&table(&matches))
}

fn table(matches: &[ToolMatch]) -> Table {
    let mut table = Table::new(&["NAME", ">SCORE", "DESCRIPTION"]);
    for found in matches {
        let tool = &found.tool;
        let about = tool.description().or_else(|| tool.title());
        table.row([
            safe::line(&tool.dotted()).into(),
            format!("{:.2}", found.score).into(),
            safe::line(&about.unwrap_or_default()).into(),
        ]);
    }
    table
}

#[derive(Serialize)]
struct MatchJson<'a> {
    #[serde(flatten)]
    tool: ToolJson<'a>,
    score: f32,
}
