//! The lists that a server gives, each entry kept as it came. Pure.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{borrow::Cow, collections::HashSet, time::Duration};

/// What servers list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// What can be called.
    Tools,
    /// What can be read.
    Resources,
    /// What can be read once it is filled in.
    Templates,
    /// What a model can be told.
    Prompts,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Tools, Self::Resources, Self::Templates, Self::Prompts];

    /// The request that lists them.
    pub const fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
            Self::Prompts => "prompts/list",
        }
    }

    /// For people.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "resource templates",
            Self::Prompts => "prompts",
        }
    }

    /// The member of the result that holds them.
    const fn array(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }
}

/// An entry as its server defines it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// What tells it from the others: a name, a URI or a template.
    pub key: String,
    /// The definition: a JSON object, verbatim.
    pub json: Bytes,
}

/// All entries of one kind.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct List {
    /// In the server's own order.
    pub entries: Vec<Definition>,
    /// What was odd about the list.
    pub warnings: Vec<String>,
}

/// One page of a list.
#[derive(Debug, PartialEq)]
pub struct Page {
    /// What is on it.
    pub entries: Vec<Definition>,
    /// How many entries of it cannot be used.
    pub spoiled: usize,
    /// Where the next one is.
    pub next: Option<String>,
    /// How long it is good for, if the server says so.
    pub ttl: Option<Duration>,
}

/// Reads one page.
pub fn parse_page(kind: Kind, result: &Bytes) -> serde_json::Result<Page> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Body<'a> {
        #[serde(borrow, default)]
        tools: Option<Vec<&'a RawValue>>,
        #[serde(borrow, default)]
        resources: Option<Vec<&'a RawValue>>,
        #[serde(borrow, default)]
        resource_templates: Option<Vec<&'a RawValue>>,
        #[serde(borrow, default)]
        prompts: Option<Vec<&'a RawValue>>,
        #[serde(default)]
        next_cursor: Option<String>,
        #[serde(default)]
        ttl_ms: Option<f64>,
    }
    let body: Body<'_> = serde_json::from_slice(result)?;
    let listed = match kind {
        Kind::Tools => body.tools,
        Kind::Resources => body.resources,
        Kind::Templates => body.resource_templates,
        Kind::Prompts => body.prompts,
    };
    let missing = || serde::de::Error::missing_field(kind.array());
    let listed = listed.ok_or_else(missing)?;
    let count = listed.len();
    let entries: Vec<_> = listed
        .into_iter()
        .filter_map(|raw| definition(kind, raw))
        .collect();
    let ttl = |ms: f64| Duration::try_from_secs_f64(ms / 1000.0).ok();
    Ok(Page {
        spoiled: count - entries.len(),
        entries,
        next: body.next_cursor.filter(|cursor| !cursor.is_empty()),
        ttl: body.ttl_ms.and_then(ttl),
    })
}

/// One entry; `None` when it is none.
pub fn definition(kind: Kind, raw: &RawValue) -> Option<Definition> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Keys<'a> {
        #[serde(borrow, default)]
        name: Option<Cow<'a, str>>,
        #[serde(borrow, default)]
        uri: Option<Cow<'a, str>>,
        #[serde(borrow, default)]
        uri_template: Option<Cow<'a, str>>,
    }
    let keys: Keys<'_> = serde_json::from_str(raw.get()).ok()?;
    let key = match kind {
        Kind::Tools | Kind::Prompts => keys.name,
        Kind::Resources => keys.uri,
        Kind::Templates => keys.uri_template,
    };
    let key = key.filter(|key| !key.is_empty())?.into_owned();
    Some(Definition {
        key,
        // A copy of its own: a slice would keep the whole page in memory.
        json: Bytes::copy_from_slice(raw.get().as_bytes()),
    })
}

/// Puts the pages of a list together, and notices a server that goes round in circles.
#[derive(Debug)]
pub struct Pages {
    kind: Kind,
    list: List,
    keys: HashSet<String>,
    cursors: HashSet<String>,
    ttl: Option<Duration>,
}

impl Pages {
    /// No server has more pages than this.
    const MAX_PAGES: usize = 1000;

    /// None yet.
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            list: List::default(),
            keys: HashSet::new(),
            cursors: HashSet::new(),
            ttl: None,
        }
    }

    /// Adds a page. Returns the cursor of the next one, if it is to be asked for.
    pub fn add(&mut self, page: Page) -> Option<String> {
        let kind = self.kind.plural();
        for entry in page.entries {
            if self.keys.insert(entry.key.clone()) {
                self.list.entries.push(entry);
            } else {
                let key = entry.key;
                let warning = format!("{key:?} is twice among its {kind}; the first is used");
                self.list.warnings.push(warning);
            }
        }
        if page.spoiled > 0 {
            let n = page.spoiled;
            let warning = format!("entries among its {kind} that cannot be used: {n}");
            self.list.warnings.push(warning);
        }
        // The whole is good for as long as each of its parts is.
        self.ttl = match (self.ttl, page.ttl) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        let next = page.next?;
        if self.cursors.len() >= Self::MAX_PAGES || !self.cursors.insert(next.clone()) {
            let warning =
                format!("the list of its {kind} has no end: the same page is offered again");
            self.list.warnings.push(warning);
            return None;
        }
        Some(next)
    }

    /// The list, and how long it is good for, if the server says so.
    pub fn finish(self) -> (List, Option<Duration>) {
        (self.list, self.ttl)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page_of(kind: Kind, json: &str) -> Page {
        parse_page(kind, &Bytes::copy_from_slice(json.as_bytes())).unwrap()
    }

    fn page(json: &str) -> Page {
        page_of(Kind::Tools, json)
    }

    #[test]
    fn a_definition_is_kept_byte_for_byte() {
        let odd = r#"{ "name":"a","x-unknown":[1.50, 1e2],"inputSchema":{"type":"object"} }"#;
        let page = page(&format!(
            r#"{{"tools":[{odd}],"nextCursor":"2","ttlMs":1500}}"#
        ));
        assert_eq!(page.entries[0].key, "a");
        assert_eq!(page.entries[0].json, odd.as_bytes());
        assert_eq!(page.next.as_deref(), Some("2"));
        assert_eq!(page.ttl, Some(Duration::from_millis(1500)));
    }

    #[test]
    fn each_kind_has_its_own_key() {
        let key = |kind, json| page_of(kind, json).entries[0].key.clone();
        let resources = r#"{"resources":[{"name":"n","uri":"file:///a"}]}"#;
        assert_eq!(key(Kind::Resources, resources), "file:///a");
        let templates = r#"{"resourceTemplates":[{"name":"n","uriTemplate":"file:///{a}"}]}"#;
        assert_eq!(key(Kind::Templates, templates), "file:///{a}");
        assert_eq!(key(Kind::Prompts, r#"{"prompts":[{"name":"p"}]}"#), "p");
        assert!(parse_page(Kind::Prompts, &Bytes::from_static(b"{}")).is_err());
    }

    #[test]
    fn pages_are_put_together_in_order() {
        let mut pages = Pages::new(Kind::Tools);
        let next = pages.add(page(
            r#"{"tools":[{"name":"a"}],"nextCursor":"x","ttlMs":9}"#,
        ));
        assert_eq!(next.as_deref(), Some("x"));
        assert_eq!(
            pages.add(page(r#"{"tools":[{"name":"b"}],"ttlMs":5}"#)),
            None
        );
        let (list, ttl) = pages.finish();
        let keys: Vec<_> = list.entries.iter().map(|entry| &*entry.key).collect();
        assert_eq!(keys, ["a", "b"]);
        assert_eq!(list.warnings, [""; 0]);
        assert_eq!(ttl, Some(Duration::from_millis(5)));
    }

    #[test]
    fn a_list_that_goes_in_circles_ends() {
        let mut pages = Pages::new(Kind::Tools);
        let circle = || page(r#"{"tools":[{"name":"a"}],"nextCursor":"x"}"#);
        assert!(pages.add(circle()).is_some());
        assert_eq!(pages.add(circle()), None);
        let (list, _) = pages.finish();
        assert_eq!(list.entries.len(), 1);
        let says_so = list.warnings.iter().any(|w| w.contains("no end"));
        assert!(says_so, "{:?}", list.warnings);
    }

    #[test]
    fn what_cannot_be_used_is_left_out_with_a_warning() {
        let mut pages = Pages::new(Kind::Tools);
        pages.add(page(
            r#"{"tools":[{"title":"x"},{"name":5},{"name":"good"},7,{"name":""}]}"#,
        ));
        let (list, _) = pages.finish();
        assert_eq!((list.entries.len(), &*list.entries[0].key), (1, "good"));
        assert_eq!(
            list.warnings,
            ["entries among its tools that cannot be used: 4"]
        );
    }
}
