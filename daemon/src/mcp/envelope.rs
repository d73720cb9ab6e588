//! The envelope of a message: what kind it is and whom it is for. Pure.

use bytes::Bytes;
use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A message from a server.
#[derive(Debug, PartialEq)]
pub enum Incoming {
    /// An answer to a request of ours.
    Response {
        /// The id that we gave the request.
        id: u64,
        /// What came of it.
        outcome: Result<Bytes, RpcError>,
    },
    /// A question of the server's.
    Request {
        /// The server's id, as JSON text.
        id: Bytes,
        /// What it asks for.
        method: String,
        /// JSON text; empty if there is none.
        params: Bytes,
    },
    /// News that needs no answer.
    Notification {
        /// What it is about.
        method: String,
        /// JSON text; empty if there is none.
        params: Bytes,
    },
}

/// An error as a server tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcError {
    /// The JSON-RPC code.
    pub code: i64,
    /// A sentence.
    pub message: String,
    /// JSON text; empty if there is none.
    pub data: Bytes,
}

/// Why a line is no message.
#[derive(Debug, thiserror::Error)]
pub enum EnvelopeError {
    /// Not UTF-8.
    #[error("not UTF-8")]
    NotText(#[from] std::str::Utf8Error),
    /// Not JSON, or not of the form of JSON-RPC.
    #[error("not a JSON-RPC message")]
    Malformed(#[from] serde_json::Error),
    /// A response with an id that we never gave.
    #[error("a response with an id that is not ours")]
    ForeignId,
    /// Neither request, nor response, nor notification.
    #[error("neither request, nor response, nor notification")]
    Shapeless,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ErrorBody<'a> {
    code: i64,
    #[serde(default)]
    message: String,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}

/// The messages of a batch, if the line is one. Only one revision had them, and its servers live on.
pub fn batch(line: &Bytes) -> Option<Vec<Bytes>> {
    if line.trim_ascii_start().first() != Some(&b'[') {
        return None;
    }
    let messages: Vec<&RawValue> = serde_json::from_slice(line).ok()?;
    let slice = |raw: &RawValue| line.slice_ref(raw.get().as_bytes());
    Some(messages.into_iter().map(slice).collect())
}

/// Reads the envelope of a message.
pub fn parse(line: &Bytes) -> Result<Incoming, EnvelopeError> {
    // Serde would take the elements of an array for the members of an object.
    if line.trim_ascii_start().first() == Some(&b'[') {
        return Err(EnvelopeError::Shapeless);
    }
    // Checked once for the whole line: what it holds is text to everybody after us.
    let text = std::str::from_utf8(line)?;
    let envelope: Envelope<'_> = serde_json::from_str(text)?;
    let slice = |raw: Option<&RawValue>| {
        raw.map_or_else(Bytes::new, |raw| line.slice_ref(raw.get().as_bytes()))
    };
    match (envelope.method, envelope.id) {
        (Some(method), Some(id)) => Ok(Incoming::Request {
            id: slice(Some(id)),
            method: method.into_owned(),
            params: slice(envelope.params),
        }),
        (Some(method), None) => Ok(Incoming::Notification {
            method: method.into_owned(),
            params: slice(envelope.params),
        }),
        (None, Some(id)) => {
            let id = own_id(id.get()).ok_or(EnvelopeError::ForeignId)?;
            let outcome = match (envelope.result, envelope.error) {
                (_, Some(error)) => Err(rpc_error(line, error)?),
                (Some(result), None) => Ok(slice(Some(result))),
                (None, None) => return Err(EnvelopeError::Shapeless),
            };
            Ok(Incoming::Response { id, outcome })
        }
        (None, None) => Err(EnvelopeError::Shapeless),
    }
}

/// The error in a text that refuses something, whichever id it names.
pub fn error_in(text: &Bytes) -> Option<RpcError> {
    let envelope: Envelope<'_> = serde_json::from_slice(text).ok()?;
    rpc_error(text, envelope.error?).ok()
}

fn rpc_error(line: &Bytes, error: &RawValue) -> Result<RpcError, EnvelopeError> {
    let body: ErrorBody<'_> = serde_json::from_str(error.get())?;
    Ok(RpcError {
        code: body.code,
        message: body.message,
        data: body
            .data
            .map_or_else(Bytes::new, |data| line.slice_ref(data.get().as_bytes())),
    })
}

/// The id of a response, if it is written exactly as we write ours.
fn own_id(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let plain = text == "0" || !text.starts_with('0');
    (digits && plain).then(|| text.parse().ok()).flatten()
}

/// The id of the response that a line was meant to be, from the parts of it that are left.
///
/// Only what is plainly a response is believed: its payload is in sight, nothing of a request comes
/// before it, and the id stands before the payload or after its end.
pub fn salvage_id(head: &[u8], tail: &[u8]) -> Option<u64> {
    let payload = [&b"\"result\""[..], b"\"error\""]
        .iter()
        .filter_map(|key| memmem::find(head, key))
        .min()?;
    let before = &head[..payload];
    if [&b"\"method\""[..], b"\"params\""]
        .iter()
        .any(|key| memmem::find(before, key).is_some())
    {
        return None;
    }
    let id = |text: &[u8]| {
        let key = b"\"id\":";
        let rest = text[memmem::rfind(text, key)? + key.len()..].trim_ascii_start();
        let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        own_id(std::str::from_utf8(&rest[..digits]).ok()?)
    };
    id(before).or_else(|| {
        let message = tail.trim_ascii_end().strip_suffix(b"}")?;
        id(&message[memchr::memrchr(b'}', message)?..])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(text: &str) -> Result<Incoming, EnvelopeError> {
        parse(&Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn a_result_is_carried_byte_for_byte() {
        let odd = r#"{ "b":1e400, "a" : 123456789012345678901234567890,"a":2 }"#;
        let message = of(&format!(r#"{{"jsonrpc":"2.0","id":7,"result":{odd}}}"#)).unwrap();
        assert_eq!(
            message,
            Incoming::Response {
                id: 7,
                outcome: Ok(Bytes::copy_from_slice(odd.as_bytes()))
            }
        );
    }

    #[test]
    fn a_batch_is_its_messages() {
        let line = Bytes::from_static(br#" [{"id":1,"result":{"a": 1}}, {"method":"x"}]"#);
        let messages = batch(&line).unwrap();
        assert_eq!(
            messages,
            [&br#"{"id":1,"result":{"a": 1}}"#[..], br#"{"method":"x"}"#]
        );
        assert_eq!(batch(&Bytes::from_static(b"{}")), None);
        assert_eq!(batch(&Bytes::from_static(b"[1")), None);
        assert!(matches!(
            of("[1,\"x\",null]"),
            Err(EnvelopeError::Shapeless)
        ));
    }

    #[test]
    fn an_error_keeps_its_data() {
        let message = of(r#"{"id":1,"error":{"code":-32602,"message":"no","data":[1]}}"#).unwrap();
        let Incoming::Response {
            outcome: Err(error),
            ..
        } = message
        else {
            panic!("{message:?}");
        };
        assert_eq!(
            (error.code, &*error.message, &error.data[..]),
            (-32602, "no", &b"[1]"[..])
        );
    }

    #[test]
    fn only_an_id_that_we_wrote_is_ours() {
        for id in [
            "\"7\"",
            "7.0",
            "7e0",
            "-7",
            "07",
            "null",
            "true",
            "99999999999999999999999",
        ] {
            let message = of(&format!(r#"{{"id":{id},"result":{{}}}}"#));
            assert!(message.is_err(), "{id}: {message:?}");
        }
    }

    #[test]
    fn requests_and_notifications_are_told_apart() {
        let request = of(r#"{"id":"x","method":"roots/list"}"#).unwrap();
        assert_eq!(
            request,
            Incoming::Request {
                id: Bytes::from_static(b"\"x\""),
                method: "roots/list".into(),
                params: Bytes::new(),
            }
        );
        let news = of(r#"{"method":"notifications/progress","params":{"p":1}}"#).unwrap();
        assert_eq!(
            news,
            Incoming::Notification {
                method: "notifications/progress".into(),
                params: Bytes::from_static(br#"{"p":1}"#)
            }
        );
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for text in [
            "",
            "hello",
            "[]",
            r#"[{"id":1,"result":{}}]"#,
            "{}",
            r#"{"id":1}"#,
            "7",
        ] {
            assert!(of(text).is_err(), "{text}");
        }
        assert!(parse(&Bytes::from_static(b"{\"id\":1,\"result\":\"\xff\"}")).is_err());
    }

    #[test]
    fn a_deep_result_costs_no_stack() {
        let deep = "[".repeat(1_000_000) + &"]".repeat(1_000_000);
        let message = of(&format!(r#"{{"id":1,"result":{deep}}}"#)).unwrap();
        assert!(matches!(message, Incoming::Response { id: 1, .. }));
    }

    #[test]
    fn the_id_of_a_lost_line_is_found_at_either_end_but_not_in_the_payload() {
        assert_eq!(
            salvage_id(br#"{"jsonrpc":"2.0","id":42,"result":{"#, b"}}"),
            Some(42)
        );
        assert_eq!(
            salvage_id(br#"{"result":{"id":1,"#, br#""x":2},"id": 43}"#),
            Some(43)
        );
        assert_eq!(salvage_id(br#"{"result":{"id":1,"#, br#""id":2}}"#), None);
    }

    #[test]
    fn what_is_no_response_has_no_id_to_salvage() {
        for head in [
            &br#"{"level":"info","id":3,"msg":"hello"}"#[..],
            br#"{"jsonrpc":"2.0","id":5,"method":"sampling/createMessage","params":{"result":1"#,
            br#"{"method":"notifications/message","params":{"id":7,"result":"#,
        ] {
            assert_eq!(salvage_id(head, b"}}"), None);
        }
    }

    proptest! {
        #[test]
        fn no_line_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&Bytes::from(bytes.clone()));
            let _ = salvage_id(&bytes, &bytes);
        }
    }
}
