//! The arrows between the modules point one way, and pure files stay pure.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// What stands on what: a module may use those below it, never those above.
const LAYERS: &[&[&str]] = &[
    &["lib", "main", "run", "args", "alive"],
    &["api", "face"],
    &["router"],
    &["catalog"],
    &["pool"],
    &["policy"],
    &["supervisor"],
    &["mcp"],
    &["transport", "process", "agent"],
];

/// Beside the layers, for anybody to use. They use nothing but each other.
const BESIDE: &[&str] = &["config", "nearest", "platform", "shutdown", "telemetry"];

/// A config becomes something to run or reach and to look after; the door needs what the API shares; an agent is a
/// process.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("agent", "process"),
    ("config", "process"),
    ("config", "supervisor"),
    ("config", "transport"),
    ("face", "api"),
];

/// Decisions without a clock, without dice, without I/O.
const PURE: &[&str] = &[
    "supervisor/machine.rs",
    "supervisor/restart.rs",
    "supervisor/health.rs",
    "supervisor/machine/terms.rs",
    "pool/timings.rs",
    "mcp/connection/error.rs",
    "mcp/envelope.rs",
    "mcp/salvage.rs",
    "mcp/outgoing.rs",
    "mcp/lists.rs",
    "mcp/offers.rs",
    "mcp/revision.rs",
    "mcp/rounds.rs",
    "agent/answers.rs",
    "agent/standing.rs",
    "transport/lines.rs",
    "transport/http/breaker.rs",
    "transport/http/events.rs",
    "transport/http/headers.rs",
    "transport/http/spec.rs",
    "face/sniff.rs",
    "catalog/headers.rs",
    "catalog/schema.rs",
    "catalog/search/document.rs",
    "catalog/search/index.rs",
    "catalog/search/rank.rs",
    "catalog/search/words.rs",
    "policy/hygiene.rs",
    "policy/hygiene/names.rs",
    "policy/hygiene/strings.rs",
    "policy/output.rs",
    "policy/pins/canonical.rs",
    "policy/pins/record.rs",
    "policy/audit/line.rs",
    "policy/audit/recover.rs",
    "policy/rate.rs",
    "policy/redact.rs",
    "policy/consent.rs",
    "policy/errors.rs",
    "policy/wording.rs",
    "nearest.rs",
];

fn sources() -> Vec<(PathBuf, String)> {
    fn walk(dir: &Path, found: &mut Vec<(PathBuf, String)>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                // Tests may use what they like.
                let code = text
                    .split("#[cfg(test)]\nmod tests {")
                    .next()
                    .unwrap()
                    .to_owned();
                found.push((path, code));
            }
        }
    }
    let mut found = Vec::new();
    walk(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut found,
    );
    found
}

fn module_of(path: &Path) -> String {
    let below = path
        .strip_prefix(Path::new(env!("CARGO_MANIFEST_DIR")).join("src"))
        .unwrap();
    let first = below
        .components()
        .next()
        .unwrap()
        .as_os_str()
        .to_str()
        .unwrap();
    first.trim_end_matches(".rs").to_owned()
}

/// The modules that a file uses: after `crate::`, one or several in braces.
fn used(code: &str) -> Vec<String> {
    let mut modules = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let mut depth = 0;
        let mut word = String::new();
        let mut fresh = true;
        for c in rest.chars() {
            match c {
                'a'..='z' | '_' | '0'..='9' if fresh => word.push(c),
                '{' => depth += 1,
                ',' if depth == 1 => fresh = true,
                '}' => depth -= 1,
                c if c.is_whitespace() => continue,
                _ => fresh = false,
            }
            if !fresh || c == ',' || depth == 0 {
                if !word.is_empty() && !fresh {
                    modules.push(std::mem::take(&mut word));
                }
                if depth <= 0 && (!fresh || c == '}') {
                    break;
                }
            }
        }
    }
    modules
}

#[test]
fn uses_are_found_in_every_form() {
    assert_eq!(used("use crate::pool::Pool;"), ["pool"]);
    assert_eq!(
        used("use crate::{\n  api::{self, X},\n  pool::Pool,\n};"),
        ["api", "pool"]
    );
    assert_eq!(used("crate::mcp::MAX_MESSAGE + 1"), ["mcp"]);
}

#[test]
fn the_arrows_point_one_way() {
    let mut rank = BTreeMap::new();
    for (height, layer) in LAYERS.iter().enumerate() {
        for module in *layer {
            rank.insert(*module, height);
        }
    }
    let mut seen = 0;
    for (path, code) in sources() {
        let from = module_of(&path);
        for to in used(&code) {
            let (Some(&to_rank), from_rank) = (rank.get(to.as_str()), rank.get(from.as_str()))
            else {
                continue;
            };
            seen += 1;
            let allowed = match from_rank {
                Some(0) => true,
                Some(&from_rank) => from == to || from_rank < to_rank,
                None => false,
            } || EXCEPTIONS.contains(&(from.as_str(), to.as_str()));
            assert!(
                allowed,
                "{}: {from} uses {to}, which is above it",
                path.display()
            );
        }
        let known = rank.contains_key(from.as_str()) || BESIDE.contains(&from.as_str());
        assert!(known, "{from} has no place in the order");
    }
    assert!(
        seen > 20,
        "only {seen} uses were found: the search is broken"
    );
}

#[test]
fn pure_files_are_pure() {
    let sources = sources();
    for name in PURE {
        let suffix = Path::new("src").join(name);
        let (path, code) = sources
            .iter()
            .find(|(path, _)| path.ends_with(&suffix))
            .unwrap_or_else(|| panic!("{name} is gone"));
        for word in [
            "tokio::",
            "std::fs",
            "std::process",
            "Instant",
            "SystemTime",
            "now()",
        ] {
            assert!(!code.contains(word), "{}: {word}", path.display());
        }
    }
}

/// Where the time of day is for people to read, or a seed. Decisions are made by a clock that cannot jump.
const CALENDARS: &[&str] = &[
    "run.rs",
    "agent/registry.rs",
    "api.rs",
    "api/convert.rs",
    "policy/audit.rs",
    "policy/approvals.rs",
    "process/windows/keeper.rs",
    "supervisor/actor.rs",
    "supervisor/log.rs",
    "supervisor/log/file.rs",
    "supervisor/status.rs",
];

#[test]
fn no_decision_looks_at_the_calendar() {
    for (path, code) in sources() {
        let is_listed = CALENDARS
            .iter()
            .any(|name| path.ends_with(Path::new("src").join(name)));
        assert_eq!(
            code.contains("SystemTime"),
            is_listed,
            "{}: a clock that is set must not change what is done",
            path.display()
        );
        // The other way round: what is compared or waited for is never a time of day.
        for word in [
            "SystemTime::now() <",
            "SystemTime::now() >",
            ".duration_since(SystemTime::now",
        ] {
            assert!(!code.contains(word), "{}: {word}", path.display());
        }
    }
}

/// The page of faults names only tests that there are.
#[test]
fn the_page_of_faults_is_true() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("../docs/faults.md")).unwrap();
    let mut rows = 0;
    let mut named = 0;
    for row in page.lines().filter(|line| line.starts_with("| ")) {
        let cell = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        let tests: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
        for test in &tests {
            let (file, name) = test.split_once("::").unwrap();
            let file = match file.strip_prefix("src/") {
                Some(_) => root.join(file),
                None => root.join("tests/it").join(file).with_extension("rs"),
            };
            let text = fs::read_to_string(&file).unwrap_or_else(|_| panic!("{}", file.display()));
            let found = text.contains(&format!("fn {name}("));
            assert!(found, "{test} is not there");
        }
        named += tests.len();
        rows += usize::from(!tests.is_empty());
    }
    assert!(rows >= 55 && named >= rows, "{rows} rows, {named} tests");
}
