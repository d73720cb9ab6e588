//! A place on the web, and what is said there that nobody else is to see. Pure.

use secrecy::{ExposeSecret as _, SecretString};
use std::fmt;

/// What is never printed.
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    /// Keeps it.
    pub fn new(text: impl Into<String>) -> Self {
        Self(SecretString::from(text.into()))
    }

    /// Gives it away.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.expose() == other.expose()
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Why a URL cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// It is none.
    #[error("it is not a URL")]
    Malformed,
    /// Neither `http` nor `https`.
    #[error("only http and https are spoken")]
    Scheme,
}

/// A place on the web: where it is and what is asked for there.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Whether the way there is secured.
    pub https: bool,
    /// A name, or an address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The path and what follows it, which may be secret.
    pub path: String,
    /// What the URL says before the host, as it is shown: `user:password`.
    pub user: Option<Secret>,
}

impl Endpoint {
    /// Reads a URL.
    pub fn parse(url: &str) -> Result<Self, UrlError> {
        let url = url.trim();
        let (scheme, rest) = url.split_once("://").ok_or(UrlError::Malformed)?;
        let https = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return Err(UrlError::Scheme),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (user, authority) = match authority.rsplit_once('@') {
            Some((user, authority)) => (Some(Secret::new(unescape(user))), authority),
            None => (None, authority),
        };
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']').ok_or(UrlError::Malformed)?;
                host.parse::<std::net::Ipv6Addr>()
                    .map_err(|_| UrlError::Malformed)?;
                (host, port)
            }
            None => {
                let at = authority.find(':').unwrap_or(authority.len());
                authority.split_at(at)
            }
        };
        let port = match port.strip_prefix(':') {
            None if port.is_empty() => None,
            Some("") => None,
            Some(port) => Some(port.parse().map_err(|_| UrlError::Malformed)?),
            None => return Err(UrlError::Malformed),
        };
        let is_name = |b: u8| b.is_ascii_alphanumeric() || b"-._:".contains(&b);
        if host.is_empty() || !host.bytes().all(is_name) {
            return Err(UrlError::Malformed);
        }
        let path = path.split('#').next().unwrap_or_default();
        if path.bytes().any(|b| b <= b' ' || b >= 0x7f) {
            return Err(UrlError::Malformed);
        }
        Ok(Self {
            https,
            host: host.to_ascii_lowercase(),
            port: port.unwrap_or(if https { 443 } else { 80 }),
            path: if path.starts_with('/') {
                path.to_owned()
            } else {
                format!("/{path}")
            },
            user,
        })
    }

    /// What a reference that is found there points to.
    pub fn join(&self, reference: &str) -> Result<Self, UrlError> {
        let reference = reference.trim();
        if let Some(rest) = reference.strip_prefix("//") {
            let scheme = if self.https { "https" } else { "http" };
            return Self::parse(&format!("{scheme}://{rest}"));
        }
        let before_path = reference.split(['/', '?', '#']).next().unwrap_or_default();
        if before_path.contains(':') {
            return Self::parse(reference);
        }
        let own = self.path.split('?').next().unwrap_or_default();
        let path = match reference.chars().next() {
            Some('/') => reference.to_owned(),
            Some('?') => format!("{own}{reference}"),
            _ => {
                let folder = own.rfind('/').map_or("", |at| &own[..at]);
                format!("{folder}/{reference}")
            }
        };
        let here = self.origin();
        Self::parse(&format!("{here}{path}"))
    }

    /// Whether the two are at the same place, whatever is asked for there.
    pub fn is_same_origin(&self, other: &Self) -> bool {
        (self.https, &self.host, self.port) == (other.https, &other.host, other.port)
    }

    /// The host and the port, as a header `Host` has them.
    pub fn authority(&self) -> String {
        let host = match self.host.contains(':') {
            true => format!("[{}]", self.host),
            false => self.host.clone(),
        };
        match (self.https, self.port) {
            (true, 443) | (false, 80) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }

    /// The place, without what is asked for there.
    pub fn origin(&self) -> String {
        let scheme = if self.https { "https" } else { "http" };
        format!("{scheme}://{}", self.authority())
    }

    /// All of it but who we are. What is asked for may be secret.
    pub fn to_url(&self) -> String {
        format!("{}{}", self.origin(), self.path)
    }
}

/// Without what may be secret: who we are, and what follows a question mark.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.split('?').next().unwrap_or_default();
        write!(f, "{}{path}", self.origin())
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({self})")
    }
}

/// Text in which `%41` stands for a byte.
fn unescape(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let byte = match (first, after) {
            (b'%', [a, b, ..]) => std::str::from_utf8(&[*a, *b])
                .ok()
                .and_then(|hex| u8::from_str_radix(hex, 16).ok()),
            _ => None,
        };
        out.push(byte.unwrap_or(*first));
        rest = &after[if byte.is_some() { 2 } else { 0 }..];
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(url: &str) -> Endpoint {
        Endpoint::parse(url).unwrap()
    }

    #[test]
    fn a_url_is_taken_apart() {
        let url = of("HTTPS://me:p%40ss@Example.com:8443/mcp?key=secret#x");
        assert_eq!(
            (url.https, &*url.host, url.port),
            (true, "example.com", 8443)
        );
        assert_eq!(url.path, "/mcp?key=secret");
        assert_eq!(url.user.as_ref().unwrap().expose(), "me:p@ss");
        assert_eq!(url.to_url(), "https://example.com:8443/mcp?key=secret");
        assert_eq!(of("http://[::1]:80").origin(), "http://[::1]");
        assert_eq!(of("http://localhost").path, "/");
    }

    #[test]
    fn what_may_be_secret_is_not_shown() {
        let url = of("https://me:pass@example.com/mcp?key=secret");
        for shown in [url.to_string(), format!("{url:?}")] {
            assert!(
                !shown.contains("secret") && !shown.contains("pass"),
                "{shown}"
            );
        }
        assert!(!format!("{:?}", Secret::new("hunter2")).contains("hunter2"));
    }

    #[test]
    fn only_the_web_is_reached() {
        assert_eq!(Endpoint::parse("file:///etc/passwd"), Err(UrlError::Scheme));
        assert_eq!(Endpoint::parse("gopher://x"), Err(UrlError::Scheme));
        for url in [
            "",
            "x",
            "http://",
            "http://a b/",
            "http://a:b/",
            "http://[x]/",
            "http://a/\r\nb",
        ] {
            assert_eq!(Endpoint::parse(url), Err(UrlError::Malformed), "{url}");
        }
    }

    #[test]
    fn references_are_followed_from_where_they_are_found() {
        let base = of("http://a:1/x/sse?t=1");
        for (reference, expected) in [
            ("/messages?s=1", "http://a:1/messages?s=1"),
            ("messages", "http://a:1/x/messages"),
            ("?s=2", "http://a:1/x/sse?s=2"),
            ("https://b/c", "https://b/c"),
            ("//b/c", "http://b/c"),
        ] {
            let joined = base.join(reference).unwrap();
            assert_eq!(joined.to_url(), expected, "{reference}");
        }
        assert!(base.is_same_origin(&base.join("/y").unwrap()));
        for other in ["https://a:1/y", "http://a/y", "http://b:1/y", "//b:1/y"] {
            assert!(!base.is_same_origin(&base.join(other).unwrap()), "{other}");
        }
        assert!(base.join("javascript:alert(1)").is_err());
    }
}
