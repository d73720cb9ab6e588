//! What the headers of a request say, and whether its body says the same.

use hyper::HeaderMap;

use crate::message::Params;
use crate::reply::RpcError;

pub(super) const SESSION: &str = "mcp-session-id";
pub(super) const VERSION: &str = "mcp-protocol-version";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

/// A header as text.
pub(super) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Whether the client takes this media type.
pub(super) fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    let listed = headers
        .get_all("accept")
        .iter()
        .filter_map(|value| value.to_str().ok());
    let mut types = listed
        .flat_map(|value| value.split(','))
        .map(|part| part.split(';').next().unwrap_or("").trim());
    types.any(|accepted| accepted == "*/*" || accepted.eq_ignore_ascii_case(media_type))
}

/// Whether the body is said to be JSON.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let media_type = text(headers, "content-type")
        .and_then(|value| value.split(';').next())
        .unwrap_or_default();
    media_type.trim().eq_ignore_ascii_case("application/json")
}

/// Whether a browser page that is not of this machine asks: that would be a DNS rebinding attack.
pub(super) fn origin_is_local(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get("origin") else {
        return true;
    };
    let Some((_, authority)) = origin
        .to_str()
        .ok()
        .and_then(|origin| origin.split_once("://"))
    else {
        return false;
    };
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    matches!(host, "localhost" | "127.0.0.1" | "[::1]")
}

/// Checks that a modern request says in its headers what it says in its body.
pub(super) fn check(
    headers: &HeaderMap,
    method: &str,
    params: &Params<'_>,
) -> Result<(), RpcError> {
    check_version(headers, params.meta.version.as_deref().unwrap_or_default())?;
    same(headers, METHOD, method)?;
    let name = match method {
        "tools/call" | "prompts/get" => params.name.as_deref(),
        "resources/read" => params.uri.as_deref(),
        _ => None,
    };
    name.map_or(Ok(()), |name| same(headers, NAME, name))
}

/// Checks that the header names the version of the body.
pub(super) fn check_version(headers: &HeaderMap, version: &str) -> Result<(), RpcError> {
    same(headers, VERSION, version)
}

fn same(headers: &HeaderMap, name: &str, expected: &str) -> Result<(), RpcError> {
    let mismatch = |what: &str| {
        Err(RpcError::new(
            -32020,
            format!("Header mismatch: {name} {what}"),
        ))
    };
    match text(headers, name) {
        None => mismatch("is missing"),
        Some(value)
            if value == expected
                || decoded(value).is_some_and(|bytes| bytes == expected.as_bytes()) =>
        {
            Ok(())
        }
        Some(_) => mismatch("differs from the body"),
    }
}

/// The bytes of `=?base64?…?=`, which carries what a header cannot.
fn decoded(value: &str) -> Option<Vec<u8>> {
    let text = value.strip_prefix("=?base64?")?.strip_suffix("?=")?;
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for digit in text.trim_end_matches('=').bytes() {
        let six = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(six);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::{HeaderName, HeaderValue};
    use serde_json::value::RawValue;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_static(value),
                )
            })
            .collect()
    }

    fn checked(
        pairs: &[(&'static str, &'static str)],
        method: &str,
        name: &str,
    ) -> Result<(), i32> {
        let text = format!(
            r#"{{"name":"{name}","_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}}"#
        );
        let raw = RawValue::from_string(text).unwrap();
        let params = crate::message::params(Some(&raw)).unwrap();
        check(&headers(pairs), method, &params).map_err(|error| error.code)
    }

    #[test]
    fn headers_must_repeat_the_body() {
        let (version, method) = ((VERSION, "2026-07-28"), (METHOD, "tools/call"));
        assert_eq!(
            checked(&[version, method, (NAME, "echo")], "tools/call", "echo"),
            Ok(())
        );
        assert_eq!(
            checked(
                &[version, method, (NAME, "=?base64?w6k/IQ==?=")],
                "tools/call",
                "é?!"
            ),
            Ok(())
        );
        assert_eq!(
            checked(&[version, method, (NAME, "add")], "tools/call", "echo"),
            Err(-32020)
        );
        assert_eq!(
            checked(&[version, method], "tools/call", "echo"),
            Err(-32020)
        );
        assert_eq!(checked(&[version], "tools/list", ""), Err(-32020));
        assert_eq!(
            checked(&[(VERSION, "2025-11-25"), method], "tools/call", "echo"),
            Err(-32020)
        );
    }

    #[test]
    fn only_pages_of_this_machine_may_ask() {
        assert!(origin_is_local(&headers(&[])));
        for origin in [
            "http://localhost",
            "http://localhost:3000",
            "http://127.0.0.1:8080",
            "https://[::1]:1",
            "http://[::1]",
        ] {
            assert!(origin_is_local(&headers(&[("origin", origin)])), "{origin}");
        }
        for origin in [
            "null",
            "http://evil.example",
            "http://localhost.evil.example:80",
            "http://evil.example:80/localhost",
        ] {
            assert!(
                !origin_is_local(&headers(&[("origin", origin)])),
                "{origin}"
            );
        }
    }

    #[test]
    fn accept_lists_are_read_with_their_parameters() {
        let both = headers(&[("accept", "application/json;q=0.9, text/event-stream")]);
        assert!(accepts(&both, "application/json") && accepts(&both, "text/event-stream"));
        assert!(accepts(&headers(&[("accept", "*/*")]), "application/json"));
        assert!(!accepts(
            &headers(&[("accept", "application/json")]),
            "text/event-stream"
        ));
        assert!(!accepts(&headers(&[]), "application/json"));
    }
}
