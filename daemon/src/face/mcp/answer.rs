//! Answers as the client's era wants them. Pure.

use super::{
    params::{Dialect, INTERNAL, INVALID_PARAMS, METHOD_NOT_FOUND},
    splice,
};
use crate::mcp::envelope::RpcError;
use bytes::Bytes;
use memchr::memmem::Finder;
use nexus_proto::reason::{Failure, Reason};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Map, Value, json};
use std::{borrow::Cow, sync::LazyLock};

const RESOURCE_NOT_FOUND: i64 = -32002;

/// What legacy results do not have.
const MODERN_MEMBERS: [&str; 3] = ["resultType", "ttlMs", "cacheScope"];

static RESULT_TYPE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"resultType\""));

/// The result of a server, in the era of the client. Nothing else of it is touched.
pub(super) fn shape(result: Bytes, dialect: Dialect, cacheable: bool) -> Bytes {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Has<'a> {
        #[serde(borrow)]
        result_type: Option<Cow<'a, str>>,
        ttl_ms: Option<IgnoredAny>,
        cache_scope: Option<IgnoredAny>,
    }
    if !dialect.is_modern() {
        // Two of three servers are old ones, and have nothing of it.
        if RESULT_TYPE.find(&result).is_none() {
            return result;
        }
        return splice::without(&result, &MODERN_MEMBERS).map_or(result, Bytes::from);
    }
    let Ok(has) = serde_json::from_slice::<Has<'_>>(&result) else {
        return result;
    };
    let mut missing = Vec::new();
    if has.result_type.is_none() {
        missing.push(r#""resultType":"complete""#);
    }
    // Questions are never kept.
    let cacheable = cacheable && has.result_type.is_none_or(|kind| kind == "complete");
    if cacheable && has.ttl_ms.is_none() {
        missing.push(r#""ttlMs":0"#);
    }
    if cacheable && has.cache_scope.is_none() {
        missing.push(r#""cacheScope":"private""#);
    }
    if missing.is_empty() {
        return result;
    }
    splice::with_first(&result, &missing.join(",")).map_or(result, Bytes::from)
}

/// A list of ours: `members` is JSON text without braces.
pub(super) fn list(members: &[u8], dialect: Dialect) -> Bytes {
    let own: &[u8] = match dialect {
        Dialect::Legacy => b"{",
        // It may change at any time, and whoever wants to know is told.
        Dialect::Modern { .. } => {
            br#"{"resultType":"complete","ttlMs":1000,"cacheScope":"private","#
        }
    };
    [own, members, b"}"].concat().into()
}

/// Nothing, in the era of the client.
pub(super) fn nothing(dialect: Dialect) -> Bytes {
    Bytes::from_static(match dialect {
        Dialect::Legacy => b"{}",
        Dialect::Modern { .. } => br#"{"resultType":"complete"}"#,
    })
}

/// What a client is told of a failure.
pub(super) fn refusal(failure: &Failure, dialect: Dialect) -> RpcError {
    let details = &failure.details;
    if let Some(code) = details.rpc_code {
        let code = match (code, dialect.is_modern()) {
            (RESOURCE_NOT_FOUND, true) => INVALID_PARAMS,
            (code, _) => code,
        };
        return RpcError {
            code,
            message: failure.message.clone(),
            data: details.rpc_data.clone().unwrap_or_default().into(),
        };
    }
    let code = match failure.reason {
        Reason::ResourceNotFound if !dialect.is_modern() => RESOURCE_NOT_FOUND,
        Reason::ResourceNotFound
        | Reason::ToolNotFound
        | Reason::PromptNotFound
        | Reason::ServerNotFound
        | Reason::AmbiguousName
        | Reason::InvalidRequest
        | Reason::InvalidArguments
        | Reason::TooLarge => INVALID_PARAMS,
        Reason::NotSupported => METHOD_NOT_FOUND,
        _ => INTERNAL,
    };
    let mut data = Map::new();
    data.insert("reason".into(), json!(failure.reason.as_str()));
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            data.insert(name.to_owned(), value);
        }
    };
    put("server", details.server.clone().map(Value::from));
    put("exit", details.exit.clone().map(Value::from));
    put("maybeExecuted", details.maybe_executed.then(|| json!(true)));
    let after = details.retry_after.map(|after| json!(after.as_millis()));
    put("retryAfterMs", after);
    put("suggestion", details.suggestion.clone().map(Value::from));
    put("hint", details.hint.clone().map(Value::from));
    RpcError {
        code,
        message: sentence(failure),
        data: Value::Object(data).to_string().into(),
    }
}

/// Arguments that do not fit are the model's to mend: it sees results, and errors as a rule not.
pub(super) fn mend_arguments(failure: &Failure, dialect: Dialect) -> Bytes {
    let faults = failure
        .details
        .violations
        .iter()
        .map(|fault| match fault.field.as_str() {
            "" => fault.description.clone(),
            field => format!("{field}: {}", fault.description),
        });
    let faults: Vec<_> = std::iter::once(failure.message.clone())
        .chain(faults)
        .collect();
    failed(&faults.join("\n"), dialect)
}

/// The result of a tool that failed: what the model reads.
pub(super) fn failed(text: &str, dialect: Dialect) -> Bytes {
    let text = json!(text);
    let content = format!(r#""content":[{{"type":"text","text":{text}}}],"isError":true"#);
    shape(format!("{{{content}}}").into(), dialect, false)
}

/// The message, with what helps a model to go on.
pub(super) fn sentence(failure: &Failure) -> String {
    match &failure.details.suggestion {
        Some(near) => format!("{}; did you mean {near}?", failure.message),
        None => failure.message.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Answers;

    const MODERN: Dialect = Dialect::Modern {
        answers: Answers::NONE,
        log_level: None,
    };

    fn shaped(result: &str, dialect: Dialect, cacheable: bool) -> String {
        let shaped = shape(
            Bytes::copy_from_slice(result.as_bytes()),
            dialect,
            cacheable,
        );
        String::from_utf8(shaped.to_vec()).unwrap()
    }

    #[test]
    fn a_result_is_changed_only_where_the_eras_differ() {
        let old = r#"{ "content":[1e400], "x":"\ud800" }"#;
        assert_eq!(shaped(old, Dialect::Legacy, false), old);
        assert_eq!(
            shaped(old, MODERN, false),
            r#"{"resultType":"complete", "content":[1e400], "x":"\ud800" }"#
        );
        let new = r#"{"resultType":"complete","content":[{"resultType":"x"}],"ttlMs":5,"cacheScope":"public"}"#;
        assert_eq!(shaped(new, MODERN, true), new);
        assert_eq!(
            shaped(new, Dialect::Legacy, true),
            r#"{"content":[{"resultType":"x"}]}"#
        );
        let questions = r#"{"resultType":"input_required","inputRequests":{}}"#;
        assert_eq!(shaped(questions, MODERN, true), questions);
        assert_eq!(
            shaped("{}", MODERN, true),
            r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private"}"#
        );
    }

    #[test]
    fn a_servers_own_error_is_passed_on_in_the_code_of_the_era() {
        let failure = Failure::new(Reason::ResourceNotFound, "no").with(|details| {
            details.rpc_code = Some(RESOURCE_NOT_FOUND);
            details.rpc_data = Some("{\"uri\":\"x\"}".into());
        });
        assert_eq!(refusal(&failure, Dialect::Legacy).code, RESOURCE_NOT_FOUND);
        let modern = refusal(&failure, MODERN);
        assert_eq!(
            (modern.code, &modern.data[..]),
            (INVALID_PARAMS, &b"{\"uri\":\"x\"}"[..])
        );
    }

    #[test]
    fn a_failure_of_ours_says_what_a_program_can_decide_by() {
        let failure = Failure::new(Reason::ServerExited, "it ended").with(|details| {
            details.server = Some("s".into());
            details.maybe_executed = true;
        });
        let error = refusal(&failure, Dialect::Legacy);
        assert_eq!(error.code, INTERNAL);
        let data: Value = serde_json::from_slice(&error.data).unwrap();
        assert_eq!(
            data,
            json!({"reason": "SERVER_EXITED", "server": "s", "maybeExecuted": true})
        );
    }
}
