//! The tools that are ours: `search` finds the tools of the servers, `execute` calls them. A client that has only
//! these has room in its context for other things.

use super::{answer, lists, methods::Asked, view::View};
use crate::{
    catalog::{Catalog, MAX_MATCHES, MAX_QUERY, Match, Tool},
    mcp::lists::Kind,
    pool::key::Caller,
};
use bytes::Bytes;
use nexus_config::model::ToolsMode;
use nexus_proto::reason::{Failure, Reason};
use serde::{Deserialize, Serialize};
use serde_json::{json, value::RawValue};
use std::borrow::Cow;

/// How many tools are found unless the client says how many: each comes with its schema.
const MATCHES: usize = 5;

/// Definitions beyond this are not worth their room. The first is always told.
const MAX_ANSWER: usize = 1024 * 1024;

/// So many servers are named in the description of `search`.
const MAX_NAMED: usize = 50;

const NOTHING: &str = "No tool fits. Try fewer or other words: names, or what the tool does.";

/// A tool of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Builtin {
    Search,
    Execute,
}

impl Builtin {
    /// Ours of that name, if this client has them. A server's own of that name is reached through `execute`.
    pub(super) fn named(name: &str, caller: &Caller) -> Option<Self> {
        match (caller.sight.tools(), name) {
            (ToolsMode::Direct, _) => None,
            (_, "search") => Some(Self::Search),
            (_, "execute") => Some(Self::Execute),
            _ => None,
        }
    }

    /// Ours that is called by this request.
    fn called(asked: &Asked<'_>) -> Option<Self> {
        if asked.method != "tools/call" {
            return None;
        }
        Self::named(asked.params.name.as_deref()?, &asked.client.caller())
    }
}

/// Their definitions: JSON text.
pub(super) fn definitions(catalog: &Catalog, caller: &Caller) -> [String; 2] {
    let servers = catalog.servers(caller);
    let mut names: Vec<_> = servers
        .iter()
        .map(|server| server.config().name.clone())
        .collect();
    if names.len() > MAX_NAMED {
        names.truncate(MAX_NAMED);
        names.push("and more".to_owned());
    }
    let servers = match names.is_empty() {
        true => String::new(),
        false => format!(" There are tools of these servers: {}.", names.join(", ")),
    };
    let search = json!({
        "name": "search",
        "title": "Find tools",
        "description": format!(
            "Finds tools by keywords: what they do, their names, their parameters. Returns the best first, each with \
             its name and the schema of its arguments; call it with `execute`.{servers}"
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": {
                    "type": "string",
                    "maxLength": MAX_QUERY,
                    "description": "A few keywords, such as: create github issue",
                },
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_MATCHES,
                    "default": MATCHES,
                    "description": "How many tools at the most",
                },
            },
            "required": ["query"],
        },
        "annotations": {"readOnlyHint": true, "openWorldHint": false},
    });
    let execute = json!({
        "name": "execute",
        "title": "Call a tool",
        "description": "Calls a tool that `search` has found, and returns its result.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "The name of the tool, as `search` tells it"},
                "arguments": {
                    "type": "object",
                    "description": "Its arguments, as its inputSchema says",
                    "additionalProperties": true,
                },
            },
            "required": ["name"],
        },
    });
    [search.to_string(), execute.to_string()]
}

/// How they are to be used.
pub(super) fn instructions(caller: &Caller) -> Option<&'static str> {
    match caller.sight.tools() {
        ToolsMode::Direct => None,
        ToolsMode::Search => Some(
            "The tools of the servers are not listed: find them with the tool `search`, call them with `execute`.",
        ),
        ToolsMode::Both => Some("The tool `search` finds tools by what they do."),
    }
}

/// The answer to a request that is for us and for no server.
pub(super) async fn answer(asked: &Asked<'_>) -> Option<Bytes> {
    // What comes back with answers belongs to a call that is held.
    if asked.params.request_state.is_some() {
        return None;
    }
    let failed = |text: &str| Some(answer::failed(text, asked.dialect));
    match Builtin::called(asked)? {
        Builtin::Search => match search(asked).await {
            Ok(found) => Some(found),
            Err(text) => failed(&text),
        },
        Builtin::Execute => match read_execute(asked) {
            Ok(_) => None,
            Err(text) => failed(&text),
        },
    }
}

/// What `execute` is to call, if it is called, and with what.
pub(super) fn to_execute(asked: &Asked<'_>) -> Option<(String, Bytes)> {
    if Builtin::called(asked) != Some(Builtin::Execute) {
        return None;
    }
    let Execute { name, arguments } = read_execute(asked).ok()?;
    let arguments =
        arguments.map_or_else(Bytes::new, |raw| asked.raw.slice_ref(raw.get().as_bytes()));
    Some((name.into_owned(), arguments))
}

/// Whether it was the name that was wrong.
pub(super) fn is_wrong_name(failure: &Failure) -> bool {
    matches!(
        failure.reason,
        Reason::ToolNotFound | Reason::ServerNotFound | Reason::AmbiguousName
    )
}

#[derive(Deserialize)]
struct Execute<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

fn read_execute<'a>(asked: &Asked<'a>) -> Result<Execute<'a>, String> {
    let arguments = asked.params.arguments.map_or("{}", RawValue::get);
    serde_json::from_str(arguments).map_err(|wrong| format!("execute: {wrong}"))
}

/// Words may come as one text or one by one.
#[derive(Deserialize)]
struct Search {
    #[serde(alias = "keywords")]
    query: Words,
    #[serde(default)]
    limit: Option<u32>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "query must be a text")]
enum Words {
    Text(String),
    Each(Vec<String>),
}

async fn search(asked: &Asked<'_>) -> Result<Bytes, String> {
    let arguments = asked.params.arguments.map_or("{}", RawValue::get);
    let Search { query, limit } =
        serde_json::from_str(arguments).map_err(|wrong| format!("search: {wrong}"))?;
    let query = match query {
        Words::Text(text) => text,
        Words::Each(words) => words.join(" "),
    };
    let limit = limit.filter(|limit| *limit > 0);
    let limit = limit.map_or(MATCHES, |limit| limit as usize);
    let client = asked.client;
    let caller = client.caller();
    lists::settle(client, &caller, Kind::Tools).await;
    let found = client.catalog().search(&query, limit, &caller).await;
    let found = found.map_err(|failure| failure.message)?;
    let keeps_names = View::of(&caller).single().is_some();
    let result = tell(&found, keeps_names).map_err(|wrong| format!("search: {wrong}"))?;
    Ok(answer::shape(result, asked.dialect, false))
}

/// A tool as a model is told of it. What its server wrote is passed on as it is.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told<'a> {
    name: &'a str,
    server: &'a str,
    #[serde(flatten)]
    about: About<'a>,
    score: f64,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct About<'a> {
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    title: Option<&'a RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    description: Option<&'a RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    input_schema: Option<&'a RawValue>,
}

impl<'a> Told<'a> {
    fn new(tool: &'a Tool, score: f32, keeps_names: bool) -> Self {
        Self {
            name: if keeps_names { &tool.tool } else { &tool.name },
            server: &tool.server,
            about: serde_json::from_slice(&tool.definition).unwrap_or_default(),
            // No more digits than mean something.
            score: (f64::from(score) * 1000.0).round() / 1000.0,
        }
    }
}

/// The result of `search`: the same as text and as JSON.
fn tell(found: &[Match], keeps_names: bool) -> serde_json::Result<Bytes> {
    let mut size = 0;
    let fits = |found: &&Match| {
        size += found.tool.definition.len();
        size <= MAX_ANSWER || size == found.tool.definition.len()
    };
    let tools = found.iter().take_while(fits);
    let tools: Vec<_> = tools
        .map(|found| Told::new(&found.tool, found.score, keeps_names))
        .collect();
    let tools = format!(r#"{{"tools":{}}}"#, serde_json::to_string(&tools)?);
    let text = match found.is_empty() {
        true => NOTHING,
        false => &tools,
    };
    let text = serde_json::to_string(text)?;
    let result =
        format!(r#"{{"content":[{{"type":"text","text":{text}}}],"structuredContent":{tools}}}"#);
    Ok(result.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{catalog::Item as _, mcp::lists::Definition};
    use serde_json::Value;
    use std::sync::Arc;

    fn found(name: &str, definition: String) -> Match {
        let definition = Definition {
            key: name.into(),
            json: definition.into(),
        };
        Match {
            tool: Arc::new(Tool::new(format!("s__{name}"), "s".into(), &definition)),
            score: 0.123_456,
        }
    }

    fn told(found: &[Match], keeps_names: bool) -> (String, Value) {
        let result: Value = serde_json::from_slice(&tell(found, keeps_names).unwrap()).unwrap();
        let text = result["content"][0]["text"].as_str().unwrap().to_owned();
        (text, result["structuredContent"]["tools"].clone())
    }

    #[test]
    fn what_a_server_wrote_is_told_as_it_is() {
        let odd = r#"{"name":"x","description":"caf\u00e9","inputSchema":{"maximum":1e400, "z":1,"a":2},"other":7}"#;
        let result = tell(&[found("x", odd.to_owned())], false).unwrap();
        let text = std::str::from_utf8(&result).unwrap();
        let own = r#""structuredContent":{"tools":[{"name":"s__x","server":"s","description":"caf\u00e9","inputSchema":{"maximum":1e400, "z":1,"a":2},"score":0.123}]}"#;
        assert!(text.contains(own), "{text}");
    }

    #[test]
    fn the_text_says_the_same_in_the_names_of_the_client() {
        let tool = found("x", r#"{"name":"x","title":"X"}"#.to_owned());
        let (text, tools) = told(std::slice::from_ref(&tool), false);
        assert_eq!(tools[0]["name"], "s__x");
        let same: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(same["tools"], tools);
        assert_eq!(told(&[tool], true).1[0]["name"], "x");
        let (text, tools) = told(&[], false);
        assert_eq!((text.as_str(), tools), (NOTHING, json!([])));
    }

    #[test]
    fn an_answer_has_an_end() {
        let large = |name| {
            let schema = "x".repeat(MAX_ANSWER / 2 + 1);
            found(
                name,
                json!({"name": name, "inputSchema": {"description": schema}}).to_string(),
            )
        };
        assert_eq!(
            told(&[large("a"), large("b"), large("c")], false)
                .1
                .as_array()
                .unwrap()
                .len(),
            1
        );
        let huge = found(
            "a",
            json!({"name": "a", "description": "x".repeat(2 * MAX_ANSWER)}).to_string(),
        );
        assert_eq!(
            told(&[huge, large("b")], false).1.as_array().unwrap().len(),
            1
        );
    }
}
