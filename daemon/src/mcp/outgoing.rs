//! Messages to a server or a client, put together from text that is JSON already. Pure.

use super::{envelope::RpcError, revision::Revision};
use crate::transport::outbox::Head;
use bytes::{BufMut as _, Bytes, BytesMut};
use nexus_proto::level::LogLevel;
use serde::Serialize;

/// Who we are, as servers are told it: a JSON object.
pub const CLIENT_INFO: &[u8] = concat!(
    "{\"name\":\"nexus\",\"title\":\"Nexus\",\"version\":\"",
    env!("CARGO_PKG_VERSION"),
    "\"}"
)
.as_bytes();

/// A request: its method, and the members of its `params`.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// The method.
    pub method: &'static str,
    /// In this order. What is empty is left out.
    pub params: &'a [(&'static str, Param<'a>)],
}

/// One member of the `params` of a request.
#[derive(Debug, Clone, Copy)]
pub enum Param<'a> {
    /// A string.
    Text(&'a str),
    /// JSON text, carried as it is but for its ends of line.
    Json(&'a [u8]),
}

/// What goes with a request besides its params.
#[derive(Debug, Clone, Copy, Default)]
pub struct Meta<'a> {
    /// Progress is wanted.
    pub progress: bool,
    /// What modern servers are told with every request.
    pub modern: Option<Modern<'a>>,
}

/// What modern servers are told with every request.
#[derive(Debug, Clone, Copy)]
pub struct Modern<'a> {
    /// What the caller can be asked: a JSON object.
    pub capabilities: &'a [u8],
    /// The least urgent log messages that are wanted.
    pub log_level: Option<LogLevel>,
}

/// A request.
pub fn request(id: u64, ask: &Ask<'_>, meta: &Meta<'_>) -> Bytes {
    let size: usize = ask
        .params
        .iter()
        .map(|(name, param)| name.len() + param.size())
        .sum();
    let mut out = start(ask.method.len() + size + if meta.modern.is_some() { 512 } else { 128 });
    out.extend_from_slice(b",\"id\":");
    put_number(&mut out, id);
    put_method(&mut out, ask.method);
    let mut params = Members::new(b",\"params\":");
    for (name, param) in ask.params {
        match param {
            Param::Json([]) => {}
            Param::Json(json) => {
                params.name(&mut out, name);
                put_line(&mut out, json);
            }
            Param::Text(text) => {
                params.name(&mut out, name);
                put_json(&mut out, *text);
            }
        }
    }
    if meta.progress || meta.modern.is_some() {
        params.name(&mut out, "_meta");
        put_meta(&mut out, id, meta);
    }
    params.end(&mut out);
    end(out)
}

/// What is said of a request beside its bytes, where there is a place for it.
pub fn head(ask: &Ask<'_>, modern: bool) -> Head {
    let named_by = match ask.method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => "",
    };
    let name = ask.params.iter().find_map(|(key, param)| match param {
        Param::Text(text) if *key == named_by => Some((*text).into()),
        _ => None,
    });
    Head {
        method: ask.method,
        name,
        modern,
        ..Head::default()
    }
}

fn put_meta(out: &mut BytesMut, id: u64, meta: &Meta<'_>) {
    let mut members = Members::new(b"");
    if meta.progress {
        // The token is our own: two agents that use the same one are never mixed up.
        members.name(out, "progressToken");
        put_number(out, id);
    }
    if let Some(modern) = &meta.modern {
        members.name(out, "io.modelcontextprotocol/protocolVersion");
        put_json(out, Revision::MODERN.as_str());
        members.name(out, "io.modelcontextprotocol/clientCapabilities");
        out.extend_from_slice(modern.capabilities);
        members.name(out, "io.modelcontextprotocol/clientInfo");
        out.extend_from_slice(CLIENT_INFO);
        if let Some(level) = modern.log_level {
            members.name(out, "io.modelcontextprotocol/logLevel");
            put_json(out, level.as_str());
        }
    }
    members.end(out);
}

impl Param<'_> {
    fn size(&self) -> usize {
        match self {
            Self::Text(text) => text.len() + 8,
            Self::Json(json) => json.len() + 8,
        }
    }
}

/// A JSON object that is there only if it has members.
struct Members {
    before: &'static [u8],
    begun: bool,
}

impl Members {
    fn new(before: &'static [u8]) -> Self {
        Self {
            before,
            begun: false,
        }
    }

    fn name(&mut self, out: &mut BytesMut, name: &'static str) {
        if std::mem::replace(&mut self.begun, true) {
            out.put_u8(b',');
        } else {
            out.extend_from_slice(self.before);
            out.put_u8(b'{');
        }
        // They are ours, and have nothing in them to be escaped.
        out.put_u8(b'"');
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
    }

    fn end(self, out: &mut BytesMut) {
        if self.begun {
            out.put_u8(b'}');
        }
    }
}

/// News for the server. Without params there is no `params`: some servers are strict.
pub fn notification(method: &str, params: &[u8]) -> Bytes {
    let mut out = start(method.len() + params.len() + 48);
    put_method(&mut out, method);
    if !params.is_empty() {
        out.extend_from_slice(b",\"params\":");
        put_line(&mut out, params);
    }
    end(out)
}

/// Tells the server that nobody waits for a request any more.
pub fn cancelled(id: u64, reason: &str) -> Bytes {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Params<'a> {
        request_id: u64,
        reason: &'a str,
    }
    let mut params = BytesMut::new();
    put_json(
        &mut params,
        &Params {
            request_id: id,
            reason,
        },
    );
    notification("notifications/cancelled", &params)
}

/// An answer to a request of the other side's. `id` and `result` are JSON text.
pub fn response(id: &[u8], result: &[u8]) -> Bytes {
    let mut out = start(id.len() + result.len() + 32);
    out.extend_from_slice(b",\"id\":");
    put_line(&mut out, id);
    out.extend_from_slice(b",\"result\":");
    put_line(&mut out, result);
    end(out)
}

/// A refusal of a request of the other side's. `id` is JSON text.
pub fn error_response(id: &[u8], error: &RpcError) -> Bytes {
    let mut out = start(id.len() + error.message.len() + error.data.len() + 96);
    out.extend_from_slice(b",\"id\":");
    put_line(&mut out, id);
    out.extend_from_slice(b",\"error\":{\"code\":");
    put_json(&mut out, &error.code);
    out.extend_from_slice(b",\"message\":");
    put_json(&mut out, &error.message);
    if !error.data.is_empty() {
        out.extend_from_slice(b",\"data\":");
        put_line(&mut out, &error.data);
    }
    out.put_u8(b'}');
    end(out)
}

/// A request to a client. `params` is JSON text, empty for none.
pub fn question(id: u64, method: &str, params: &[u8]) -> Bytes {
    let mut out = start(method.len() + params.len() + 64);
    out.extend_from_slice(b",\"id\":");
    put_number(&mut out, id);
    put_method(&mut out, method);
    if !params.is_empty() {
        out.extend_from_slice(b",\"params\":");
        put_line(&mut out, params);
    }
    end(out)
}

fn start(capacity: usize) -> BytesMut {
    let mut out = BytesMut::with_capacity(capacity);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\"");
    out
}

fn end(mut out: BytesMut) -> Bytes {
    out.extend_from_slice(b"}\n");
    out.freeze()
}

fn put_method(out: &mut BytesMut, method: &str) {
    out.extend_from_slice(b",\"method\":");
    put_json(out, method);
}

fn put_number(out: &mut BytesMut, number: u64) {
    put_json(out, &number);
}

fn put_json<T: Serialize + ?Sized>(out: &mut BytesMut, value: &T) {
    // Writing numbers, strings and flat structs to memory cannot fail.
    let _ = serde_json::to_writer(out.writer(), value);
}

/// JSON text in one line: an end of line between two tokens would cut the message in two. Within
/// a string of valid JSON there can be none.
fn put_line(out: &mut BytesMut, json: &[u8]) {
    if memchr::memchr2(b'\n', b'\r', json).is_none() {
        out.extend_from_slice(json);
    } else {
        out.extend(
            json.iter()
                .map(|&b| if b == b'\n' || b == b'\r' { b' ' } else { b }),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(frame: &Bytes) -> Value {
        let text = std::str::from_utf8(frame).unwrap();
        assert_eq!(text.matches('\n').count(), 1);
        assert!(text.ends_with('\n'));
        serde_json::from_str(text).unwrap()
    }

    fn call(tool: &str, arguments: &[u8], meta: &Meta<'_>) -> Bytes {
        let params = [
            ("name", Param::Text(tool)),
            ("arguments", Param::Json(arguments)),
        ];
        let ask = Ask {
            method: "tools/call",
            params: &params,
        };
        request(7, &ask, meta)
    }

    #[test]
    fn a_call_carries_its_arguments_as_they_are() {
        let progress = Meta {
            progress: true,
            modern: None,
        };
        let frame = call(
            "we\"ird",
            br#"{"n":123456789012345678901234567890}"#,
            &progress,
        );
        let text = std::str::from_utf8(&frame).unwrap();
        assert!(text.contains("123456789012345678901234567890"));
        let message = read(&frame);
        assert_eq!(message["id"], 7);
        assert_eq!(message["params"]["name"], "we\"ird");
        assert_eq!(message["params"]["_meta"], json!({"progressToken": 7}));
    }

    #[test]
    fn a_modern_server_is_told_everything_with_every_request() {
        let meta = Meta {
            progress: true,
            modern: Some(Modern {
                capabilities: b"{\"roots\":{}}",
                log_level: Some(LogLevel::Notice),
            }),
        };
        let ask = Ask {
            method: "server/discover",
            params: &[],
        };
        let expected = json!({
            "progressToken": 9,
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"roots": {}},
            "io.modelcontextprotocol/clientInfo":
                {"name": "nexus", "title": "Nexus", "version": env!("CARGO_PKG_VERSION")},
            "io.modelcontextprotocol/logLevel": "notice",
        });
        assert_eq!(
            read(&request(9, &ask, &meta))["params"],
            json!({"_meta": expected})
        );
    }

    #[test]
    fn pretty_printed_arguments_become_one_line() {
        let message = read(&call("t", b"{\n  \"a\": \"x\\ny\"\r\n}", &Meta::default()));
        assert_eq!(
            message["params"],
            json!({"name": "t", "arguments": {"a": "x\ny"}})
        );
    }

    #[test]
    fn what_has_no_params_says_nothing_of_them() {
        assert_eq!(
            read(&notification("notifications/initialized", b"")),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
        );
        let ping = Ask {
            method: "ping",
            params: &[],
        };
        assert_eq!(
            read(&request(1, &ping, &Meta::default())),
            json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        );
    }

    #[test]
    fn answers_carry_the_servers_own_id() {
        assert_eq!(read(&response(b"\"x\"", b"{}"))["id"], "x");
        let error = RpcError {
            code: -32601,
            message: "no \"such\" method".into(),
            data: Bytes::from_static(b"{\"a\":\n1}"),
        };
        let refused = read(&error_response(b"3", &error));
        assert_eq!(refused["error"]["code"], -32601);
        assert_eq!(refused["error"]["message"], "no \"such\" method");
        assert_eq!(refused["error"]["data"], json!({"a": 1}));
        assert_eq!(
            read(&question(4, "roots/list", b"")),
            json!({"jsonrpc": "2.0", "id": 4, "method": "roots/list"})
        );
        assert_eq!(read(&cancelled(9, "deadline"))["params"]["requestId"], 9);
    }
}
