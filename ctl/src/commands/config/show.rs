//! `nexusctl config show`.

use super::{Context, load};
use crate::{
    exit::Error,
    output::{safe, style, table::Cell, table::Table},
};
use nexus_client::Error as ClientError;
use nexus_config::{Server, show};
use serde_json::{Map, Value, json};

pub(crate) async fn run(context: &Context, origin: bool, offline: bool) -> Result<(), Error> {
    if !offline && !origin {
        match context.connect().await {
            Ok(nexus) => {
                let config = nexus.daemon().effective_config().await?;
                return context.output.raw_json(config.as_str());
            }
            Err(Error::Client(ClientError::Unreachable { .. })) => {
                context
                    .output
                    .note("no daemon is running: this is what one would use");
            }
            Err(error) => return Err(error),
        }
    }
    let (_, loaded) = load(None);
    let here = std::env::current_dir().ok();
    let here = here.as_deref();
    let errors = loaded
        .diagnoses
        .iter()
        .filter(|diagnosis| diagnosis.is_error());
    errors.for_each(|diagnosis| context.output.diagnosis(diagnosis));
    if origin && !context.output.json {
        let mut table = Table::new(&["NAME", "LAYER", "STATE", "FROM"]);
        let state = |server: &Server| match server.enabled {
            _ if !server.scope.reaches(here) => "elsewhere",
            _ if !server.scope.has(here) => "overridden",
            true => "used",
            false => "disabled",
        };
        let servers = loaded.servers.iter();
        let mut rows: Vec<(&Server, &str)> =
            servers.map(|server| (server, state(server))).collect();
        rows.extend(
            loaded
                .overridden
                .iter()
                .map(|server| (server, "overridden")),
        );
        rows.sort_by(|a, b| a.0.name.cmp(&b.0.name));
        for (server, state) in rows {
            let look = if state == "used" {
                style::GOOD
            } else {
                style::DIM
            };
            let source = &server.origin.source;
            let from = format!("{}:{}", source.path.display(), server.origin.line());
            table.row([
                safe::line(&server.name).into(),
                source.layer.as_str().into(),
                Cell::styled(state, look),
                from.into(),
            ]);
        }
        return context.output.table(&table);
    }
    let servers: Map<String, Value> = loaded
        .seen_from(here)
        .map(|server| (server.name.clone(), show::server(server, origin)))
        .collect();
    context
        .output
        .raw_json(&json!({ "mcpServers": servers }).to_string())
}
