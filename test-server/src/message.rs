//! One incoming JSON-RPC message, taken apart without copying what nobody looks at.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::{Deserialize, Deserializer};
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::reply::RpcError;

/// What a message is.
#[derive(Debug)]
pub(crate) enum Incoming<'a> {
    Request {
        id: &'a str,
        method: Cow<'a, str>,
        params: Option<&'a RawValue>,
    },
    Notification {
        method: Cow<'a, str>,
        params: Option<&'a RawValue>,
    },
    /// An answer to a request of ours, as `{"result":…}` or `{"error":…}`.
    Response { id: &'a str, answer: String },
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// Tells `null` from absent, which `Option` alone does not.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Takes a message apart; the error is to be sent with the id null.
pub(crate) fn parse(bytes: &[u8]) -> Result<Incoming<'_>, RpcError> {
    match bytes.trim_ascii_start().first() {
        Some(b'[') => return Err(RpcError::new(-32600, "Batches are not supported")),
        Some(b'{') => {}
        _ => return Err(RpcError::new(-32700, "Parse error: not a JSON object")),
    }
    let envelope: Envelope<'_> =
        serde_json::from_slice(bytes).map_err(|error| match error.classify() {
            Category::Data => RpcError::new(-32600, format!("Invalid request: {error}")),
            _ => RpcError::new(-32700, format!("Parse error: {error}")),
        })?;
    let id = envelope.id.map(RawValue::get);
    if id.is_some_and(|id| {
        !id.starts_with(['"', '-']) && !id.starts_with(|c: char| c.is_ascii_digit())
    }) {
        return Err(RpcError::new(
            -32600,
            "Invalid request: the id must be a string or a number",
        ));
    }
    match (envelope.method, id, envelope.result, envelope.error) {
        (Some(method), Some(id), ..) => Ok(Incoming::Request {
            id,
            method,
            params: envelope.params,
        }),
        (Some(method), None, ..) => Ok(Incoming::Notification {
            method,
            params: envelope.params,
        }),
        (None, Some(id), Some(result), None) => Ok(Incoming::Response {
            id,
            answer: format!(r#"{{"result":{result}}}"#),
        }),
        (None, Some(id), None, Some(error)) => Ok(Incoming::Response {
            id,
            answer: format!(r#"{{"error":{error}}}"#),
        }),
        _ => Err(RpcError::new(
            -32600,
            "Invalid request: neither a request, a notification nor a response",
        )),
    }
}

/// The params of any method we know, all optional: each method asks for its own.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Params<'a> {
    #[serde(borrow, default, rename = "_meta")]
    pub(crate) meta: Meta<'a>,
    pub(crate) name: Option<String>,
    pub(crate) uri: Option<String>,
    pub(crate) cursor: Option<String>,
    pub(crate) level: Option<String>,
    pub(crate) protocol_version: Option<String>,
    pub(crate) request_state: Option<String>,
    #[serde(borrow)]
    pub(crate) capabilities: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) input_responses: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) request_id: Option<&'a RawValue>,
    pub(crate) notifications: Option<Wanted>,
    pub(crate) r#ref: Option<Reference>,
    pub(crate) argument: Option<Argument>,
    pub(crate) context: Option<Context>,
}

/// The `_meta` entries we know.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Meta<'a> {
    #[serde(borrow, rename = "progressToken")]
    pub(crate) progress_token: Option<&'a RawValue>,
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    pub(crate) version: Option<String>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientCapabilities")]
    pub(crate) capabilities: Option<&'a RawValue>,
    #[serde(rename = "io.modelcontextprotocol/logLevel")]
    pub(crate) log_level: Option<String>,
    #[serde(rename = "nexus.test/nonce")]
    pub(crate) nonce: Option<String>,
}

/// The notifications a `subscriptions/listen` asks for.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Wanted {
    pub(crate) tools_list_changed: bool,
    pub(crate) prompts_list_changed: bool,
    pub(crate) resources_list_changed: bool,
    pub(crate) resource_subscriptions: Vec<String>,
}

/// What a `completion/complete` is about.
#[derive(Debug, Deserialize)]
pub(crate) struct Reference {
    pub(crate) r#type: String,
    pub(crate) name: Option<String>,
    pub(crate) uri: Option<String>,
}

/// The argument to complete, and what is typed of it.
#[derive(Debug, Deserialize)]
pub(crate) struct Argument {
    pub(crate) name: String,
    pub(crate) value: String,
}

/// What is known of the other arguments when one is completed.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Context {
    pub(crate) arguments: HashMap<String, String>,
}

/// Reads the params; -32602 if they have a wrong type.
pub(crate) fn params<'a>(raw: Option<&'a RawValue>) -> Result<Params<'a>, RpcError> {
    match raw {
        None => Ok(Params::default()),
        // A derived struct would read an array by position.
        Some(raw) if !raw.get().starts_with('{') => {
            Err(RpcError::invalid_params("params must be an object"))
        }
        Some(raw) => serde_json::from_str(raw.get())
            .map_err(|error| RpcError::invalid_params(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &[u8]) -> i32 {
        parse(text).unwrap_err().code
    }

    #[test]
    fn what_is_not_json_is_a_parse_error() {
        for text in [
            &b"hello"[..],
            b"",
            b"{",
            b"{\"id\":1,}",
            b"{\"method\":\"\xff\"}",
        ] {
            assert_eq!(code(text), -32700, "{text:?}");
        }
    }

    #[test]
    fn json_that_is_no_message_is_an_invalid_request() {
        for text in [
            "[]",
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
            "{}",
            r#"{"id":1}"#,
            r#"{"id":1,"method":2}"#,
        ] {
            assert_eq!(code(text.as_bytes()), -32600, "{text}");
        }
        for id in ["null", "{}", "[]", "true"] {
            assert_eq!(
                code(format!(r#"{{"id":{id},"method":"ping"}}"#).as_bytes()),
                -32600,
                "{id}"
            );
        }
    }

    #[test]
    fn ids_keep_their_exact_text() {
        for id in [
            "0",
            "-1",
            "\"7\"",
            "\"a b\"",
            "123456789012345678901234567890",
        ] {
            let text = format!(r#" {{"jsonrpc":"2.0","id": {id} ,"method":"ping"}}"#);
            match parse(text.as_bytes()) {
                Ok(Incoming::Request { id: read, .. }) => assert_eq!(read, id),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn deep_params_are_not_walked_into() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        let text =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"arguments":{deep}}}}}"#);
        assert!(
            matches!(parse(text.as_bytes()), Ok(Incoming::Request { params: Some(p), .. }) if params(Some(p)).is_ok())
        );
    }

    #[test]
    fn params_of_a_wrong_type_are_invalid() {
        for text in ["[1]", "7", r#"{"name":7}"#, r#"{"_meta":[]}"#] {
            let raw = RawValue::from_string(text.to_owned()).unwrap();
            assert_eq!(params(Some(&raw)).unwrap_err().code, -32602, "{text}");
        }
    }
}
