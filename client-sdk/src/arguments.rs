//! What a tool is called with.

use crate::Error;
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value};

/// The arguments of a call: a JSON object, or nothing.
///
/// ```
/// use nexus_client::Arguments;
/// use serde_json::json;
///
/// // From a value, from anything that serialises, or from text that must not be touched.
/// let value: Arguments = json!({"a": 2, "b": 3}).into();
/// let typed = Arguments::new(&std::collections::BTreeMap::from([("a", 2), ("b", 3)]))?;
/// let raw = Arguments::from_raw(r#"{"a":2,"b":3}"#);
/// assert_eq!(value, typed);
/// assert_eq!(typed, raw);
/// # Ok::<(), nexus_client::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arguments(Bytes);

impl Arguments {
    /// Serialises a value of yours.
    ///
    /// # Errors
    /// [`Error::InvalidArguments`] when it cannot be written as JSON.
    pub fn new(value: &impl Serialize) -> Result<Self, Error> {
        serde_json::to_vec(value)
            .map(|json| Self(json.into()))
            .map_err(Error::InvalidArguments)
    }

    /// No arguments.
    pub fn none() -> Self {
        Self::default()
    }

    /// JSON text, which reaches the server as it is: spaces, order and digits stay.
    pub fn from_raw(json: impl Into<Bytes>) -> Self {
        Self(json.into())
    }

    pub(crate) fn into_bytes(self) -> Bytes {
        self.0
    }
}

impl From<Value> for Arguments {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::none(),
            value => Self(value.to_string().into()),
        }
    }
}

impl From<Map<String, Value>> for Arguments {
    fn from(map: Map<String, Value>) -> Self {
        Value::Object(map).into()
    }
}

impl From<()> for Arguments {
    fn from((): ()) -> Self {
        Self::none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn raw_text_is_not_touched() {
        let text = r#"{ "a" : 1.10, "a": 123456789012345678901234567890 }"#;
        assert_eq!(Arguments::from_raw(text).into_bytes(), text);
    }

    #[test]
    fn null_and_nothing_are_no_arguments() {
        assert_eq!(Arguments::from(json!(null)), Arguments::none());
        assert_eq!(Arguments::from(()), Arguments::none());
    }

    #[test]
    fn what_cannot_be_json_is_an_error() {
        let bad = std::collections::HashMap::from([((1, 2), 3)]);
        assert!(matches!(
            Arguments::new(&bad),
            Err(Error::InvalidArguments(_))
        ));
    }
}
