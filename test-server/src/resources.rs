//! Reading of resources, and their changes.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Mutex;

use crate::catalog::{Catalog, List};
use crate::conformance;
use crate::definitions::CONTENTS;
use crate::eras::Dialect;
use crate::reply::{Outcome, Reply, RpcError, quoted};
use crate::server::locked;

/// How often each resource has changed.
#[derive(Default)]
pub(crate) struct Changes(Mutex<HashMap<String, u64>>);

impl Changes {
    /// Changes a resource.
    pub(crate) fn add(&self, uri: &str) {
        *locked(&self.0).entry(uri.to_owned()).or_default() += 1;
    }

    /// The line by which a text tells how often it has changed.
    fn line(&self, uri: &str) -> String {
        let times = locked(&self.0).get(uri).copied();
        times.map_or(String::new(), |times| format!("Touched {times} times.\n"))
    }
}

/// The contents of a resource.
pub(crate) fn read(
    uri: Option<&str>,
    dialect: Dialect,
    catalog: &Catalog,
    changes: &Changes,
) -> Reply {
    if let Some(uri) = uri
        && catalog.has_fixtures()
        && let Some((media_type, member)) = conformance::resource(uri)
    {
        let uri = quoted(uri);
        return Ok(Outcome::cacheable(format!(
            r#""contents":[{{"uri":{uri},"mimeType":"{media_type}",{member}}}]"#
        )));
    }
    let (uri, media_type, text) = find(uri, dialect, catalog)?;
    let text = quoted(&format!("{text}{}", changes.line(uri)));
    let uri = quoted(uri);
    Ok(Outcome::cacheable(format!(
        r#""contents":[{{"uri":{uri},"mimeType":"{media_type}","text":{text}}}]"#
    )))
}

/// The URI of a resource that exists, for a subscription or its end.
pub(crate) fn subscribable<'a>(
    uri: Option<&'a str>,
    catalog: &Catalog,
) -> Result<&'a str, RpcError> {
    match uri {
        Some(uri) if is_fixture(uri, catalog) => Ok(uri),
        _ => find(uri, Dialect::Legacy, catalog).map(|(uri, ..)| uri),
    }
}

/// Whether there is such a resource.
pub(crate) fn exists(uri: &str, catalog: &Catalog) -> bool {
    subscribable(Some(uri), catalog).is_ok()
}

fn is_fixture(uri: &str, catalog: &Catalog) -> bool {
    catalog.has_fixtures() && conformance::resource(uri).is_some()
}

/// URI, media type and text of a resource.
fn find<'a>(
    uri: Option<&'a str>,
    dialect: Dialect,
    catalog: &Catalog,
) -> Result<(&'a str, &'static str, Cow<'static, str>), RpcError> {
    let uri = uri.ok_or_else(|| RpcError::invalid_params("uri is required"))?;
    if catalog.has_grown(List::Resources, uri) {
        let text = format!("This is {uri}, which was not there at first.\n");
        return Ok((uri, "text/plain", text.into()));
    }
    let code = match dialect {
        Dialect::Legacy => -32002,
        Dialect::Modern => -32602,
    };
    CONTENTS
        .into_iter()
        .find(|(known, ..)| *known == uri)
        .map(|(_, media_type, text)| (uri, media_type, text.into()))
        .ok_or_else(|| {
            RpcError::new(code, format!("Resource not found: {uri}"))
                .with_data(format!(r#"{{"uri":{}}}"#, quoted(uri)))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    fn read(uri: Option<&str>, dialect: Dialect) -> Reply {
        let catalog = Catalog::new(&Options::default()).unwrap();
        super::read(uri, dialect, &catalog, &Changes::default())
    }

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
