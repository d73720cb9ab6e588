//! What is sent back: results and errors, rendered by hand so that ready-made text stays as it is.

use crate::eras::Dialect;
use crate::options::CacheScope;

/// `Implementation` of this server.
pub(crate) const SERVER_INFO: &str = concat!(
    r#"{"name":"nexus-test-server","title":"Nexus test server","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""}"#
);

/// A JSON-RPC error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RpcError {
    pub(crate) code: i32,
    pub(crate) message: String,
    /// JSON text.
    pub(crate) data: Option<String>,
}

impl RpcError {
    pub(crate) fn new(code: i32, message: impl Into<String>) -> RpcError {
        RpcError {
            code,
            message: message.into(),
            data: None,
        }
    }

    pub(crate) fn invalid_params(message: impl AsRef<str>) -> RpcError {
        RpcError::new(-32602, format!("Invalid params: {}", message.as_ref()))
    }

    pub(crate) fn method_not_found(method: &str) -> RpcError {
        RpcError::new(-32601, format!("Method not found: {method}"))
    }

    pub(crate) fn with_data(self, data: String) -> RpcError {
        RpcError {
            data: Some(data),
            ..self
        }
    }
}

/// A result: the members of its object as JSON text (`"a":1,"b":2`), without what the era adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Bytes, not text: one fault breaks the UTF-8.
    pub(crate) members: Vec<u8>,
    /// Whether the modern era wants `ttlMs` and `cacheScope` on it.
    pub(crate) cacheable: bool,
    /// The modern `resultType`.
    pub(crate) kind: &'static str,
    /// Whether the members are a whole object instead, with all that either era wants.
    pub(crate) whole: bool,
}

impl Outcome {
    pub(crate) fn complete(members: impl Into<Vec<u8>>) -> Outcome {
        Outcome {
            members: members.into(),
            cacheable: false,
            kind: "complete",
            whole: false,
        }
    }

    pub(crate) fn cacheable(members: impl Into<Vec<u8>>) -> Outcome {
        Outcome {
            cacheable: true,
            ..Outcome::complete(members)
        }
    }

    /// A result that is sent as it is, byte for byte.
    pub(crate) fn whole(object: Vec<u8>) -> Outcome {
        Outcome {
            whole: true,
            ..Outcome::complete(object)
        }
    }

    /// A tool's result of one text, and further members such as `"isError":true`.
    pub(crate) fn text(text: &str, more: &str) -> Outcome {
        let comma = if more.is_empty() { "" } else { "," };
        Outcome::complete(format!(
            r#""content":[{{"type":"text","text":{}}}]{comma}{more}"#,
            quoted(text)
        ))
    }
}

/// What a request ends in.
pub(crate) type Reply = Result<Outcome, RpcError>;

/// How long, and for whom, a modern result may be kept: the members that say so.
pub(crate) fn caching(ttl: Option<u64>, scope: CacheScope) -> String {
    let (ttl, scope) = (
        ttl.unwrap_or(60_000),
        match scope {
            CacheScope::Public => "public",
            CacheScope::Private => "private",
        },
    );
    format!(r#""ttlMs":{ttl},"cacheScope":"{scope}""#)
}

/// A whole response; `caching` is what a modern result says if it may be kept.
pub(crate) fn render(id: &str, dialect: Dialect, caching: &str, reply: &Reply) -> Vec<u8> {
    match reply {
        Ok(outcome) => render_result(id, dialect, caching, outcome),
        Err(error) => {
            let data = error
                .data
                .as_ref()
                .map_or(String::new(), |data| format!(r#","data":{data}"#));
            let message = quoted(&error.message);
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{},"message":{message}{data}}}}}"#,
                error.code
            )
            .into_bytes()
        }
    }
}

fn render_result(id: &str, dialect: Dialect, caching: &str, outcome: &Outcome) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(outcome.members.len() + id.len() + 256);
    bytes.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    bytes.extend_from_slice(id.as_bytes());
    bytes.extend_from_slice(br#","result":"#);
    if outcome.whole {
        bytes.extend_from_slice(&outcome.members);
        bytes.push(b'}');
        return bytes;
    }
    bytes.push(b'{');
    bytes.extend_from_slice(&outcome.members);
    if dialect == Dialect::Modern {
        if !outcome.members.is_empty() {
            bytes.push(b',');
        }
        bytes.extend_from_slice(br#""resultType":""#);
        bytes.extend_from_slice(outcome.kind.as_bytes());
        bytes.push(b'"');
        if outcome.cacheable {
            bytes.push(b',');
            bytes.extend_from_slice(caching.as_bytes());
        }
        bytes.extend_from_slice(br#","_meta":{"io.modelcontextprotocol/serverInfo":"#);
        bytes.extend_from_slice(SERVER_INFO.as_bytes());
        bytes.push(b'}');
    }
    bytes.extend_from_slice(b"}}");
    bytes
}

/// A notification, or with an id a request of ours; `params` is JSON text.
pub(crate) fn outgoing(id: Option<u64>, method: &str, params: &str) -> Vec<u8> {
    let id = id.map_or(String::new(), |id| format!(r#""id":{id},"#));
    format!(r#"{{"jsonrpc":"2.0",{id}"method":"{method}","params":{params}}}"#).into_bytes()
}

/// A progress notification; `token` is JSON text.
pub(crate) fn progress(token: &str, step: u32, steps: u32) -> Vec<u8> {
    let params = format!(
        r#"{{"progressToken":{token},"progress":{step},"total":{steps},"message":"Step {step} of {steps}"}}"#
    );
    outgoing(None, "notifications/progress", &params)
}

/// The text as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn rendered(dialect: Dialect, reply: Reply) -> Value {
        let caching = caching(None, CacheScope::Public);
        serde_json::from_slice(&render("7", dialect, &caching, &reply)).unwrap()
    }

    #[test]
    fn a_legacy_result_has_nothing_added() {
        let value = rendered(Dialect::Legacy, Ok(Outcome::cacheable(r#""tools":[]"#)));
        assert_eq!(
            value,
            json!({"jsonrpc": "2.0", "id": 7, "result": {"tools": []}})
        );
        let empty = rendered(Dialect::Legacy, Ok(Outcome::complete("")));
        assert_eq!(empty["result"], json!({}));
    }

    #[test]
    fn a_modern_result_says_its_type_and_how_long_it_keeps() {
        let value = rendered(Dialect::Modern, Ok(Outcome::cacheable(r#""tools":[]"#)));
        assert_eq!(value["result"]["resultType"], "complete");
        assert_eq!(value["result"]["ttlMs"], 60_000);
        assert_eq!(value["result"]["cacheScope"], "public");
        let call = rendered(Dialect::Modern, Ok(Outcome::complete("")));
        assert_eq!(call["result"]["resultType"], "complete");
        assert!(call["result"].get("ttlMs").is_none());
        assert_eq!(
            call["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
            "nexus-test-server"
        );
    }

    #[test]
    fn an_error_keeps_its_data() {
        let value = rendered(
            Dialect::Modern,
            Err(RpcError::new(-32022, "no \"x\"").with_data("[1]".to_owned())),
        );
        assert_eq!(
            value["error"],
            json!({"code": -32022, "message": "no \"x\"", "data": [1]})
        );
    }
}
