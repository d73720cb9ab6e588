//! The list of tools that a server gives, each definition kept as it came. Pure.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{borrow::Cow, collections::HashSet};

/// A tool as its server defines it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolDefinition {
    /// Its name on the server.
    pub name: String,
    /// The definition: a JSON object, verbatim.
    pub json: Bytes,
}

/// One page of a list.
#[derive(Debug, PartialEq)]
pub struct Page {
    /// What is on it.
    pub tools: Vec<ToolDefinition>,
    /// How many entries of it are no tools.
    pub spoiled: usize,
    /// Where the next one is.
    pub next: Option<String>,
}

/// Reads one page of `tools/list`.
pub fn parse_page(result: &Bytes) -> serde_json::Result<Page> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Body<'a> {
        #[serde(borrow)]
        tools: Vec<&'a RawValue>,
        #[serde(default)]
        next_cursor: Option<String>,
    }
    let body: Body<'_> = serde_json::from_slice(result)?;
    let listed = body.tools.len();
    let tools = body.tools.into_iter().filter_map(|raw| {
        Some(ToolDefinition {
            name: name_of(raw)?,
            // A copy of its own: a slice would keep the whole page in memory.
            json: Bytes::copy_from_slice(raw.get().as_bytes()),
        })
    });
    let tools: Vec<_> = tools.collect();
    Ok(Page {
        spoiled: listed - tools.len(),
        tools,
        next: body.next_cursor.filter(|cursor| !cursor.is_empty()),
    })
}

/// The name of a tool; `None` when it is no tool.
pub fn name_of(definition: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Named<'a> {
        #[serde(borrow)]
        name: Cow<'a, str>,
    }
    let named: Named<'_> = serde_json::from_str(definition.get()).ok()?;
    (!named.name.is_empty()).then(|| named.name.into_owned())
}

/// Puts the pages of a list together, and notices a server that goes round in circles.
#[derive(Debug, Default)]
pub struct Pages {
    tools: Vec<ToolDefinition>,
    names: HashSet<String>,
    cursors: HashSet<String>,
    warnings: Vec<String>,
}

impl Pages {
    /// No server has more pages than this.
    const MAX_PAGES: usize = 1000;

    /// Adds a page. Returns the cursor of the next one, if it is to be asked for.
    pub fn add(&mut self, page: Page) -> Option<String> {
        for tool in page.tools {
            if self.names.insert(tool.name.clone()) {
                self.tools.push(tool);
            } else {
                self.warnings.push(format!(
                    "the tool {:?} is listed twice; the first is used",
                    tool.name
                ));
            }
        }
        if page.spoiled > 0 {
            let n = page.spoiled;
            self.warnings
                .push(format!("entries in its list that are no tools: {n}"));
        }
        let next = page.next?;
        if self.cursors.len() >= Self::MAX_PAGES || !self.cursors.insert(next.clone()) {
            self.warnings
                .push("the list of tools has no end: the same page is offered again".into());
            return None;
        }
        Some(next)
    }

    /// The tools, and what was odd about the list.
    pub fn finish(self) -> (Vec<ToolDefinition>, Vec<String>) {
        (self.tools, self.warnings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(json: &str) -> Page {
        parse_page(&Bytes::copy_from_slice(json.as_bytes())).unwrap()
    }

    #[test]
    fn a_definition_is_kept_byte_for_byte() {
        let odd = r#"{ "name":"a","x-unknown":[1.50, 1e2],"inputSchema":{"type":"object"} }"#;
        let page = page(&format!(r#"{{"tools":[{odd}],"nextCursor":"2"}}"#));
        assert_eq!(page.tools[0].name, "a");
        assert_eq!(page.tools[0].json, odd.as_bytes());
        assert_eq!(page.next.as_deref(), Some("2"));
    }

    #[test]
    fn pages_are_put_together_in_order() {
        let mut pages = Pages::default();
        let next = pages.add(page(r#"{"tools":[{"name":"a"}],"nextCursor":"x"}"#));
        assert_eq!(next.as_deref(), Some("x"));
        assert_eq!(pages.add(page(r#"{"tools":[{"name":"b"}]}"#)), None);
        let (tools, warnings) = pages.finish();
        assert_eq!(
            tools.iter().map(|t| &*t.name).collect::<Vec<_>>(),
            ["a", "b"]
        );
        assert_eq!(warnings, [""; 0]);
    }

    #[test]
    fn a_list_that_goes_in_circles_ends() {
        let mut pages = Pages::default();
        let circle = || page(r#"{"tools":[{"name":"a"}],"nextCursor":"x"}"#);
        assert!(pages.add(circle()).is_some());
        assert_eq!(pages.add(circle()), None);
        let (tools, warnings) = pages.finish();
        assert_eq!(tools.len(), 1);
        assert!(
            warnings.iter().any(|w| w.contains("no end")),
            "{warnings:?}"
        );
    }

    #[test]
    fn what_is_no_tool_is_left_out_with_a_warning() {
        let mut pages = Pages::default();
        pages.add(page(
            r#"{"tools":[{"title":"x"},{"name":5},{"name":"good"},7,{"name":""}]}"#,
        ));
        let (tools, warnings) = pages.finish();
        assert_eq!((tools.len(), &*tools[0].name), (1, "good"));
        assert_eq!(warnings, ["entries in its list that are no tools: 4"]);
    }
}
