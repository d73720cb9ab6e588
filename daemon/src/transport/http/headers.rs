//! What is said in headers. Pure.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::time::Duration;

/// The revision that is spoken.
pub static VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The session of a legacy server.
pub static SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// The method, for modern servers.
pub static METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// What the method is applied to, for modern servers.
pub static NAME: HeaderName = HeaderName::from_static("mcp-name");
/// Before the name of an argument.
pub const PARAM: &str = "mcp-param-";
/// The last event that arrived.
pub static LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// The longest id of a session that is taken.
const MAX_SESSION: usize = 256;

/// The longest that a server may keep everybody waiting.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// Names that are ours to say, whatever is configured.
static RESERVED: [&HeaderName; 15] = [
    &VERSION,
    &SESSION,
    &METHOD,
    &NAME,
    &LAST_EVENT,
    &header::ACCEPT,
    &header::ACCEPT_ENCODING,
    &header::CONNECTION,
    &header::CONTENT_LENGTH,
    &header::CONTENT_TYPE,
    &header::HOST,
    &header::TE,
    &header::TRAILER,
    &header::TRANSFER_ENCODING,
    &header::UPGRADE,
];

/// Whether a header is ours to say, whatever is configured.
pub fn is_reserved(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    RESERVED.iter().any(|reserved| **reserved == *name) || name.starts_with(PARAM)
}

/// Text as a header can carry it.
pub fn encode(text: &str) -> HeaderValue {
    let plain = text.bytes().all(|b| (b' '..0x7f).contains(&b))
        && text.trim() == text
        && !text.starts_with("=?base64?");
    match HeaderValue::from_str(text) {
        Ok(value) if plain => value,
        _ => {
            let coded = format!("=?base64?{}?=", STANDARD.encode(text));
            // Base64 has nothing that a header has not.
            HeaderValue::from_str(&coded).unwrap_or(HeaderValue::from_static(""))
        }
    }
}

/// The id of the session that a server has begun: `None` for none, an error for one that cannot be used.
pub fn session(headers: &HeaderMap) -> Result<Option<HeaderValue>, String> {
    let Some(id) = headers.get(&SESSION) else {
        return Ok(None);
    };
    let bytes = id.as_bytes();
    let is_good = !bytes.is_empty()
        && bytes.len() <= MAX_SESSION
        && bytes.iter().all(|b| (0x21..=0x7e).contains(b));
    if !is_good {
        return Err("the server began a session with an id that MCP does not allow".to_owned());
    }
    let mut id = id.clone();
    id.set_sensitive(true);
    Ok(Some(id))
}

/// What a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Media {
    /// One message.
    Json,
    /// A stream of events.
    Events,
    /// Anything else.
    Other,
}

/// What the body of a response is.
pub fn media(headers: &HeaderMap) -> Media {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        Media::Json
    } else if kind.eq_ignore_ascii_case("text/event-stream") {
        Media::Events
    } else {
        Media::Other
    }
}

/// How a body is coded, if it is: we have asked for none of that.
pub fn coding(headers: &HeaderMap) -> Option<String> {
    let coding = headers.get(header::CONTENT_ENCODING)?;
    let coding = String::from_utf8_lossy(coding.as_bytes()).trim().to_owned();
    (!coding.is_empty() && !coding.eq_ignore_ascii_case("identity")).then_some(coding)
}

/// How long the server wants to be left alone. A time of day is taken by the server's own clock.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match text.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let until = httpdate::parse_http_date(text).ok()?;
            let date = headers.get(header::DATE)?.to_str().ok()?;
            let now = httpdate::parse_http_date(date).ok()?;
            until.duration_since(now).unwrap_or_default()
        }
    };
    Some(wait.min(LONGEST_PAUSE))
}

/// What a server wants to be shown, in words for people.
pub fn challenge(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(header::WWW_AUTHENTICATE)?.to_str().ok()?;
    let parts = text.split([',', ' ']).map(str::trim);
    let error = parts.filter(|part| part.starts_with("error=") || part.starts_with("scope="));
    let error: Vec<_> = error.collect();
    let scheme = text.split(' ').next().unwrap_or_default();
    Some(format!("{scheme} {}", error.join(", ")).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(
            http::HeaderName::from_static(name),
            HeaderValue::from_static(value),
        )])
    }

    #[test]
    fn what_a_header_cannot_carry_is_coded() {
        for (text, expected) in [
            ("echo", "echo"),
            ("two words", "two words"),
            (" edge", "=?base64?IGVkZ2U=?="),
            ("é", "=?base64?w6k=?="),
            ("a\nb", "=?base64?YQpi?="),
            ("=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?="),
        ] {
            assert_eq!(encode(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_session_is_visible_and_short() {
        assert_eq!(session(&HeaderMap::new()), Ok(None));
        let good = session(&headers("mcp-session-id", "a-1")).unwrap().unwrap();
        assert!(good == "a-1" && good.is_sensitive());
        for bad in ["", "a b", "x\u{e9}"] {
            let map = HeaderMap::from_iter([(
                SESSION.clone(),
                HeaderValue::from_bytes(bad.as_bytes()).unwrap(),
            )]);
            assert!(session(&map).is_err(), "{bad:?}");
        }
        let long = HeaderValue::from_str(&"x".repeat(257)).unwrap();
        let map = HeaderMap::from_iter([(SESSION.clone(), long)]);
        assert!(session(&map).is_err());
    }

    #[test]
    fn both_forms_of_retry_after_are_read_and_bounded() {
        let after = |value| retry_after(&headers("retry-after", value));
        assert_eq!(after("7"), Some(Duration::from_secs(7)));
        assert_eq!(after("86400"), Some(LONGEST_PAUSE));
        assert_eq!(after("soon"), None);
        let mut dated = headers("retry-after", "Wed, 21 Oct 2015 07:28:09 GMT");
        assert_eq!(retry_after(&dated), None);
        let now = HeaderValue::from_static("Wed, 21 Oct 2015 07:28:00 GMT");
        dated.insert("date", now);
        assert_eq!(retry_after(&dated), Some(Duration::from_secs(9)));
        let later = HeaderValue::from_static("Wed, 21 Oct 2015 07:29:00 GMT");
        dated.insert("date", later);
        assert_eq!(retry_after(&dated), Some(Duration::ZERO));
    }

    #[test]
    fn a_body_is_what_its_header_says() {
        let media = |value| media(&headers("content-type", value));
        assert_eq!(media("Application/JSON; charset=utf-8"), Media::Json);
        assert_eq!(media("text/event-stream"), Media::Events);
        assert_eq!(media("text/html"), Media::Other);
        assert_eq!(coding(&headers("content-encoding", "identity")), None);
        assert!(coding(&headers("content-encoding", "gzip")).is_some());
    }

    #[test]
    fn a_challenge_tells_what_is_missing_and_nothing_else() {
        let text = r#"Bearer realm="x", error="insufficient_scope", scope="a b""#;
        let said = challenge(&headers("www-authenticate", text)).unwrap();
        assert!(
            said.contains("insufficient_scope") && !said.contains("realm"),
            "{said}"
        );
    }
}
