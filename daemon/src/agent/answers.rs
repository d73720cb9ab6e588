//! What an agent can be asked by a server. Pure.

use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};

/// What an agent can be asked by a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Answers {
    /// `sampling/createMessage`.
    pub sampling: bool,
    /// The same with tools.
    pub sampling_tools: bool,
    /// The same with `includeContext`.
    pub sampling_context: bool,
    /// `elicitation/create` with a form.
    pub elicitation_form: bool,
    /// The same with a page to go to.
    pub elicitation_url: bool,
    /// `roots/list`.
    pub roots: bool,
}

impl Answers {
    /// All that can be passed on.
    pub const ALL: Self = Self {
        sampling: true,
        sampling_tools: true,
        sampling_context: true,
        elicitation_form: true,
        elicitation_url: true,
        roots: true,
    };

    /// Nothing.
    pub const NONE: Self = Self {
        sampling: false,
        sampling_tools: false,
        sampling_context: false,
        elicitation_form: false,
        elicitation_url: false,
        roots: false,
    };

    /// All of it in one number.
    pub fn bits(self) -> u8 {
        let all = [
            self.sampling,
            self.sampling_tools,
            self.sampling_context,
            self.elicitation_form,
            self.elicitation_url,
            self.roots,
        ];
        let bit = |(n, is_set): (usize, bool)| u8::from(is_set) << n;
        all.into_iter().enumerate().map(bit).sum()
    }

    /// What that number says.
    pub fn of_bits(bits: u8) -> Self {
        let has = |n: u8| bits & (1 << n) != 0;
        Self {
            sampling: has(0),
            sampling_tools: has(1),
            sampling_context: has(2),
            elicitation_form: has(3),
            elicitation_url: has(4),
            roots: has(5),
        }
    }

    /// As a client declares it: a JSON object.
    pub fn declaration(self) -> String {
        Value::Object(self.declared()).to_string()
    }

    /// As a client declares it in a handshake. `tells`: it tells when its folders change.
    pub fn legacy_declaration(self, tells: bool) -> String {
        let mut all = self.declared();
        if tells && let Some(roots) = all.get_mut("roots") {
            roots["listChanged"] = json!(true);
        }
        Value::Object(all).to_string()
    }

    fn declared(self) -> Map<String, Value> {
        let mut all = Map::new();
        if self.sampling {
            let mut sampling = json!({});
            if self.sampling_tools {
                sampling["tools"] = json!({});
            }
            if self.sampling_context {
                sampling["context"] = json!({});
            }
            all.insert("sampling".into(), sampling);
        }
        if self.elicitation_form || self.elicitation_url {
            let mut elicitation = json!({});
            if self.elicitation_form {
                elicitation["form"] = json!({});
            }
            if self.elicitation_url {
                elicitation["url"] = json!({});
            }
            all.insert("elicitation".into(), elicitation);
        }
        if self.roots {
            all.insert("roots".into(), json!({}));
        }
        all
    }

    /// What a client declares: a JSON object.
    pub fn read(declaration: &[u8]) -> Self {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Declared {
            sampling: Option<Sampling>,
            elicitation: Option<Elicitation>,
            roots: Option<Value>,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Sampling {
            tools: Option<Value>,
            context: Option<Value>,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Elicitation {
            form: Option<Value>,
            url: Option<Value>,
        }
        let declared: Declared = serde_json::from_slice(declaration).unwrap_or_default();
        let sampling = declared.sampling.as_ref();
        let elicitation = declared.elicitation.as_ref();
        Self {
            sampling: sampling.is_some(),
            sampling_tools: sampling.is_some_and(|sampling| sampling.tools.is_some()),
            sampling_context: sampling.is_some_and(|sampling| sampling.context.is_some()),
            // Before there were pages, there was no need to say which.
            elicitation_form: elicitation.is_some_and(|e| e.form.is_some() || e.url.is_none()),
            elicitation_url: elicitation.is_some_and(|elicitation| elicitation.url.is_some()),
            roots: declared.roots.is_some(),
        }
    }

    /// Whether this question can be answered. `params` is JSON text.
    pub fn cover(self, method: &str, params: &[u8]) -> bool {
        #[derive(Deserialize)]
        struct Sampling<'a> {
            #[serde(borrow, default)]
            tools: Option<&'a RawValue>,
        }
        #[derive(Deserialize)]
        struct Elicitation {
            #[serde(default)]
            mode: Option<String>,
        }
        match method {
            "sampling/createMessage" => {
                let with_tools = serde_json::from_slice::<Sampling<'_>>(params)
                    .is_ok_and(|params| params.tools.is_some());
                self.sampling && (self.sampling_tools || !with_tools)
            }
            "elicitation/create" => match serde_json::from_slice::<Elicitation>(params) {
                Ok(Elicitation { mode: Some(mode) }) if mode == "url" => self.elicitation_url,
                _ => self.elicitation_form,
            },
            "roots/list" => self.roots,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_asked_is_declared_and_nothing_else() {
        assert_eq!(Answers::NONE.declaration(), "{}");
        let all: Value = serde_json::from_str(&Answers::ALL.declaration()).unwrap();
        let expected = json!({
            "sampling": {"tools": {}, "context": {}},
            "elicitation": {"form": {}, "url": {}},
            "roots": {},
        });
        assert_eq!(all, expected);
        let told = Answers::ALL.legacy_declaration(true);
        assert!(told.contains(r#""roots":{"listChanged":true}"#), "{told}");
        assert_eq!(Answers::NONE.legacy_declaration(true), "{}");
    }

    #[test]
    fn what_is_declared_is_read() {
        for answers in [Answers::ALL, Answers::NONE] {
            assert_eq!(Answers::read(answers.declaration().as_bytes()), answers);
        }
        let old = Answers::read(br#"{"elicitation":{},"roots":{"listChanged":true}}"#);
        assert!(old.elicitation_form && !old.elicitation_url && old.roots && !old.sampling);
        assert_eq!(Answers::read(b"[]"), Answers::NONE);
    }

    #[test]
    fn a_question_needs_the_right_capability() {
        let plain = Answers {
            sampling: true,
            elicitation_form: true,
            ..Answers::NONE
        };
        assert!(plain.cover("sampling/createMessage", b"{}"));
        assert!(!plain.cover("sampling/createMessage", br#"{"tools":[]}"#));
        assert!(plain.cover("elicitation/create", br#"{"message":"?"}"#));
        assert!(plain.cover("elicitation/create", br#"{"mode":"form"}"#));
        assert!(!plain.cover("elicitation/create", br#"{"mode":"url"}"#));
        assert!(!plain.cover("roots/list", b""));
        assert!(!Answers::ALL.cover("something/else", b"{}"));
    }
}
