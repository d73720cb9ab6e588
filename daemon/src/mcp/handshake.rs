//! The first words with a server: who it is, what it can do, which tools it has.

use super::{
    connection::{CallError, Connection},
    tools::{Pages, ToolDefinition, parse_page},
};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{json, value::RawValue};
use std::sync::Arc;

/// The revisions that begin with `initialize`, the newest first.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// What a server said of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerInfo {
    /// Its own name.
    pub name: String,
    /// Its own version.
    pub version: String,
    /// A name for people.
    pub title: String,
    /// The revision that was agreed on.
    pub protocol_version: String,
    /// How it wants to be used.
    pub instructions: String,
    /// What it can do: a JSON object, verbatim.
    pub capabilities: Bytes,
}

/// The tools of a server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolList {
    /// In the server's own order.
    pub tools: Vec<ToolDefinition>,
    /// What was odd about the list.
    pub warnings: Vec<String>,
}

/// Why there is no talking to a server.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// The server refused, or its process ended.
    #[error("`initialize` failed: {0}")]
    Call(String),
    /// The answer is not what MCP prescribes.
    #[error("the answer to `initialize` is not MCP: {0}")]
    Malformed(#[from] serde_json::Error),
    /// No common revision.
    #[error("the server speaks MCP {theirs:?}; Nexus speaks {}", VERSIONS.join(", "))]
    Version {
        /// The revision it offered.
        theirs: String,
    },
}

/// Introduces ourselves and learns who the server is.
pub async fn introduce(connection: &Arc<Connection>) -> Result<ServerInfo, HandshakeError> {
    let hello = json!({
        "protocolVersion": VERSIONS[0],
        "capabilities": {},
        "clientInfo": {
            "name": "nexus",
            "title": "Nexus",
            "version": env!("CARGO_PKG_VERSION"),
        },
    });
    let answer = request(connection, "initialize", hello.to_string().as_bytes())
        .await
        .map_err(HandshakeError::Call)?;
    let info = parse_welcome(&answer)?;
    connection.notify("notifications/initialized", b"");
    Ok(info)
}

/// Asks for the tools, page by page. A server that declares none has none.
pub async fn list_tools(
    connection: &Arc<Connection>,
    info: &ServerInfo,
) -> Result<ToolList, String> {
    #[derive(Deserialize)]
    struct Capabilities<'a> {
        #[serde(borrow, default)]
        tools: Option<&'a RawValue>,
    }
    let declared: Result<Capabilities<'_>, _> = serde_json::from_slice(&info.capabilities);
    if declared.is_ok_and(|declared| declared.tools.is_none()) {
        return Ok(ToolList::default());
    }
    let mut pages = Pages::default();
    let mut params = String::new();
    loop {
        let answer = request(connection, "tools/list", params.as_bytes()).await?;
        let page = parse_page(&answer).map_err(|error| format!("the list is not MCP: {error}"))?;
        match pages.add(page) {
            Some(cursor) => params = json!({ "cursor": cursor }).to_string(),
            None => break,
        }
    }
    let (tools, warnings) = pages.finish();
    Ok(ToolList { tools, warnings })
}

async fn request(
    connection: &Arc<Connection>,
    method: &str,
    params: &[u8],
) -> Result<Bytes, String> {
    let answer = match connection.request(method, params) {
        Ok(waiting) => waiting.await,
        Err(error) => Err(error),
    };
    answer.map_err(|error| match error {
        CallError::Rpc(error) => format!("{} (code {})", error.message, error.code),
        CallError::NotSent(cause) | CallError::Lost(cause) => cause.message.clone(),
        CallError::Overloaded => "too much is waiting to be written".to_owned(),
        CallError::TooLarge(length) => format!("the answer is too large ({length} bytes)"),
        CallError::Malformed(what) => format!("the answer is {what}"),
    })
}

fn parse_welcome(answer: &Bytes) -> Result<ServerInfo, HandshakeError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Body<'a> {
        protocol_version: String,
        #[serde(borrow, default)]
        capabilities: Option<&'a RawValue>,
        #[serde(default)]
        server_info: Implementation,
        #[serde(default)]
        instructions: Option<String>,
    }
    #[derive(Default, Deserialize)]
    struct Implementation {
        #[serde(default)]
        name: String,
        #[serde(default)]
        version: String,
        #[serde(default)]
        title: Option<String>,
    }
    let body: Body<'_> = serde_json::from_slice(answer)?;
    if !VERSIONS.contains(&body.protocol_version.as_str()) {
        return Err(HandshakeError::Version {
            theirs: body.protocol_version,
        });
    }
    let capabilities = body.capabilities.map_or("{}", RawValue::get);
    Ok(ServerInfo {
        name: body.server_info.name,
        version: body.server_info.version,
        title: body.server_info.title.unwrap_or_default(),
        protocol_version: body.protocol_version,
        instructions: body.instructions.unwrap_or_default(),
        capabilities: Bytes::copy_from_slice(capabilities.as_bytes()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn welcome(text: &str) -> Result<ServerInfo, HandshakeError> {
        parse_welcome(&Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn any_of_the_four_revisions_is_accepted() {
        for version in VERSIONS {
            let info = welcome(&format!(r#"{{"protocolVersion":"{version}"}}"#)).unwrap();
            assert_eq!(info.protocol_version, version);
        }
    }

    #[test]
    fn an_unknown_revision_is_refused_with_both_lists() {
        let error = welcome(r#"{"protocolVersion":"1999-01-01"}"#)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("1999-01-01") && error.contains("2024-11-05"),
            "{error}"
        );
    }

    #[test]
    fn what_a_server_says_of_itself_is_kept() {
        let info = welcome(
            r#"{"protocolVersion":"2025-06-18","capabilities":{"tools": {}},
                "serverInfo":{"name":"n","version":"1"},"instructions":"be kind"}"#,
        )
        .unwrap();
        assert_eq!((&*info.name, &*info.instructions), ("n", "be kind"));
        assert_eq!(info.capabilities, r#"{"tools": {}}"#);
    }
}
