//! One tool, and the check of its arguments.

use super::{Catalog, Item, headers, names::Cache, schema};
use crate::mcp::lists::{Definition, Kind};
use bytes::Bytes;
use jsonschema::{PatternOptions, Validator};
use nexus_proto::reason::{Failure, Reason, Violation};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use std::sync::OnceLock;

/// How many faults of one call are told.
const MAX_VIOLATIONS: usize = 8;

/// Larger arguments are not checked: it would keep everybody else waiting.
const MAX_CHECKED: usize = 1024 * 1024;

/// One tool of one server.
#[derive(Debug)]
pub struct Tool {
    /// Its name towards agents.
    pub name: String,
    /// The name of its server.
    pub server: String,
    /// Its name on its server.
    pub tool: String,
    /// Its definition, verbatim.
    pub definition: Bytes,
    /// Its server says that calling it twice does no harm.
    pub repeatable: bool,
    /// Its server may want to have arguments in headers too.
    has_headers: bool,
    // Made at the first call: most tools of most servers are never called.
    validator: OnceLock<Option<Box<Validator>>>,
}

impl Item for Tool {
    const KIND: Kind = Kind::Tools;
    const NOUN: &'static str = "tool";
    const NOT_FOUND: Reason = Reason::ToolNotFound;
    const COMMAND: &'static str = "tools";

    fn new(name: String, server: String, definition: &Definition) -> Self {
        Self {
            name,
            server,
            tool: definition.key.clone(),
            definition: definition.json.clone(),
            repeatable: is_repeatable(&definition.json),
            has_headers: memchr::memmem::find(&definition.json, b"x-mcp-header").is_some(),
            validator: OnceLock::new(),
        }
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn server(&self) -> &str {
        &self.server
    }

    fn own_name(&self) -> &str {
        &self.tool
    }

    fn cache(catalog: &Catalog) -> &Cache<Self> {
        &catalog.tools
    }
}

impl Tool {
    /// What it is called and said to do, for people and for search.
    pub fn about(&self) -> About {
        serde_json::from_slice(&self.definition).unwrap_or_default()
    }

    /// The arguments that its server wants to have in headers too: the ends of their names, and values.
    pub fn headers(&self, arguments: &[u8]) -> Vec<(String, String)> {
        if !self.has_headers {
            return Vec::new();
        }
        let schema = self.input_schema().unwrap_or_default();
        headers::of(&schema, arguments)
    }

    fn input_schema(&self) -> Option<Value> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Definition {
            input_schema: Value,
        }
        let definition: Definition = serde_json::from_slice(&self.definition).ok()?;
        Some(definition.input_schema)
    }

    /// Refuses arguments that break the tool's input schema.
    ///
    /// What cannot be checked well is left to the server: schemas that cannot be used or have no
    /// bound, very large arguments, numbers that JSON has and we do not. A server is never kept from
    /// arguments that might be good.
    pub fn check(&self, arguments: &[u8]) -> Result<(), Failure> {
        let text: &[u8] = if arguments.is_empty() {
            b"{}"
        } else {
            arguments
        };
        let whole = |description: String| {
            let field = String::new();
            Err(self.refused(vec![Violation { field, description }]))
        };
        let validator = self.validator.get_or_init(|| self.compile());
        let is_checked = text.len() <= MAX_CHECKED && validator.is_some();
        let value = is_checked.then(|| serde_json::from_slice::<Value>(text).ok());
        let value = value.flatten();
        // What we cannot read may be good JSON all the same.
        if value.is_none()
            && let Err(error) = serde_json::from_slice::<&RawValue>(text)
        {
            return whole(format!("the arguments are not JSON: {error}"));
        }
        if text.trim_ascii_start().first() != Some(&b'{') {
            return whole("the arguments must be a JSON object".to_owned());
        }
        let (Some(validator), Some(value)) = (validator, value) else {
            return Ok(());
        };
        if validator.is_valid(&value) {
            return Ok(());
        }
        let violations = validator.iter_errors(&value).take(MAX_VIOLATIONS);
        let violations = violations.map(|error| Violation {
            field: error.instance_path().to_string(),
            description: error.to_string(),
        });
        Err(self.refused(violations.collect()))
    }

    fn compile(&self) -> Option<Box<Validator>> {
        let input_schema = self.input_schema()?;
        if !schema::is_bounded(&input_schema) {
            tracing::debug!(
                tool = self.name,
                "its input schema is too much to be checked"
            );
            return None;
        }
        jsonschema::options()
            // Patterns come from the server: they must not be able to stall the daemon.
            .with_pattern_options(PatternOptions::regex())
            .build(&input_schema)
            .inspect_err(|error| {
                tracing::debug!(tool = self.name, %error, "its input schema cannot be used");
            })
            .ok()
            .map(Box::new)
    }

    fn refused(&self, violations: Vec<Violation>) -> Failure {
        Failure::new(
            Reason::InvalidArguments,
            format!("the arguments do not fit {}", self.dotted()),
        )
        .with(|details| {
            details.server = Some(self.server.clone());
            details.tool = Some(self.tool.clone());
            details.violations = violations;
            details.hint = Some(format!(
                "`nexusctl tools {}` shows its arguments",
                self.dotted()
            ));
        })
    }
}

fn is_repeatable(definition: &[u8]) -> bool {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Annotations {
        read_only_hint: bool,
        idempotent_hint: bool,
    }
    #[derive(Deserialize)]
    struct Definition {
        #[serde(default)]
        annotations: Annotations,
    }
    serde_json::from_slice::<Definition>(definition).is_ok_and(|definition| {
        definition.annotations.read_only_hint || definition.annotations.idempotent_hint
    })
}

/// What a tool is called and said to do.
#[derive(Debug, Default, Deserialize)]
pub struct About {
    /// A name for people.
    #[serde(default)]
    pub title: Option<String>,
    /// What it does.
    #[serde(default)]
    pub description: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(definition: &str) -> Tool {
        Tool::new(
            "s__t".into(),
            "s".into(),
            &Definition {
                key: "t".into(),
                json: Bytes::copy_from_slice(definition.as_bytes()),
            },
        )
    }

    fn add() -> Tool {
        tool(
            r#"{"name":"add","inputSchema":{"type":"object","required":["a"],
               "properties":{"a":{"type":"number"},"b":{"type":"number"}},"additionalProperties":false}}"#,
        )
    }

    fn faults(tool: &Tool, arguments: &str) -> Vec<String> {
        match tool.check(arguments.as_bytes()) {
            Ok(()) => vec![],
            Err(failure) => {
                assert_eq!(failure.reason, Reason::InvalidArguments);
                let text = |v: Violation| format!("{}: {}", v.field, v.description);
                failure.details.violations.into_iter().map(text).collect()
            }
        }
    }

    #[test]
    fn what_a_server_says_of_repeating_is_read() {
        for (annotations, repeatable) in [
            (r#"{"readOnlyHint":true}"#, true),
            (r#"{"idempotentHint":true,"title":"x"}"#, true),
            (r#"{"readOnlyHint":false,"idempotentHint":false}"#, false),
            ("{}", false),
            (r#"{"readOnlyHint":"yes"}"#, false),
            ("null", false),
        ] {
            let tool = tool(&format!(r#"{{"name":"t","annotations":{annotations}}}"#));
            assert_eq!(tool.repeatable, repeatable, "{annotations}");
        }
        assert!(!add().repeatable);
    }

    #[test]
    fn good_arguments_pass() {
        assert_eq!(faults(&add(), r#"{"a":2,"b":3.5}"#), [""; 0]);
    }

    #[test]
    fn every_fault_is_named() {
        let found = faults(&add(), r#"{"a":"two","c":1}"#);
        assert!(found.iter().any(|f| f.starts_with("/a: ")), "{found:?}");
        assert!(found.iter().any(|f| f.contains("'c'")), "{found:?}");
        assert!(faults(&add(), "")[0].contains("\"a\""));
    }

    #[test]
    fn what_is_no_object_is_refused() {
        assert!(faults(&add(), "[1]")[0].contains("must be a JSON object"));
        assert!(faults(&add(), "{\"a\":")[0].contains("not JSON"));
        assert!(faults(&add(), "{} {}")[0].contains("not JSON"));
    }

    #[test]
    fn numbers_that_we_do_not_have_are_left_to_the_server() {
        assert_eq!(faults(&add(), r#"{"a":1e400}"#), [""; 0]);
    }

    #[test]
    fn a_schema_that_cannot_be_used_lets_everything_pass() {
        for schema in [
            r#"{"type":"no such type"}"#,
            r#"{"properties":{"a":{"$ref":"https://example.com/x"}}}"#,
            r#"{"properties":{"a":{"type":"string","pattern":"(?=x)y"}}}"#,
        ] {
            let tool = tool(&format!(r#"{{"name":"t","inputSchema":{schema}}}"#));
            assert_eq!(faults(&tool, r#"{"a":"x"}"#), [""; 0], "{schema}");
        }
        assert_eq!(faults(&tool(r#"{"name":"t"}"#), "{}"), [""; 0]);
    }
}
