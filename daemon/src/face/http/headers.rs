//! What the headers of a request say. Pure.

use super::{Refusal, rpc_error};
use crate::{
    agent::folder,
    face::mcp::Says,
    mcp::{envelope::RpcError, revision::Revision},
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::{HeaderMap, HeaderName, StatusCode, header};
use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const PROJECT: HeaderName = HeaderName::from_static("nexus-project");

const HEADER_MISMATCH: i64 = -32020;
const METHOD_NOT_FOUND: i64 = -32601;
const MISSING_CAPABILITY: i64 = -32021;

/// What a client can be answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Accepts {
    pub(super) json: bool,
    pub(super) events: bool,
}

/// What a client can be answered with: anything, if it does not say.
pub(super) fn accepts(headers: &HeaderMap) -> Accepts {
    let mut accepts = Accepts {
        json: false,
        events: false,
    };
    let mut says = false;
    for value in headers.get_all(header::ACCEPT) {
        for kind in value.to_str().unwrap_or_default().split(',') {
            says = true;
            match kind.split(';').next().unwrap_or_default().trim() {
                "*/*" => (accepts.json, accepts.events) = (true, true),
                "application/json" | "application/*" => accepts.json = true,
                "text/event-stream" | "text/*" => accepts.events = true,
                _ => {}
            }
        }
    }
    match says {
        true => accepts,
        false => Accepts {
            json: true,
            events: true,
        },
    }
}

/// Whether the body says that it is JSON.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let kind = text(headers, &header::CONTENT_TYPE).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}

/// The session that a request belongs to.
pub(super) fn session(headers: &HeaderMap) -> Option<&str> {
    text(headers, &SESSION)
}

/// The folder that its sender works in: an absolute path.
pub(super) fn project(headers: &HeaderMap) -> Option<PathBuf> {
    let path = headers.get(&PROJECT)?;
    folder(Path::new(str::from_utf8(path.as_bytes()).ok()?))
}

/// Whether a request says that it is of the modern era.
pub(super) fn is_modern(headers: &HeaderMap) -> bool {
    let version = text(headers, &VERSION).and_then(Revision::parse);
    version.is_some_and(Revision::is_modern)
}

/// Refuses a request of the modern era whose headers say something else than its body.
pub(super) fn check(headers: &HeaderMap, method: &str, says: Says) -> Result<(), RpcError> {
    let mismatch = |name: &HeaderName, is: &str| {
        let message = format!("the header {name} must be what the body says: {is:?}");
        Err(RpcError::new(HEADER_MISMATCH, message))
    };
    if let Some(version) = &says.version
        && text(headers, &VERSION) != Some(version)
    {
        return mismatch(&VERSION, version);
    }
    if let Some(fault) = says.fault {
        return Err(fault);
    }
    if text(headers, &METHOD) != Some(method) {
        return mismatch(&METHOD, method);
    }
    match says.addressee {
        Some(name) if decoded(headers, &NAME).as_deref() != Some(&*name) => mismatch(&NAME, &name),
        _ => Ok(()),
    }
}

/// Refuses a request of a session whose header names a revision that there is not.
pub(super) fn check_legacy(headers: &HeaderMap) -> Result<(), Refusal> {
    match text(headers, &VERSION) {
        Some(version) if Revision::parse(version).is_none() => {
            let message = format!("there is no revision {version:?} of MCP");
            let error = RpcError::new(-32600, message);
            Err(rpc_error(StatusCode::BAD_REQUEST, b"null", &error))
        }
        _ => Ok(()),
    }
}

/// How the modern era says over HTTP what came of a request.
pub(super) fn status(error: Option<i64>) -> StatusCode {
    match error {
        Some(METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Some(MISSING_CAPABILITY) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// A value that may be written as `=?base64?…?=`.
fn decoded<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<Cow<'a, str>> {
    let value = text(headers, name)?;
    let coded = value
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="));
    match coded {
        Some(coded) => {
            let bytes = BASE64_STANDARD.decode(coded).ok()?;
            Some(String::from_utf8(bytes).ok()?.into())
        }
        None => Some(value.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&str, &str)| {
            let name: HeaderName = name.parse().unwrap();
            (name, value.parse().unwrap())
        };
        all.iter().map(pair).collect()
    }

    #[test]
    fn what_can_be_answered_is_read_and_else_is_anything() {
        let of = |value| {
            let accepts = accepts(&headers(&[("accept", value)]));
            (accepts.json, accepts.events)
        };
        assert_eq!(of("application/json, text/event-stream"), (true, true));
        assert_eq!(of("application/json;q=0.5"), (true, false));
        assert_eq!(of("text/event-stream"), (false, true));
        assert_eq!(of("*/*"), (true, true));
        assert_eq!(of("text/html"), (false, false));
        assert!(accepts(&HeaderMap::new()).events);
    }

    #[test]
    fn headers_must_say_what_the_body_says() {
        let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
            "io.modelcontextprotocol/clientCapabilities":{}}"#;
        let says = |method: &str, name: &str| {
            Says::read(method, format!("{{{name}{meta}}}").as_bytes()).unwrap()
        };
        let base = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
        ];
        let with = |name: &str| {
            let mut all = base.to_vec();
            all.push(("mcp-name", name));
            let says = says("tools/call", r#""name":"caf\u00e9","#);
            check(&headers(&all), "tools/call", says).map_err(|error| error.code)
        };
        assert_eq!(with("=?base64?Y2Fmw6k=?="), Ok(()));
        assert_eq!(with("cafe"), Err(HEADER_MISMATCH));
        assert_eq!(with("=?base64?!?="), Err(HEADER_MISMATCH));
        let code = |all: &[(&str, &str)], method| {
            check(&headers(all), method, says(method, "")).map_err(|error| error.code)
        };
        assert_eq!(code(&base, "tools/list"), Err(HEADER_MISMATCH));
        assert_eq!(code(&base[1..], "tools/call"), Err(HEADER_MISMATCH));
        let list = [base[0], ("mcp-method", "tools/list")];
        assert_eq!(code(&list, "tools/list"), Ok(()));
    }
}
