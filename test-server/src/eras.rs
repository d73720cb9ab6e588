//! Which protocol revision a request is in, and what that demands of it.

use crate::message::Params;
use crate::options::Era;
use crate::reply::RpcError;

/// The stateless revision.
pub(crate) const MODERN: &str = "2026-07-28";
/// The revisions that begin with `initialize`, newest first.
pub(crate) const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// What a server with the fault bad-version speaks.
pub(crate) const BAD: &str = "1999-01-01";

/// How one request is to be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Legacy,
    Modern,
}

/// The version to answer an `initialize` with.
pub(crate) fn negotiated(requested: Option<&str>) -> &'static str {
    LEGACY
        .into_iter()
        .find(|known| Some(*known) == requested)
        .unwrap_or(LEGACY[0])
}

/// All versions a server of this era speaks, newest first, as a JSON array.
pub(crate) fn supported(era: Era) -> String {
    let legacy = LEGACY.iter().filter(|_| era != Era::Modern);
    let modern = [MODERN].into_iter().filter(|_| era != Era::Legacy);
    let all: Vec<&str> = modern.chain(legacy.copied()).collect();
    serde_json::Value::from(all).to_string()
}

/// The error for a version that is not spoken; `supported` is a JSON array.
pub(crate) fn unsupported(supported: &str, requested: &str) -> RpcError {
    let requested = crate::reply::quoted(requested);
    RpcError::new(-32022, "Unsupported protocol version").with_data(format!(
        r#"{{"supported":{supported},"requested":{requested}}}"#
    ))
}

/// Decides how to answer a request; `initialized` says whether its stream or session began with `initialize`.
pub(crate) fn dialect(
    era: Era,
    initialized: bool,
    method: &str,
    params: &Params<'_>,
) -> Result<Dialect, RpcError> {
    let meta = &params.meta;
    if method == "initialize" {
        return match era {
            Era::Modern => Err(unsupported(
                &supported(era),
                params.protocol_version.as_deref().unwrap_or_default(),
            )),
            _ => Ok(Dialect::Legacy),
        };
    }
    let only_modern = matches!(method, "server/discover" | "subscriptions/listen");
    let marked = meta.version.is_some() || meta.capabilities.is_some();
    if era == Era::Modern || era == Era::Dual && (only_modern || marked) {
        let version = required(meta.version.as_deref(), "protocolVersion")?;
        required(
            meta.capabilities.filter(|raw| raw.get().starts_with('{')),
            "clientCapabilities",
        )?;
        return match version {
            MODERN => Ok(Dialect::Modern),
            _ => Err(unsupported(&supported(era), version)),
        };
    }
    // A legacy server does not know the modern methods at any time, and says so rather than ask to be initialized.
    if initialized || only_modern || method == "ping" {
        return Ok(Dialect::Legacy);
    }
    Err(RpcError::invalid_params(format!(
        "{method} before initialize and without the _meta of {MODERN}"
    )))
}

fn required<T>(value: Option<T>, name: &str) -> Result<T, RpcError> {
    value.ok_or_else(|| {
        RpcError::invalid_params(format!("_meta lacks io.modelcontextprotocol/{name}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::RawValue;

    const META: &str = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}"#;

    fn decide(era: Era, initialized: bool, method: &str, params: &str) -> Result<Dialect, i32> {
        let raw = RawValue::from_string(params.to_owned()).unwrap();
        let params = crate::message::params(Some(&raw)).unwrap();
        dialect(era, initialized, method, &params).map_err(|error| error.code)
    }

    #[test]
    fn a_dual_server_answers_each_request_in_its_own_era() {
        assert_eq!(
            decide(Era::Dual, false, "tools/list", META),
            Ok(Dialect::Modern)
        );
        assert_eq!(
            decide(Era::Dual, true, "tools/list", META),
            Ok(Dialect::Modern)
        );
        assert_eq!(
            decide(Era::Dual, true, "tools/list", "{}"),
            Ok(Dialect::Legacy)
        );
        assert_eq!(
            decide(Era::Dual, false, "initialize", "{}"),
            Ok(Dialect::Legacy)
        );
    }

    #[test]
    fn a_request_that_belongs_to_no_era_is_refused() {
        assert_eq!(decide(Era::Dual, false, "tools/list", "{}"), Err(-32602));
        assert_eq!(decide(Era::Legacy, false, "tools/list", META), Err(-32602));
        assert_eq!(decide(Era::Modern, true, "tools/list", "{}"), Err(-32602));
        assert_eq!(decide(Era::Dual, false, "ping", "{}"), Ok(Dialect::Legacy));
    }

    #[test]
    fn modern_metadata_must_be_whole() {
        let half = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#;
        assert_eq!(decide(Era::Dual, true, "tools/list", half), Err(-32602));
        let other = r#"{"_meta":{"io.modelcontextprotocol/clientCapabilities":{}}}"#;
        assert_eq!(decide(Era::Dual, true, "tools/list", other), Err(-32602));
        assert_eq!(
            decide(Era::Dual, true, "server/discover", "{}"),
            Err(-32602)
        );
    }

    #[test]
    fn a_version_we_do_not_speak_is_named_with_those_we_do() {
        let future = META.replace("2026-07-28", "2030-01-01");
        assert_eq!(
            decide(Era::Modern, false, "tools/list", &future),
            Err(-32022)
        );
        assert_eq!(decide(Era::Modern, false, "initialize", "{}"), Err(-32022));
        let error = unsupported(&supported(Era::Modern), "2030-01-01");
        assert_eq!(
            error.data.unwrap(),
            r#"{"supported":["2026-07-28"],"requested":"2030-01-01"}"#
        );
    }

    #[test]
    fn a_legacy_server_treats_the_probe_as_an_unknown_method() {
        assert_eq!(
            decide(Era::Legacy, false, "server/discover", META),
            Ok(Dialect::Legacy)
        );
    }

    #[test]
    fn initialize_gets_the_version_it_asks_for_or_the_newest() {
        for known in LEGACY {
            assert_eq!(negotiated(Some(known)), known);
        }
        assert_eq!(negotiated(Some("2026-07-28")), "2025-11-25");
        assert_eq!(negotiated(None), "2025-11-25");
    }

    #[test]
    fn the_supported_versions_are_those_of_the_era() {
        assert_eq!(supported(Era::Modern), r#"["2026-07-28"]"#);
        assert!(!supported(Era::Legacy).contains(MODERN));
        assert!(supported(Era::Dual).starts_with(r#"["2026-07-28","2025-11-25""#));
    }
}
