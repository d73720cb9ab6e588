//! `nexusctl http`.

use super::Context;
use crate::{
    exit::Error,
    output::{safe, style},
};
use serde::Serialize;
use serde_json::json;

pub(crate) async fn run(context: &Context) -> Result<(), Error> {
    let status = context.connect().await?.daemon().status().await?;
    let Some(door) = status.http else {
        return Err(Error::Usage {
            message: "MCP over HTTP is not served".to_owned(),
            hint: Some(
                "start the daemon with --http, or write `http = \"127.0.0.1:7420\"` under [daemon] in nexus.toml"
                    .to_owned(),
            ),
        });
    };
    let token = std::fs::read_to_string(&door.token_file).map_err(|source| Error::Io {
        attempt: format!("read {}", door.token_file.display()),
        source,
    })?;
    let found = HttpJson {
        url: format!("http://{}/mcp", door.address),
        token: token.trim().to_owned(),
        token_file: door.token_file.display().to_string(),
    };
    if context.output.json {
        return context.output.value(&found);
    }
    let entry = json!({"mcpServers": {"nexus": {
        "type": "http",
        "url": found.url,
        "headers": {"Authorization": format!("Bearer {}", found.token)},
    }}});
    let entry = serde_json::to_string_pretty(&entry).unwrap_or_default();
    let name = |name: &str| context.output.paint(&format!("{name:12}"), style::BOLD);
    context.output.data(&format!(
        "{} {}\n{} {}\n{} {}\n\n{entry}\n",
        name("url"),
        safe::line(&found.url),
        name("one server"),
        safe::line(&format!("{}/NAME", found.url)),
        name("token file"),
        safe::line(&found.token_file),
    ))
}

#[derive(Serialize)]
struct HttpJson {
    url: String,
    token: String,
    token_file: String,
}
