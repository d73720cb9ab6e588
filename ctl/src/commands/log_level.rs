//! `nexusctl log-level`.

use super::Context;
use crate::{cli::SetLogLevel, exit::Error, output::safe};
use serde::Serialize;

pub(crate) async fn run(context: &Context, args: SetLogLevel) -> Result<(), Error> {
    let nexus = context.connect().await?;
    let servers = nexus.servers();
    servers.set_log_level(&args.server, args.level).await?;
    let level = args.level.as_str();
    if context.output.json {
        let server = &args.server;
        return context.output.value(&LevelJson { server, level });
    }
    let server = safe::line(&args.server);
    context
        .output
        .data(&format!("{server}: logs {level} and above"))
}

#[derive(Serialize)]
struct LevelJson<'a> {
    server: &'a str,
    level: &'static str,
}
