//! How servers and tools are called.
//!
//! A server keeps the name that its config gave it ("Sequential Thinking"); its [`Slug`] is the
//! form that fits into the name of a tool. Agents see `slug__tool`, which every LLM API accepts:
//! at most 64 of `[A-Za-z0-9_-]`.

use std::{borrow::Borrow, collections::HashSet, fmt};

/// The longest name of a tool that all LLM APIs accept.
pub const MAX_TOOL_NAME: usize = 64;

/// The longest slug: it leaves a tool at least half of the name.
const MAX_SLUG: usize = 30;

/// What stands between slug and tool.
const SEPARATOR: &str = "__";

/// What an agent is told of a tool, in the order in which people read it. All else in a definition may change without
/// anybody being asked.
pub const TOLD_OF_TOOLS: [&str; 6] = [
    "name",
    "title",
    "description",
    "inputSchema",
    "outputSchema",
    "annotations",
];

/// Whether a program only passes on what another one wants: it is not who wants it.
pub fn passes_on(program: &str) -> bool {
    matches!(
        program,
        "nexusctl" | "sh" | "bash" | "dash" | "zsh" | "fish" | "env"
    )
}

/// A server's prefix in the names of tools: `[a-z0-9][a-z0-9_-]*`, without `__`, not ending in `_`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slug(String);

impl Slug {
    /// The slug of a server's name. Different names may have the same slug: see [`unique_slugs`].
    pub fn of(name: &str) -> Self {
        let mut slug = String::with_capacity(name.len().min(MAX_SLUG));
        for c in name.chars() {
            if slug.len() == MAX_SLUG {
                break;
            }
            match c {
                'a'..='z' | '0'..='9' => slug.push(c),
                'A'..='Z' => slug.push(c.to_ascii_lowercase()),
                // A run of anything else is one mark, and none at the start.
                _ if slug.is_empty() || slug.ends_with(['-', '_']) => {}
                '_' => slug.push('_'),
                _ => slug.push('-'),
            }
        }
        slug.truncate(slug.trim_end_matches(['-', '_']).len());
        if slug.is_empty() {
            // A name with no letter that fits still gets a slug of its own.
            slug = format!("server-{}", hash(name));
        }
        Self(slug)
    }

    /// The slug as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn numbered(&self, n: usize) -> Self {
        let suffix = format!("-{n}");
        let mut head = self.0.clone();
        head.truncate(MAX_SLUG - suffix.len());
        Self(head + &suffix)
    }
}

impl fmt::Display for Slug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for Slug {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// A slug for each name, no two the same, and none that is another's name: a name that is a slug
/// keeps it, and of the others the order decides who gets a number.
pub fn unique_slugs<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<Slug> {
    let names: Vec<&str> = names.into_iter().collect();
    let mut kept: HashSet<&str> = HashSet::new();
    let keeps: Vec<bool> = names
        .iter()
        .map(|&name| Slug::of(name).as_str() == name && kept.insert(name))
        .collect();
    let mut taken: HashSet<String> = kept.into_iter().map(str::to_owned).collect();
    names
        .iter()
        .zip(keeps)
        .map(|(name, keeps)| {
            let wanted = Slug::of(name);
            if keeps {
                return wanted;
            }
            let mut slug = wanted.clone();
            let mut n = 2;
            while !taken.insert(slug.0.clone()) {
                slug = wanted.numbered(n);
                n += 1;
            }
            slug
        })
        .collect()
}

/// The name of a tool towards agents: `slug__tool`, or a stable shortening of it.
pub fn tool_name(slug: &Slug, tool: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let plain = format!("{slug}{SEPARATOR}{tool}");
    if plain.len() <= MAX_TOOL_NAME && !tool.is_empty() && tool.chars().all(fits) {
        return plain;
    }
    let mut name: String = plain
        .chars()
        .map(|c| if fits(c) { c } else { '_' })
        .collect();
    let hash = hash(tool);
    name.truncate(MAX_TOOL_NAME - hash.len() - 1);
    name + "_" + &hash
}

/// Every way to read `text` as a server and its tool: `server__tool`, `server.tool` and
/// `mcp:server.tool`. Names of servers and of tools may hold dots, so there can be several.
pub fn readings(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let text = text.strip_prefix("mcp:").unwrap_or(text);
    let split = move |separator: &'static str| {
        text.match_indices(separator)
            .map(move |(at, _)| (&text[..at], &text[at + separator.len()..]))
    };
    split(SEPARATOR)
        .chain(split("."))
        .filter(|(server, tool)| !server.is_empty() && !tool.is_empty())
}

/// Eight characters that are the same for the same text, everywhere and for ever (FNV-1a).
fn hash(text: &str) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{:08x}", (hash >> 32) ^ (hash & 0xffff_ffff))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_that_people_write_become_slugs() {
        for (name, slug) in [
            ("demo", "demo"),
            ("GitHub", "github"),
            ("Sequential Thinking", "sequential-thinking"),
            ("my__server", "my_server"),
            ("@scope/server-time", "scope-server-time"),
            ("--x--", "x"),
        ] {
            assert_eq!(Slug::of(name).as_str(), slug, "{name}");
        }
    }

    #[test]
    fn a_name_without_letters_still_has_a_slug_of_its_own() {
        assert_ne!(Slug::of("数据"), Slug::of("服务"));
    }

    #[test]
    fn slugs_that_collide_are_numbered() {
        let slugs = unique_slugs(["TIME", "Time", "time", "time-2"]);
        let slugs: Vec<_> = slugs.iter().map(Slug::as_str).collect();
        assert_eq!(slugs, ["time-3", "time-4", "time", "time-2"]);
    }

    #[test]
    fn an_ordinary_tool_keeps_its_name() {
        assert_eq!(
            tool_name(&Slug::of("GitHub"), "search_code"),
            "github__search_code"
        );
    }

    #[test]
    fn odd_and_long_tools_are_shortened_and_told_apart() {
        let slug = Slug::of("s");
        assert_ne!(tool_name(&slug, "a.b"), tool_name(&slug, "a_b"));
        let (x, y) = ("x".repeat(100), "x".repeat(101));
        assert_ne!(tool_name(&slug, &x), tool_name(&slug, &y));
    }

    #[test]
    fn every_spelling_of_a_tool_is_read() {
        for text in ["demo__add", "demo.add", "mcp:demo.add"] {
            assert_eq!(
                readings(text).collect::<Vec<_>>(),
                [("demo", "add")],
                "{text}"
            );
        }
        assert_eq!(
            readings("a.b.c").collect::<Vec<_>>(),
            [("a", "b.c"), ("a.b", "c")]
        );
        assert_eq!(readings("add").count(), 0);
    }

    proptest! {
        #[test]
        fn any_name_gives_a_valid_slug(name in ".*") {
            let slug = Slug::of(&name);
            prop_assert!(!slug.as_str().is_empty() && slug.as_str().len() <= MAX_SLUG);
            prop_assert!(!slug.as_str().contains("__"));
            prop_assert!(slug.as_str().starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit()));
            prop_assert!(slug.as_str().chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_'));
        }

        #[test]
        fn any_tool_gives_a_valid_name(server in ".*", tool in ".*") {
            let name = tool_name(&Slug::of(&server), &tool);
            prop_assert!(name.len() <= MAX_TOOL_NAME);
            prop_assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_'));
            prop_assert!(name.contains("__"));
        }

        #[test]
        fn many_servers_of_one_name_have_different_slugs(name in ".{0,40}", n in 1usize..120) {
            let names = vec![name.as_str(); n];
            let mut slugs = unique_slugs(names);
            slugs.sort();
            slugs.dedup();
            prop_assert_eq!(slugs.len(), n);
        }
    }
}
