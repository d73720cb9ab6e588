//! JSON as it was written.

use crate::Error;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::{Value, value::RawValue};
use std::{collections::HashMap, fmt};

/// JSON text, byte for byte as whoever made it wrote it.
#[derive(Clone, PartialEq, Eq)]
pub struct RawJson(Bytes);

impl RawJson {
    /// Takes what the daemon sent; it has read it as JSON, so only the encoding is checked.
    pub(crate) fn from_wire(bytes: Bytes, what: &'static str) -> Result<Self, Error> {
        match std::str::from_utf8(&bytes) {
            Ok(_) => Ok(Self(bytes)),
            Err(_) => Err(Error::Protocol(format!("{what} is not UTF-8"))),
        }
    }

    /// A piece of JSON that was read.
    pub(crate) fn piece(raw: &RawValue) -> Self {
        Self(Bytes::copy_from_slice(raw.get().as_bytes()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        // It was checked when it came in.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// The text as bytes.
    pub fn as_bytes(&self) -> &Bytes {
        &self.0
    }

    /// Reads it as a type of yours.
    ///
    /// # Errors
    /// [`Error::InvalidJson`] when it does not have that shape.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.0).map_err(Error::InvalidJson)
    }

    /// Reads it as a [`Value`]. Numbers beyond the range of `f64` do not fit into one.
    ///
    /// # Errors
    /// [`Error::InvalidJson`] when it does not fit.
    pub fn to_value(&self) -> Result<Value, Error> {
        self.parse()
    }

    /// One field of an object. What stands in the other fields does not matter.
    pub(crate) fn field<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let fields: HashMap<String, &RawValue> = serde_json::from_slice(&self.0).ok()?;
        serde_json::from_str(fields.get(name)?.get()).ok()
    }
}

impl From<Value> for RawJson {
    fn from(value: Value) -> Self {
        Self(value.to_string().into())
    }
}

impl fmt::Display for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> RawJson {
        RawJson::from_wire(Bytes::copy_from_slice(text.as_bytes()), "x").unwrap()
    }

    #[test]
    fn the_text_stays_as_it_was_written() {
        let text = r#"{ "n": 123456789012345678901234567890.10, "n": 1 }"#;
        assert_eq!(raw(text).to_string(), text);
    }

    #[test]
    fn a_field_is_read_whatever_stands_beside_it() {
        let json = raw(r#"{"title": 5, "n": 1e400, "description": "d"}"#);
        assert_eq!(json.field::<String>("description").as_deref(), Some("d"));
        assert_eq!(json.field::<String>("title"), None);
        assert_eq!(json.field::<String>("absent"), None);
    }

    #[test]
    fn what_is_no_text_is_refused() {
        let error = RawJson::from_wire(Bytes::from_static(&[0xff]), "the result").unwrap_err();
        assert_eq!(
            error.to_string(),
            "the daemon's answer makes no sense: the result is not UTF-8"
        );
    }
}
