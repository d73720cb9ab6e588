//! Which protocol a connection speaks, from its first bytes. Pure.

/// What a connection speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// gRPC: the preface of HTTP/2.
    Grpc,
    /// MCP as lines of JSON.
    McpLines,
    /// HTTP/1.1.
    Http1,
    /// None that we know.
    Unknown,
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// How many bytes a word of HTTP/1.1 is told by.
const WORD: usize = 4;

/// What begins like this; `None` when more has to be seen.
pub fn sniff(start: &[u8]) -> Option<Protocol> {
    // Lines of JSON may begin with white space.
    let start = match start.iter().position(|b| !b.is_ascii_whitespace()) {
        Some(at) => &start[at..],
        None => return None,
    };
    if start[0] == b'{' {
        return Some(Protocol::McpLines);
    }
    // All of it, so that whoever begins it and falls silent is not waited for.
    let seen = start.len().min(PREFACE.len());
    if start[..seen] == PREFACE[..seen] {
        return (seen == PREFACE.len()).then_some(Protocol::Grpc);
    }
    Some(
        if start.iter().take(WORD).all(u8::is_ascii_uppercase) || is_method(start) {
            Protocol::Http1
        } else {
            Protocol::Unknown
        },
    )
}

/// `GET /` and `PUT /` end their word within what is seen.
fn is_method(start: &[u8]) -> bool {
    start.starts_with(b"GET ") || start.starts_with(b"PUT ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_is_told_by_its_start() {
        for (start, protocol) in [
            (PREFACE, Protocol::Grpc),
            (b"{\"jsonrpc\":\"2.0\"", Protocol::McpLines),
            (b"\r\n {", Protocol::McpLines),
            (b"POST /mcp HTTP/1.1", Protocol::Http1),
            (b"GET / HTTP/1.1", Protocol::Http1),
            (b"PUT /", Protocol::Http1),
            (b"PRIVATE", Protocol::Http1),
            (b"\x16\x03\x01", Protocol::Unknown),
            (b"hello", Protocol::Unknown),
        ] {
            assert_eq!(sniff(start), Some(protocol), "{start:?}");
        }
    }

    #[test]
    fn too_little_is_not_enough_to_tell() {
        for start in [&b""[..], b" ", b"P", b"PR", b"PRI", b"PRI * HTTP/2.0\r\n"] {
            assert_eq!(sniff(start), None, "{start:?}");
        }
    }
}
