//! Reading of resources.

use crate::definitions::CONTENTS;
use crate::eras::Dialect;
use crate::reply::{Outcome, Reply, RpcError, quoted};

/// The contents of a resource.
pub(crate) fn read(uri: Option<&str>, dialect: Dialect) -> Reply {
    let (uri, media_type, text) = find(uri, dialect)?;
    let text = quoted(text);
    Ok(Outcome::cacheable(format!(
        r#""contents":[{{"uri":"{uri}","mimeType":"{media_type}","text":{text}}}]"#
    )))
}

/// Accepts a subscription, or its end, for a resource that exists.
pub(crate) fn subscribe(uri: Option<&str>) -> Reply {
    find(uri, Dialect::Legacy).map(|_| Outcome::complete(""))
}

/// Whether there is such a resource.
pub(crate) fn exists(uri: &str) -> bool {
    CONTENTS.iter().any(|(known, ..)| *known == uri)
}

fn find(
    uri: Option<&str>,
    dialect: Dialect,
) -> Result<(&'static str, &'static str, &'static str), RpcError> {
    let uri = uri.ok_or_else(|| RpcError::invalid_params("uri is required"))?;
    let code = match dialect {
        Dialect::Legacy => -32002,
        Dialect::Modern => -32602,
    };
    CONTENTS
        .into_iter()
        .find(|(known, ..)| *known == uri)
        .ok_or_else(|| {
            RpcError::new(code, format!("Resource not found: {uri}"))
                .with_data(format!(r#"{{"uri":{}}}"#, quoted(uri)))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_resource_has_the_code_of_its_era() {
        let code = |dialect| read(Some("file:///nope"), dialect).unwrap_err().code;
        assert_eq!(code(Dialect::Legacy), -32002);
        assert_eq!(code(Dialect::Modern), -32602);
        assert_eq!(read(None, Dialect::Legacy).unwrap_err().code, -32602);
    }

    #[test]
    fn the_template_reaches_a_table_that_is_not_listed() {
        let outcome = read(Some("file:///data/orders.csv"), Dialect::Legacy).unwrap();
        assert!(
            String::from_utf8(outcome.members)
                .unwrap()
                .contains("punched cards")
        );
    }
}
