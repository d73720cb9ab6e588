//! What a server can do, as it declares it. Pure.

use super::revision::Revision;
use serde::Deserialize;
use serde_json::Value;

/// What a server has declared. Nothing else is asked of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offers {
    /// Tools.
    pub tools: bool,
    /// Resources and templates.
    pub resources: bool,
    /// It tells when a resource changes.
    pub subscribe: bool,
    /// Prompts.
    pub prompts: bool,
    /// Suggestions for arguments.
    pub completions: bool,
    /// Log messages.
    pub logging: bool,
    /// It tells when its tools change.
    pub tools_changed: bool,
    /// It tells when its resources change.
    pub resources_changed: bool,
    /// It tells when its prompts change.
    pub prompts_changed: bool,
}

impl Offers {
    /// Reads what a server declares: JSON text.
    pub fn read(capabilities: &[u8], revision: Revision) -> Self {
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Declared {
            tools: Option<Feature>,
            resources: Option<Feature>,
            prompts: Option<Feature>,
            completions: Option<Value>,
            logging: Option<Value>,
        }
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Feature {
            list_changed: Value,
            subscribe: Value,
        }
        // What cannot be read declares nothing.
        let declared: Declared = serde_json::from_slice(capabilities).unwrap_or_default();
        let says = |feature: &Option<Feature>, field: fn(&Feature) -> &Value| {
            feature
                .as_ref()
                .is_some_and(|feature| field(feature) == &Value::Bool(true))
        };
        let changed = |feature| says(feature, |feature| &feature.list_changed);
        let (resources, prompts) = (declared.resources.is_some(), declared.prompts.is_some());
        Self {
            tools: declared.tools.is_some(),
            resources,
            subscribe: says(&declared.resources, |feature| &feature.subscribe),
            prompts,
            // The first revision had completions, and no way to declare them.
            completions: declared.completions.is_some()
                || revision == Revision::V2024_11_05 && (resources || prompts),
            logging: declared.logging.is_some(),
            tools_changed: changed(&declared.tools),
            resources_changed: changed(&declared.resources),
            prompts_changed: changed(&declared.prompts),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_declared_is_offered() {
        let offers = Offers::read(
            br#"{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{}}"#,
            Revision::V2025_11_25,
        );
        assert!(offers.tools && offers.tools_changed && offers.subscribe && offers.logging);
        assert!(!offers.prompts && !offers.completions && !offers.resources_changed);
        assert_eq!(
            Offers::read(b"{}", Revision::V2025_11_25),
            Offers::default()
        );
    }

    #[test]
    fn the_first_revision_could_not_declare_completions() {
        let prompts = br#"{"prompts":{}}"#;
        assert!(Offers::read(prompts, Revision::V2024_11_05).completions);
        assert!(!Offers::read(prompts, Revision::V2025_03_26).completions);
    }

    #[test]
    fn odd_declarations_declare_what_can_be_read_of_them() {
        let nothing = Offers::read(b"7", Revision::V2025_11_25);
        assert_eq!(nothing, Offers::default());
        let odd = br#"{"tools":{"listChanged":"yes"},"resources":{"subscribe":1}}"#;
        let offers = Offers::read(odd, Revision::V2025_11_25);
        assert!(offers.tools && offers.resources && !offers.subscribe && !offers.tools_changed);
    }
}
