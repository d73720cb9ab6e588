//! What a client says with a request. Pure.

use crate::{
    agent::Answers,
    mcp::{envelope::RpcError, revision::Revision},
};
use nexus_proto::level::LogLevel;
use serde::Deserialize;
use serde_json::{json, value::RawValue};
use std::{borrow::Cow, collections::HashMap};

pub(super) const INVALID_REQUEST: i64 = -32600;
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
pub(super) const INVALID_PARAMS: i64 = -32602;
pub(super) const INTERNAL: i64 = -32603;
const UNSUPPORTED_VERSION: i64 = -32022;

/// An error without data.
pub(super) fn error(code: i64, message: impl Into<String>) -> RpcError {
    RpcError::new(code, message)
}

/// The members of `params` that we look at. All others are the server's business.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Params<'a> {
    #[serde(borrow)]
    pub(super) name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) uri: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) level: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) input_responses: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) request_state: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) notifications: Option<&'a RawValue>,
    #[serde(borrow, rename = "ref")]
    pub(super) reference: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) argument: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) context: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    pub(super) meta: Meta<'a>,
}

/// What goes with a request.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Meta<'a> {
    #[serde(borrow, rename = "progressToken")]
    pub(super) progress_token: Option<&'a RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientCapabilities")]
    capabilities: Option<&'a RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientInfo")]
    pub(super) client: Option<&'a RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/logLevel")]
    log_level: Option<Cow<'a, str>>,
}

impl Meta<'_> {
    /// What its sender calls itself.
    pub(super) fn client_name(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Info {
            name: String,
        }
        let info: Info = serde_json::from_str(self.client?.get()).ok()?;
        Some(info.name)
    }
}

/// Reads params: JSON text, empty for none.
pub(super) fn read(params: &[u8]) -> Result<Params<'_>, RpcError> {
    if params.is_empty() {
        return Ok(Params::default());
    }
    if params.trim_ascii_start().first() != Some(&b'{') {
        return Err(error(INVALID_PARAMS, "params must be an object"));
    }
    serde_json::from_slice(params).map_err(|wrong| error(INVALID_PARAMS, wrong.to_string()))
}

/// Refuses answers that are none, whatever was asked: no server has to cope with them.
pub(super) fn check_responses(responses: Option<&RawValue>) -> Result<(), RpcError> {
    let Some(responses) = responses else {
        return Ok(());
    };
    let wrong = |what: &str| error(INVALID_PARAMS, format!("{what} must be an object"));
    let all: HashMap<Cow<'_, str>, &RawValue> =
        serde_json::from_str(responses.get()).map_err(|_| wrong("inputResponses"))?;
    match all.iter().find(|(_, raw)| !raw.get().starts_with('{')) {
        Some((key, _)) => Err(wrong(&format!("inputResponses.{key}"))),
        None => Ok(()),
    }
}

/// The era that a request is asked in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// In a session that began with `initialize`.
    Legacy,
    /// On its own, saying all that there is to say.
    Modern {
        /// What its sender can be asked.
        answers: Answers,
        /// The least urgent log messages that it wants.
        log_level: Option<LogLevel>,
    },
}

impl Dialect {
    pub(super) fn is_modern(self) -> bool {
        matches!(self, Self::Modern { .. })
    }
}

/// Which era a request is asked in. `initialized`: its stream began with `initialize`.
pub(super) fn dialect(
    method: &str,
    meta: &Meta<'_>,
    initialized: bool,
) -> Result<Dialect, RpcError> {
    let only_modern = matches!(method, "server/discover" | "subscriptions/listen");
    if !only_modern && !is_marked(method, meta) {
        // A ping is answered at any time.
        if initialized || matches!(method, "initialize" | "ping") {
            return Ok(Dialect::Legacy);
        }
        let modern = Revision::MODERN.as_str();
        let message = format!("{method} before initialize, and without the _meta of {modern}");
        return Err(error(INVALID_PARAMS, message));
    }
    let lacks = |name: &str| {
        let message = format!("_meta lacks io.modelcontextprotocol/{name}");
        error(INVALID_PARAMS, message)
    };
    let version = meta
        .version
        .as_deref()
        .ok_or_else(|| lacks("protocolVersion"))?;
    let capabilities = meta.capabilities.filter(|raw| raw.get().starts_with('{'));
    let capabilities = capabilities.ok_or_else(|| lacks("clientCapabilities"))?;
    if Revision::parse(version) != Some(Revision::MODERN) {
        return Err(RpcError {
            code: UNSUPPORTED_VERSION,
            message: "Unsupported protocol version".to_owned(),
            data: json!({"supported": supported(), "requested": version})
                .to_string()
                .into(),
        });
    }
    let log_level = match meta.log_level.as_deref() {
        None => None,
        Some(name) => Some(level(name)?),
    };
    Ok(Dialect::Modern {
        answers: Answers::read(capabilities.get().as_bytes()),
        log_level,
    })
}

/// Whether a request says that it is of the modern era. There is no greeting in it, and whoever asks for one is told
/// so; who only hints at what it can do is greeted.
fn is_marked(method: &str, meta: &Meta<'_>) -> bool {
    match method {
        "initialize" => meta.version.as_deref() == Some(Revision::MODERN.as_str()),
        _ => meta.version.is_some() || meta.capabilities.is_some(),
    }
}

/// What a request says of itself, for doors whose headers say it too.
#[derive(Debug)]
pub struct Says {
    /// The revision that it names, as those of the modern era do.
    pub version: Option<String>,
    /// It belongs to the modern era.
    pub is_modern: bool,
    /// Why it is no request of the modern era, though it may want to be.
    pub fault: Option<RpcError>,
    /// Which tool, prompt or resource it is for.
    pub addressee: Option<String>,
}

impl Says {
    /// What a request says of itself.
    pub fn read(method: &str, params: &[u8]) -> Result<Self, RpcError> {
        let read = read(params)?;
        let addressee = match method {
            "tools/call" | "prompts/get" => read.name,
            "resources/read" => read.uri,
            _ => None,
        };
        Ok(Self {
            version: read.meta.version.as_deref().map(str::to_owned),
            is_modern: is_marked(method, &read.meta),
            fault: dialect(method, &read.meta, false).err(),
            addressee: addressee.map(Cow::into_owned),
        })
    }
}

/// All revisions that are spoken, the newest first.
pub(super) fn supported() -> Vec<&'static str> {
    Revision::ALL
        .iter()
        .rev()
        .map(|revision| revision.as_str())
        .collect()
}

/// The level of that name.
pub(super) fn level(name: &str) -> Result<LogLevel, RpcError> {
    name.parse::<LogLevel>()
        .ok()
        .ok_or_else(|| error(INVALID_PARAMS, format!("unknown log level {name:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODERN: &str = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
        "io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}"#;

    fn decide(method: &str, params: &str, initialized: bool) -> Result<Dialect, i64> {
        let params = read(params.as_bytes()).map_err(|error| error.code)?;
        dialect(method, &params.meta, initialized).map_err(|error| error.code)
    }

    #[test]
    fn each_request_is_answered_in_its_own_era() {
        assert_eq!(decide("tools/list", "", true), Ok(Dialect::Legacy));
        assert!(decide("tools/list", MODERN, true).unwrap().is_modern());
        assert!(decide("tools/list", MODERN, false).unwrap().is_modern());
        assert!(decide("initialize", MODERN, false).unwrap().is_modern());
        let older = MODERN.replace("2026-07-28", "2025-11-25");
        assert_eq!(decide("initialize", &older, false), Ok(Dialect::Legacy));
        assert_eq!(decide("ping", "{}", false), Ok(Dialect::Legacy));
    }

    #[test]
    fn answers_are_objects() {
        let code = |text: &str| {
            let params = read(text.as_bytes()).map_err(|error| error.code)?;
            check_responses(params.input_responses).map_err(|error| error.code)
        };
        assert_eq!(code("{}"), Ok(()));
        assert_eq!(code(r#"{"inputResponses":null}"#), Ok(()));
        assert_eq!(code(r#"{"inputResponses":{"a":{}, "b": {"x":1}}}"#), Ok(()));
        for wrong in ["1", "[]", r#"{"a":1}"#, r#"{"a":{},"b":null}"#] {
            let text = format!(r#"{{"inputResponses":{wrong}}}"#);
            assert_eq!(code(&text), Err(INVALID_PARAMS), "{wrong}");
        }
    }

    #[test]
    fn a_request_of_no_era_is_refused() {
        assert_eq!(decide("tools/list", "{}", false), Err(INVALID_PARAMS));
        assert_eq!(decide("server/discover", "{}", true), Err(INVALID_PARAMS));
        let half = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#;
        assert_eq!(decide("tools/list", half, true), Err(INVALID_PARAMS));
        let other = MODERN.replace("2026-07-28", "2030-01-01");
        assert_eq!(decide("tools/list", &other, true), Err(UNSUPPORTED_VERSION));
        assert_eq!(decide("tools/list", "[1]", true), Err(INVALID_PARAMS));
    }
}
