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

/// The revisions that a server speaks.
pub(crate) struct Spoken {
    pub(crate) era: Era,
    /// Newest first.
    legacy: Vec<&'static str>,
}

impl Spoken {
    /// Of the legacy revisions only these, unless there are none.
    pub(crate) fn new(era: Era, only: &[String]) -> Spoken {
        let wanted = |known: &&str| only.is_empty() || only.iter().any(|one| one == known);
        Spoken {
            era,
            legacy: LEGACY.into_iter().filter(wanted).collect(),
        }
    }

    /// The version to answer an `initialize` with: the requested one if it is spoken, else the newest.
    pub(crate) fn negotiated(&self, requested: Option<&str>) -> &'static str {
        let asked = self.legacy.iter().find(|known| Some(**known) == requested);
        asked.or(self.legacy.first()).copied().unwrap_or(LEGACY[0])
    }

    /// Whether a legacy session can be in this version.
    #[cfg(feature = "http")]
    pub(crate) fn has_legacy(&self, version: &str) -> bool {
        self.legacy.contains(&version)
    }

    /// All versions, newest first, as a JSON array.
    pub(crate) fn supported(&self) -> String {
        let legacy = self.legacy.iter().filter(|_| self.era != Era::Modern);
        let modern = [MODERN].into_iter().filter(|_| self.era != Era::Legacy);
        let all: Vec<&str> = modern.chain(legacy.copied()).collect();
        serde_json::Value::from(all).to_string()
    }

    /// Decides how to answer a request; `initialized` says whether its stream or session began with `initialize`.
    pub(crate) fn dialect(
        &self,
        initialized: bool,
        method: &str,
        params: &Params<'_>,
    ) -> Result<Dialect, RpcError> {
        let (era, meta) = (self.era, &params.meta);
        // The modern revision has no such method: who asks for it in that revision is told so.
        let in_modern = era != Era::Legacy && meta.version.as_deref() == Some(MODERN);
        if method == "initialize" && !in_modern {
            return match era {
                Era::Modern => Err(unsupported(
                    &self.supported(),
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
                _ => Err(unsupported(&self.supported(), version)),
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
}

/// The error for a version that is not spoken; `supported` is a JSON array.
pub(crate) fn unsupported(supported: &str, requested: &str) -> RpcError {
    let requested = crate::reply::quoted(requested);
    RpcError::new(-32022, "Unsupported protocol version").with_data(format!(
        r#"{{"supported":{supported},"requested":{requested}}}"#
    ))
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
        let spoken = Spoken::new(era, &[]);
        let decided = spoken.dialect(initialized, method, &params);
        decided.map_err(|error| error.code)
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
    fn the_modern_era_has_no_initialize() {
        for era in [Era::Dual, Era::Modern] {
            assert_eq!(decide(era, false, "initialize", META), Ok(Dialect::Modern));
        }
        assert_eq!(
            decide(Era::Legacy, false, "initialize", META),
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
        let error = unsupported(&Spoken::new(Era::Modern, &[]).supported(), "2030-01-01");
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
        let all = Spoken::new(Era::Dual, &[]);
        for known in LEGACY {
            assert_eq!(all.negotiated(Some(known)), known);
        }
        assert_eq!(all.negotiated(Some("2026-07-28")), "2025-11-25");
        assert_eq!(all.negotiated(None), "2025-11-25");
        let few = ["2024-11-05", "2025-06-18"].map(str::to_owned);
        let few = Spoken::new(Era::Dual, &few);
        assert_eq!(few.negotiated(Some("2024-11-05")), "2024-11-05");
        assert_eq!(few.negotiated(Some("2025-03-26")), "2025-06-18");
        assert_eq!(
            few.supported(),
            r#"["2026-07-28","2025-06-18","2024-11-05"]"#
        );
    }

    #[test]
    fn the_supported_versions_are_those_of_the_era() {
        let supported = |era| Spoken::new(era, &[]).supported();
        assert_eq!(supported(Era::Modern), r#"["2026-07-28"]"#);
        assert!(!supported(Era::Legacy).contains(MODERN));
        assert!(supported(Era::Dual).starts_with(r#"["2026-07-28","2025-11-25""#));
    }
}
