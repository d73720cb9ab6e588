//! The lists, whole or in pages.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use serde_json::Value;

use crate::conformance;
use crate::definitions;
use crate::options::Options;
use crate::reply::{Outcome, RpcError};

/// The lists a client can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    Tools,
    Resources,
    Templates,
    Prompts,
}

impl List {
    /// The member the entries come in, and the first letter of its cursors.
    fn member(self) -> &'static str {
        match self {
            List::Tools => "tools",
            List::Resources => "resources",
            List::Templates => "resourceTemplates",
            List::Prompts => "prompts",
        }
    }
}

/// What this process offers.
pub(crate) struct Catalog {
    tools: Vec<Cow<'static, str>>,
    generated: u32,
    /// The names of those of the file.
    written: HashSet<String>,
    lists_file: Option<PathBuf>,
    env_tool: bool,
    state_tools: bool,
    page_size: usize,
    extra_tool: AtomicBool,
    interactive: bool,
    conformance: bool,
    /// How many entries the tool `grow` has added to each list.
    grown: [AtomicU32; 4],
}

impl Catalog {
    pub(crate) fn new(options: &Options) -> io::Result<Catalog> {
        let env = options
            .env_tool
            .then_some(Cow::Borrowed(definitions::ENV_TOOL));
        let state = definitions::STATE_TOOLS
            .into_iter()
            .filter(|_| options.state)
            .map(Cow::Borrowed);
        let hints = |tool| match options.read_only_hints {
            true => definitions::hinted(tool),
            false => Cow::Borrowed(tool),
        };
        let interactive = definitions::INTERACTIVE_TOOLS
            .into_iter()
            .filter(|_| options.interactive)
            .map(Cow::Borrowed);
        let generated =
            (1..=options.tools).map(|number| Cow::Owned(definitions::generated_tool(number)));
        let written = match &options.tools_file {
            Some(file) => written(&std::fs::read(file)?)?,
            None => Vec::new(),
        };
        let fixtures = conformance::tools()
            .filter(|_| options.conformance)
            .map(Cow::Owned);
        Ok(Catalog {
            written: written.iter().map(|(name, _)| name.clone()).collect(),
            tools: fixtures
                .chain(definitions::TOOLS.into_iter().map(hints))
                .chain(env)
                .chain(state)
                .chain(interactive)
                .chain(generated)
                .chain(
                    written
                        .into_iter()
                        .map(|(_, definition)| Cow::Owned(definition)),
                )
                .collect(),
            generated: options.tools,
            lists_file: options.lists_file.clone(),
            env_tool: options.env_tool,
            state_tools: options.state,
            page_size: options.page_size.map_or(usize::MAX, |size| size as usize),
            extra_tool: AtomicBool::new(false),
            interactive: options.interactive,
            conformance: options.conformance,
            grown: Default::default(),
        })
    }

    /// From now on there is one more tool.
    pub(crate) fn add_extra_tool(&self) {
        self.extra_tool.store(true, Ordering::Release);
    }

    pub(crate) fn has_extra_tool(&self) -> bool {
        self.extra_tool.load(Ordering::Acquire)
    }

    /// Adds an entry to a list, and returns its name.
    pub(crate) fn grow(&self, list: List) -> String {
        let number = self.grown[list as usize].fetch_add(1, Ordering::AcqRel) + 1;
        definitions::grown_name(list, number)
    }

    fn grown(&self, list: List) -> std::ops::RangeInclusive<u32> {
        1..=self.grown[list as usize].load(Ordering::Acquire)
    }

    /// Whether an entry with this name was added.
    pub(crate) fn has_grown(&self, list: List, name: &str) -> bool {
        self.grown(list)
            .any(|number| definitions::grown_name(list, number) == name)
    }

    pub(crate) fn is_interactive(&self) -> bool {
        self.interactive
    }

    /// Whether it has what the conformance suite expects.
    pub(crate) fn has_fixtures(&self) -> bool {
        self.conformance
    }

    /// Whether there is a tool that can have its lists change.
    pub(crate) fn can_grow(&self) -> bool {
        self.interactive || self.conformance
    }

    pub(crate) fn has_env_tool(&self) -> bool {
        self.env_tool
    }

    pub(crate) fn has_state_tools(&self) -> bool {
        self.state_tools
    }

    /// Whether a tool of the file has this name.
    pub(crate) fn has_written_tool(&self, name: &str) -> bool {
        self.written.contains(name) || self.has_in_file(List::Tools, name)
    }

    /// Whether the file of lists has an entry of this name.
    pub(crate) fn has_in_file(&self, list: List, name: &str) -> bool {
        let entries = self.in_file(list.member());
        let entries = entries.as_ref().and_then(Value::as_array);
        entries.is_some_and(|entries| entries.iter().any(|entry| entry["name"] == name))
    }

    /// What the file of lists has under this name, as it is now.
    pub(crate) fn in_file(&self, member: &str) -> Option<Value> {
        let text = std::fs::read(self.lists_file.as_ref()?).ok()?;
        let mut members: Value = serde_json::from_slice(&text).ok()?;
        Some(members.get_mut(member)?.take())
    }

    /// Whether a generated tool has this name.
    pub(crate) fn has_generated_tool(&self, name: &str) -> bool {
        let number = name
            .strip_prefix("tool_")
            .and_then(|digits| digits.parse().ok());
        number.is_some_and(|number| {
            (1..=self.generated).contains(&number) && definitions::generated_name(number) == name
        })
    }

    /// The page of a list that begins at the cursor.
    pub(crate) fn list(&self, list: List, cursor: Option<&str>) -> Result<Outcome, RpcError> {
        let extra = self.has_extra_tool().then_some(definitions::EXTRA_TOOL);
        let grown: Vec<String> = self
            .grown(list)
            .map(|number| definitions::grown_entry(list, number))
            .collect();
        let grown = grown.iter().map(String::as_str);
        if let Some(Value::Array(entries)) = self.in_file(list.member()) {
            let entries: Vec<String> = entries.iter().map(Value::to_string).collect();
            let entries = entries.iter().map(String::as_str);
            // What can have the lists change has to be there to be called.
            let grow = match list {
                List::Tools if self.interactive => &definitions::INTERACTIVE_TOOLS[..],
                _ => &[],
            };
            let grow = grow.iter().copied();
            return self.page(list, entries.chain(grow).chain(grown), cursor);
        }
        let fixtures = |all: &'static [&'static str]| {
            let count = if self.conformance { all.len() } else { 0 };
            all.iter().copied().take(count)
        };
        match list {
            List::Tools => {
                let tools = self.tools.iter().map(AsRef::as_ref);
                self.page(list, tools.chain(extra).chain(grown), cursor)
            }
            List::Resources => self.page(
                list,
                definitions::RESOURCES
                    .into_iter()
                    .chain(fixtures(&conformance::RESOURCES))
                    .chain(grown),
                cursor,
            ),
            List::Templates => self.page(
                list,
                definitions::RESOURCE_TEMPLATES
                    .into_iter()
                    .chain(fixtures(&conformance::RESOURCE_TEMPLATES)),
                cursor,
            ),
            List::Prompts => self.page(
                list,
                definitions::PROMPTS
                    .into_iter()
                    .chain(fixtures(&conformance::PROMPTS))
                    .chain(grown),
                cursor,
            ),
        }
    }

    /// The page of tools that leads to itself, for the fault cursor-loop.
    pub(crate) fn looping_page(&self) -> Outcome {
        let entries = self.tools.iter().take(self.page_size).map(AsRef::as_ref);
        Outcome::cacheable(rendered(
            List::Tools,
            entries,
            Some(cursor_at(List::Tools, 1)),
        ))
    }

    fn page<'a>(
        &self,
        list: List,
        entries: impl Iterator<Item = &'a str> + Clone,
        cursor: Option<&str>,
    ) -> Result<Outcome, RpcError> {
        let total = entries.clone().count();
        let start = match cursor {
            None => 0,
            Some(cursor) => offset_of(list, cursor)
                .filter(|offset| *offset < total)
                .ok_or_else(|| RpcError::invalid_params(format!("unknown cursor {cursor}")))?,
        };
        let end = start.saturating_add(self.page_size).min(total);
        let next = (end < total).then(|| cursor_at(list, end));
        Ok(Outcome::cacheable(rendered(
            list,
            entries.skip(start).take(end - start),
            next,
        )))
    }
}

fn rendered<'a>(
    list: List,
    entries: impl Iterator<Item = &'a str>,
    next: Option<String>,
) -> String {
    let mut text = format!(r#""{}":["#, list.member());
    for (index, entry) in entries.enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(entry);
    }
    text.push(']');
    if let Some(next) = next {
        text.push_str(&format!(r#","nextCursor":"{next}""#));
    }
    text
}

/// Scrambled, so that nobody is tempted to count cursors up.
const SCRAMBLE: usize = 0x5eed_cafe;

fn cursor_at(list: List, offset: usize) -> String {
    format!("{}-{:x}", list.member(), offset ^ SCRAMBLE)
}

fn offset_of(list: List, cursor: &str) -> Option<usize> {
    let digits = cursor.strip_prefix(list.member())?.strip_prefix('-')?;
    usize::from_str_radix(digits, 16)
        .ok()
        .map(|scrambled| scrambled ^ SCRAMBLE)
}

/// The tools of a file: names and definitions.
fn written(file: &[u8]) -> io::Result<Vec<(String, String)>> {
    let tools: Vec<serde_json::Value> = serde_json::from_slice(file)?;
    let tool = |definition: serde_json::Value| {
        let name = definition["name"].as_str().map(str::to_owned);
        let nameless = || io::Error::new(io::ErrorKind::InvalidData, "a tool without a name");
        Ok((name.ok_or_else(nameless)?, definition.to_string()))
    };
    tools.into_iter().map(tool).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalog(tools: u32, page_size: Option<u32>) -> Catalog {
        Catalog::new(&Options {
            tools,
            page_size,
            ..Options::default()
        })
        .unwrap()
    }

    #[test]
    fn tools_come_from_a_file_too() {
        let tools = written(br#"[{"name":"a","x":1},{"name":"b"}]"#).unwrap();
        let first = ("a".to_owned(), r#"{"name":"a","x":1}"#.to_owned());
        assert_eq!((tools.len(), &tools[0]), (2, &first));
        assert!(written(b"[{}]").is_err());
        assert!(written(b"{").is_err());
    }

    fn fetch(catalog: &Catalog, list: List, cursor: Option<&str>) -> Value {
        let outcome = catalog.list(list, cursor).unwrap();
        serde_json::from_str(&format!(
            "{{{}}}",
            String::from_utf8(outcome.members).unwrap()
        ))
        .unwrap()
    }

    fn walk(catalog: &Catalog, list: List) -> (usize, Vec<String>) {
        let (mut pages, mut names, mut cursor) = (0, Vec::new(), None::<String>);
        loop {
            let page = fetch(catalog, list, cursor.as_deref());
            pages += 1;
            names.extend(
                page[list.member()]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|entry| entry["name"].to_string()),
            );
            match page["nextCursor"].as_str() {
                Some(next) => cursor = Some(next.to_owned()),
                None => return (pages, names),
            }
        }
    }

    #[test]
    fn pages_together_are_the_whole_list_in_its_order() {
        let (_, whole) = walk(&catalog(21, None), List::Tools);
        assert_eq!(whole.len(), 25);
        for (size, pages) in [(1, 25), (7, 4), (24, 2), (25, 1), (26, 1)] {
            assert_eq!(
                walk(&catalog(21, Some(size)), List::Tools),
                (pages, whole.clone()),
                "size {size}"
            );
        }
    }

    #[test]
    fn every_list_is_paged() {
        let catalog = catalog(0, Some(2));
        for (list, pages) in [
            (List::Tools, 2),
            (List::Resources, 2),
            (List::Templates, 1),
            (List::Prompts, 2),
        ] {
            assert_eq!(walk(&catalog, list).0, pages, "{list:?}");
        }
    }

    #[test]
    fn a_cursor_that_was_not_given_out_is_refused() {
        let catalog = catalog(0, Some(2));
        let of_prompts = fetch(&catalog, List::Prompts, None)["nextCursor"]
            .as_str()
            .unwrap()
            .to_owned();
        for cursor in ["", "2", "tools-", "tools-0", &of_prompts] {
            assert_eq!(
                catalog.list(List::Tools, Some(cursor)).unwrap_err().code,
                -32602,
                "{cursor}"
            );
        }
    }

    #[test]
    fn only_the_generated_names_exist() {
        let catalog = catalog(12, None);
        assert!(catalog.has_generated_tool("tool_0001") && catalog.has_generated_tool("tool_0012"));
        for name in [
            "tool_0000",
            "tool_0013",
            "tool_1",
            "tool_00001",
            "tool_",
            "echo",
        ] {
            assert!(!catalog.has_generated_tool(name), "{name}");
        }
    }

    #[test]
    fn what_has_grown_is_listed_last() {
        let catalog = catalog(0, Some(2));
        for list in [List::Tools, List::Prompts] {
            let before = walk(&catalog, list).1.len();
            let names = [catalog.grow(list), catalog.grow(list)];
            let after = walk(&catalog, list).1;
            assert_eq!(
                after[before..],
                names.clone().map(|name| format!("{name:?}"))
            );
            assert!(catalog.has_grown(list, &names[1]));
        }
        assert!(!catalog.has_grown(List::Tools, "grown_tool_0003"));
    }

    #[test]
    fn the_extra_tool_is_listed_once_it_is_added() {
        let catalog = catalog(0, None);
        assert_eq!(walk(&catalog, List::Tools).1.len(), 4);
        catalog.add_extra_tool();
        assert_eq!(
            walk(&catalog, List::Tools).1.last().unwrap(),
            r#""extra_tool""#
        );
    }
}
