//! Who may speak at all: pages in a browser may not, and over TCP only who has the token. Pure.

use super::{Body, Refusal, body, plain, token::Token};
use crate::pool::key::Credential;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use std::{net::Ipv4Addr, sync::Arc};

/// Our token, where `Authorization` is for the servers.
const OWN_TOKEN: HeaderName = HeaderName::from_static("nexus-token");

/// How somebody came.
#[derive(Debug, Clone)]
pub enum Way {
    /// Over the endpoint: it is the same user.
    Endpoint,
    /// Over a loopback address: it may be anybody on this machine.
    Tcp(Arc<Token>),
}

/// Refuses pages in a browser, names that only look like this machine, and whoever has no token.
pub(super) fn check(headers: &HeaderMap, way: &Way) -> Result<(), Refusal> {
    if let Some(origin) = headers.get(header::ORIGIN)
        && !is_local_origin(origin)
    {
        return Err(plain(
            StatusCode::FORBIDDEN,
            "pages of other machines are not served",
        ));
    }
    let Way::Tcp(token) = way else {
        return Ok(());
    };
    // A name that somebody else makes point here is not ours (DNS rebinding).
    if !headers.get(header::HOST).is_some_and(is_local_host) {
        return Err(plain(
            StatusCode::FORBIDDEN,
            "this is not what the host is called",
        ));
    }
    let authorization = headers.get(header::AUTHORIZATION);
    let shown = headers.get(&OWN_TOKEN).or(authorization);
    match shown {
        Some(shown) if token.is(shown.as_bytes()) => Ok(()),
        _ => Err(Box::new(unauthorized())),
    }
}

/// What somebody shows to the servers.
pub(super) fn credential(headers: &HeaderMap, way: &Way) -> Option<Credential> {
    let shown = headers.get(header::AUTHORIZATION)?;
    let is_ours = matches!(way, Way::Tcp(_)) && !headers.contains_key(&OWN_TOKEN);
    (!is_ours && !shown.is_empty()).then(|| Credential::new(shown.as_bytes()))
}

fn unauthorized() -> Response<Body> {
    let text = "send Authorization: Bearer TOKEN; `nexusctl http` shows it";
    let mut response = body::text(StatusCode::UNAUTHORIZED, text);
    let scheme = HeaderValue::from_static("Bearer");
    response
        .headers_mut()
        .insert(header::WWW_AUTHENTICATE, scheme);
    response
}

fn is_local_origin(origin: &HeaderValue) -> bool {
    let Ok(origin) = origin.to_str() else {
        return false;
    };
    let host = origin
        .strip_prefix("http://")
        .or_else(|| origin.strip_prefix("https://"));
    host.is_some_and(is_local)
}

fn is_local_host(host: &HeaderValue) -> bool {
    host.to_str().is_ok_and(is_local)
}

/// Whether a host, perhaps with a port, is this machine and nothing else.
fn is_local(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    name.eq_ignore_ascii_case("localhost")
        || name == "[::1]"
        || name.parse::<Ipv4Addr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(headers: &[(&str, &str)], way: &Way) -> u16 {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name: HeaderName = name.parse().unwrap();
            map.insert(name, value.parse().unwrap());
        }
        check(&map, way).map_or_else(|refused| refused.status().as_u16(), |()| 200)
    }

    #[test]
    fn pages_of_others_are_refused_wherever_they_come_from() {
        for (origin, expected) in [
            ("http://localhost:3000", 200),
            ("http://127.0.0.1", 200),
            ("https://[::1]:8443", 200),
            ("http://evil.example", 403),
            ("http://localhost.evil.example", 403),
            ("http://127.0.0.1.evil.example:80", 403),
            ("null", 403),
            ("file://", 403),
        ] {
            assert_eq!(
                status(&[("origin", origin)], &Way::Endpoint),
                expected,
                "{origin}"
            );
        }
        assert_eq!(status(&[], &Way::Endpoint), 200);
    }

    #[test]
    fn over_tcp_the_name_and_the_token_must_be_right() {
        let token = Arc::new(Token::new());
        let good = format!("Bearer {}", token.reveal());
        let way = Way::Tcp(Arc::clone(&token));
        let host = ("host", "127.0.0.1:7420");
        assert_eq!(status(&[host, ("authorization", &good)], &way), 200);
        assert_eq!(status(&[host, ("nexus-token", token.reveal())], &way), 200);
        assert_eq!(status(&[host], &way), 401);
        let cut = &good[..good.len() - 1];
        assert_eq!(status(&[host, ("authorization", cut)], &way), 401);
        let other = ("host", "evil.example");
        assert_eq!(status(&[other, ("authorization", &good)], &way), 403);
        assert_eq!(status(&[("authorization", &good)], &way), 403);
    }

    #[test]
    fn only_what_is_not_our_token_is_shown_to_servers() {
        let token = Arc::new(Token::new());
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer x"));
        assert!(credential(&headers, &Way::Endpoint).is_some());
        let way = Way::Tcp(Arc::clone(&token));
        assert!(credential(&headers, &way).is_none());
        headers.insert(OWN_TOKEN, token.reveal().parse().unwrap());
        assert!(credential(&headers, &way).is_some());
    }
}
