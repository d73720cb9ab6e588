//! The envelope of a message: what kind it is and whom it is for. Pure.

use bytes::Bytes;
use serde::{
    Deserialize, Deserializer,
    de::{Error, SeqAccess, Visitor},
};
use serde_json::value::RawValue;
use std::{borrow::Cow, fmt};

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

impl RpcError {
    /// Without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: Bytes::new(),
        }
    }
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
    let messages: Few<'_> = serde_json::from_slice(line).ok()?;
    let slice = |raw: &RawValue| line.slice_ref(raw.get().as_bytes());
    Some(messages.0.into_iter().map(slice).collect())
}

/// What a batch may hold. A message takes two bytes of a line, and dozens of memory.
const MAX_BATCH: usize = 10_000;

/// The elements of an array that has not too many of them.
struct Few<'a>(Vec<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Few<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Elements;

        impl<'de> Visitor<'de> for Elements {
            type Value = Vec<&'de RawValue>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "at most {MAX_BATCH} messages")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Self::Value, A::Error> {
                let mut messages = Vec::new();
                while let Some(message) = all.next_element()? {
                    if messages.len() == MAX_BATCH {
                        return Err(Error::invalid_length(MAX_BATCH + 1, &self));
                    }
                    messages.push(message);
                }
                Ok(messages)
            }
        }

        from.deserialize_seq(Elements).map(Self)
    }
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
        // What is no id cannot be answered under it.
        (Some(_), Some(id)) if !is_id(id.get()) => Err(EnvelopeError::Shapeless),
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

/// Whether this JSON is a string or a number.
fn is_id(text: &str) -> bool {
    text.starts_with(|first: char| matches!(first, '"' | '-' | '0'..='9'))
}

/// The id of a response, if it is written exactly as we write ours.
pub(super) fn own_id(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let plain = text == "0" || !text.starts_with('0');
    (digits && plain).then(|| text.parse().ok()).flatten()
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
        let many = |n: usize| Bytes::from(format!("[{}1]", "1,".repeat(n - 1)));
        let most = batch(&many(MAX_BATCH)).unwrap();
        assert_eq!(most.len(), MAX_BATCH);
        assert_eq!(batch(&many(MAX_BATCH + 1)), None);
        assert_eq!(batch(&Bytes::from_static(b"[1")), None);
        let long = format!("[{}1]", "1,".repeat(MAX_BATCH));
        assert_eq!(batch(&long.into()), None);
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
            r#"{"id":{},"method":"ping"}"#,
            r#"{"id":[1],"method":"ping"}"#,
            r#"{"id":true,"method":"ping"}"#,
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

    proptest! {
        #[test]
        fn no_line_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&Bytes::from(bytes));
        }
    }
}
