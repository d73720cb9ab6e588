//! Messages to a server, put together from text that is JSON already. Pure.

use bytes::{BufMut as _, Bytes, BytesMut};
use serde::Serialize;

/// A request. `params` is JSON text.
pub fn request(id: u64, method: &str, params: &[u8]) -> Bytes {
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

/// A call of a tool. `arguments` is JSON text, carried as it is but for its ends of line.
pub fn tool_call(id: u64, tool: &str, arguments: &[u8], progress: bool) -> Bytes {
    let mut out = start(tool.len() + arguments.len() + 128);
    out.extend_from_slice(b",\"id\":");
    put_number(&mut out, id);
    out.extend_from_slice(b",\"method\":\"tools/call\",\"params\":{\"name\":");
    put_json(&mut out, tool);
    if !arguments.is_empty() {
        out.extend_from_slice(b",\"arguments\":");
        put_line(&mut out, arguments);
    }
    if progress {
        // The token is our own: two agents that use the same one are never mixed up.
        out.extend_from_slice(b",\"_meta\":{\"progressToken\":");
        put_number(&mut out, id);
        out.put_u8(b'}');
    }
    out.put_u8(b'}');
    end(out)
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

/// An answer to a request of the server's. `id` and `result` are JSON text.
pub fn response(id: &[u8], result: &[u8]) -> Bytes {
    let mut out = start(id.len() + result.len() + 32);
    out.extend_from_slice(b",\"id\":");
    put_line(&mut out, id);
    out.extend_from_slice(b",\"result\":");
    put_line(&mut out, result);
    end(out)
}

/// A refusal of a request of the server's. `id` is JSON text.
pub fn error_response(id: &[u8], code: i64, message: &str) -> Bytes {
    #[derive(Serialize)]
    struct Error<'a> {
        code: i64,
        message: &'a str,
    }
    let mut out = start(id.len() + message.len() + 64);
    out.extend_from_slice(b",\"id\":");
    put_line(&mut out, id);
    out.extend_from_slice(b",\"error\":");
    put_json(&mut out, &Error { code, message });
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

    #[test]
    fn a_call_carries_its_arguments_as_they_are() {
        let frame = tool_call(
            7,
            "we\"ird",
            br#"{"n":123456789012345678901234567890}"#,
            true,
        );
        assert!(
            std::str::from_utf8(&frame)
                .unwrap()
                .contains("123456789012345678901234567890")
        );
        let message = read(&frame);
        assert_eq!(message["id"], 7);
        assert_eq!(message["params"]["name"], "we\"ird");
        assert_eq!(message["params"]["_meta"]["progressToken"], 7);
    }

    #[test]
    fn pretty_printed_arguments_become_one_line() {
        let message = read(&tool_call(1, "t", b"{\n  \"a\": \"x\\ny\"\r\n}", false));
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
        assert_eq!(
            read(&request(1, "ping", b"")),
            json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        );
    }

    #[test]
    fn answers_carry_the_servers_own_id() {
        assert_eq!(read(&response(b"\"x\"", b"{}"))["id"], "x");
        let refused = read(&error_response(b"3", -32601, "no \"such\" method"));
        assert_eq!(refused["error"]["code"], -32601);
        assert_eq!(read(&cancelled(9, "deadline"))["params"]["requestId"], 9);
    }
}
