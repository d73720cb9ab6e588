//! Variables in a text, in all the ways in which people write them. Pure: what they stand for is asked for.

use crate::{keyring::Entry, mask::is_no_name};
use std::{fmt, path::Path};

/// Defaults may have variables in them, but not without end.
const MAX_DEPTH: usize = 8;

/// What variables stand for.
pub struct Surroundings<'a> {
    /// The environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The user's home.
    pub home: Option<&'a Path>,
    /// The folder of the project, for files that belong to one.
    pub workspace: Option<&'a Path>,
    /// What a reference refers to, or why it cannot be had. Neither may have a secret in its error.
    pub fetch: &'a dyn Fn(&Reference) -> Result<String, String>,
}

/// Where a secret is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// In a file.
    File(String),
    /// A program tells it.
    Command(Vec<String>),
    /// In the system's keyring.
    Keyring(Entry),
}

/// Why a text cannot be filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// The variable is not set.
    Unset(String),
    /// There is no home.
    NoHome,
    /// The file belongs to no project.
    NoWorkspace,
    /// VS Code would ask for it.
    Input(String),
    /// We do not know what it stands for.
    Unknown(String),
    /// A bracket is open.
    Unclosed,
    /// What it refers to cannot be had.
    Reference(Reference, String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unset(name) if is_no_name(name) => f.write_str("what stands in ${…} is no variable, but looks like a secret"),
            Self::Unset(name) => write!(f, "the variable {name} is not set"),
            Self::NoHome => f.write_str("`~` stands for your home, which is not known"),
            Self::NoWorkspace => f.write_str("${workspaceFolder} stands for the folder of a project, and this file belongs to none"),
            Self::Input(id) => write!(f, "${{input:{id}}} is asked for by VS Code, and by nobody here"),
            Self::Unknown(what) if is_no_name(what) => f.write_str("nobody knows what this ${…} stands for"),
            Self::Unknown(what) => write!(f, "nobody knows what {what} stands for"),
            Self::Unclosed => f.write_str("a `${` has no `}`"),
            Self::Reference(Reference::File(path), why) => write!(f, "the secret in {path} cannot be had: {why}"),
            Self::Reference(Reference::Command(argv), why) => {
                let program = argv.first().map_or("", String::as_str);
                write!(f, "the secret that `{program}` tells cannot be had: {why}")
            }
            Self::Reference(Reference::Keyring(entry), why) => write!(f, "the secret {entry} of the keyring cannot be had: {why}"),
        }
    }
}

impl Problem {
    /// What to do about it.
    pub fn fixes(&self) -> Vec<String> {
        match self {
            Self::Unset(name) if is_no_name(name) => vec!["write it without the ${…}; better, keep it elsewhere: ${file:PATH} or ${keyring:SERVICE/NAME}".to_owned()],
            Self::Unset(name) => vec![
                if cfg!(target_os = "linux") {
                    format!("set {name} where nexusd is started, and restart it (the service: `systemctl --user set-environment {name}=…` and `systemctl --user restart nexusd`)")
                } else {
                    format!("set {name} where nexusd is started, and restart it")
                },
                format!("or give it a default: ${{{name}:-…}}"),
                format!("if it is meant as it stands, write $${{{name}}}"),
            ],
            Self::NoHome => vec!["set HOME".to_owned()],
            Self::NoWorkspace => vec!["write the folder itself".to_owned()],
            Self::Input(id) => {
                let name: String = id.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
                vec![format!("write ${{{name}}} and set that variable, or ${{file:PATH}} and keep it in a file")]
            }
            Self::Unknown(_) => vec!["known are ${NAME}, ${NAME:-default}, ${env:NAME}, ${userHome}, ${workspaceFolder}, ${file:PATH}, ${cmd:PROGRAM …} and ${keyring:SERVICE/NAME}; $${…} stands for itself".to_owned()],
            Self::Unclosed => vec!["add the `}`, or write `$${` if it is meant as it stands".to_owned()],
            Self::Reference(Reference::File(path), _) => vec![format!("look at it: ls -l {path}")],
            Self::Reference(Reference::Command(argv), _) => {
                let line = shlex::try_join(argv.iter().map(String::as_str)).unwrap_or_default();
                vec![format!("try it by hand: {line}")]
            }
            Self::Reference(Reference::Keyring(entry), _) => {
                let line = |argv: Vec<String>| shlex::try_join(argv.iter().map(String::as_str)).unwrap_or_default();
                let mut fixes = vec![format!("put it there: {}", line(entry.store()))];
                fixes.extend(entry.lookup().map(|argv| format!("or see why not: {}", line(argv))));
                fixes.push("if the keyring was locked: unlock it, and `nexusctl reload`".to_owned());
                fixes
            }
        }
    }
}

/// Fills in what stands in a text. A `~` at its beginning is the home, where `tilde` says so.
pub fn expand(text: &str, tilde: bool, with: &Surroundings<'_>) -> Result<String, Problem> {
    expand_at(text, tilde, with, 0)
}

fn expand_at(
    text: &str,
    tilde: bool,
    with: &Surroundings<'_>,
    depth: usize,
) -> Result<String, Problem> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    if tilde && (text == "~" || text.starts_with("~/") || text.starts_with("~\\")) {
        let home = with.home.ok_or(Problem::NoHome)?;
        out.push_str(&home.to_string_lossy());
        rest = &text[1..];
    }
    while let Some(at) = rest.find(['$', '{']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix("$${") {
            out.push_str("${");
            rest = after;
        } else if let Some(inner) = rest.strip_prefix("${") {
            let end = closing(inner).ok_or(Problem::Unclosed)?;
            out.push_str(&braced(&inner[..end], with, depth)?);
            rest = &inner[end + 1..];
        } else if let Some((name, after)) = bare(rest) {
            out.push_str(&variable(name, with)?);
            rest = after;
        } else if let Some((reference, after)) = opencode(rest) {
            let fetched =
                (with.fetch)(&reference).map_err(|why| Problem::Reference(reference, why))?;
            out.push_str(&fetched);
            rest = after;
        } else {
            out.push_str(&rest[..1]);
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// Where the bracket is closed that was open at the beginning.
fn closing(text: &str) -> Option<usize> {
    let mut open = 0;
    for (at, c) in text.char_indices() {
        match c {
            '{' => open += 1,
            '}' if open == 0 => return Some(at),
            '}' => open -= 1,
            _ => {}
        }
    }
    None
}

/// What stands between `${` and `}`.
fn braced(inner: &str, with: &Surroundings<'_>, depth: usize) -> Result<String, Problem> {
    let unknown = || {
        Problem::Unknown(format!(
            "${{{}}}",
            inner.split(':').next().unwrap_or_default()
        ))
    };
    let lossy = |path: &Path| path.to_string_lossy().into_owned();
    // `${file:-x}` is a variable that is called `file`.
    if let Some((kind, what)) = inner.split_once(':')
        && !what.starts_with('-')
    {
        let reference = match kind {
            "file" => Some(Reference::File(what.trim().to_owned())),
            "cmd" => Some(Reference::Command(
                shlex::split(what)
                    .filter(|argv| !argv.is_empty())
                    .ok_or_else(unknown)?,
            )),
            "keyring" => Some(Reference::Keyring(Entry::parse(what).ok_or_else(unknown)?)),
            "input" => return Err(Problem::Input(what.to_owned())),
            _ => None,
        };
        if let Some(reference) = reference {
            return (with.fetch)(&reference).map_err(|why| Problem::Reference(reference, why));
        }
    }
    match inner {
        "userHome" => return with.home.map(lossy).ok_or(Problem::NoHome),
        "workspaceFolder" | "workspaceRoot" => {
            return with.workspace.map(lossy).ok_or(Problem::NoWorkspace);
        }
        "workspaceFolderBasename" => {
            let name = with
                .workspace
                .and_then(Path::file_name)
                .ok_or(Problem::NoWorkspace)?;
            return Ok(name.to_string_lossy().into_owned());
        }
        "pathSeparator" | "/" => return Ok(std::path::MAIN_SEPARATOR_STR.to_owned()),
        _ => {}
    }
    let inner = inner.strip_prefix("env:").unwrap_or(inner);
    let (name, default) = match inner.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inner, None),
    };
    if !is_name(name) {
        return Err(unknown());
    }
    match (variable(name, with), default) {
        (Ok(value), None) => Ok(value),
        (Ok(value), Some(_)) if !value.is_empty() => Ok(value),
        (_, Some(default)) if depth < MAX_DEPTH => expand_at(default, false, with, depth + 1),
        (_, Some(_)) => Err(unknown()),
        (Err(problem), None) => Err(problem),
    }
}

/// `{{ env.NAME }}`, `{env:NAME}` and `$env:NAME`.
fn bare(text: &str) -> Option<(&str, &str)> {
    if let Some(inner) = text.strip_prefix("{{") {
        let (inner, after) = inner.split_once("}}")?;
        let name = inner.trim().strip_prefix("env.")?;
        return is_name(name).then_some((name, after));
    }
    if let Some(inner) = text.strip_prefix("{env:") {
        let (name, after) = inner.split_once('}')?;
        return is_name(name).then_some((name, after));
    }
    let inner = text.strip_prefix("$env:")?;
    let end = inner
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .unwrap_or(inner.len());
    is_name(&inner[..end]).then(|| inner.split_at(end))
}

/// `{file:PATH}`.
fn opencode(text: &str) -> Option<(Reference, &str)> {
    let (path, after) = text.strip_prefix("{file:")?.split_once('}')?;
    Some((Reference::File(path.trim().to_owned()), after))
}

fn variable(name: &str, with: &Surroundings<'_>) -> Result<String, Problem> {
    (with.variable)(name).ok_or_else(|| Problem::Unset(name.to_owned()))
}

fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// `$NAME` in a text, as `${NAME}`: some programs write it without brackets.
pub fn embrace(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..=at]);
        rest = &rest[at + 1..];
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .unwrap_or(rest.len());
        if is_name(&rest[..end]) && !rest[..end].starts_with("env") {
            out.push_str(&format!("{{{}}}", &rest[..end]));
            rest = &rest[end..];
        }
    }
    out + rest
}

/// Whether the whole text is a variable without brackets, which is passed on as it stands.
pub fn is_bare_variable(text: &str) -> bool {
    text.strip_prefix('$')
        .is_some_and(|name| is_name(name) && name.chars().any(|c| c.is_ascii_uppercase()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn with<T>(test: impl FnOnce(&Surroundings<'_>) -> T) -> T {
        test(&Surroundings {
            variable: &|name| match name {
                "TOKEN" => Some("t0k".into()),
                "EMPTY" => Some(String::new()),
                "TRICK" => Some("${TOKEN}".into()),
                _ => None,
            },
            home: Some(Path::new("/home/u")),
            workspace: Some(Path::new("/work/app")),
            fetch: &|reference| match reference {
                Reference::File(path) if path == "~/x" => Ok("from file".into()),
                Reference::Command(argv) => Ok(argv.join("+")),
                Reference::Keyring(entry) if entry.service == "github" => Ok(entry.name.clone()),
                Reference::File(_) | Reference::Keyring(_) => Err("it is not there".into()),
            },
        })
    }

    fn of(text: &str) -> Result<String, Problem> {
        with(|surroundings| expand(text, true, surroundings))
    }

    #[test]
    fn every_way_to_write_a_variable_is_understood() {
        for (text, expected) in [
            ("${TOKEN}", "t0k"),
            ("Bearer ${TOKEN}!", "Bearer t0k!"),
            ("${env:TOKEN}", "t0k"),
            ("$env:TOKEN/x", "t0k/x"),
            ("{env:TOKEN}", "t0k"),
            ("{{ env.TOKEN }}{{env.TOKEN}}", "t0kt0k"),
            ("${TOKEN:-x}", "t0k"),
            ("${NONE:-a b}", "a b"),
            ("${EMPTY:-x}", "x"),
            ("${EMPTY}", ""),
            ("${NONE:-${TOKEN}}", "t0k"),
            ("${NONE:-}", ""),
            ("${file:-x}", "x"),
            ("${userHome}/a", "/home/u/a"),
            ("~/a", "/home/u/a"),
            ("~", "/home/u"),
            ("a~/b", "a~/b"),
            ("~user/b", "~user/b"),
            ("${workspaceFolder}/src", "/work/app/src"),
            ("${workspaceFolderBasename}", "app"),
            ("${file:~/x}", "from file"),
            ("{file:~/x}", "from file"),
            ("${cmd:pass show 'a b'}", "pass+show+a b"),
            ("Bearer ${keyring:github/me}", "Bearer me"),
            // What looks like one and is none.
            ("$${TOKEN}", "${TOKEN}"),
            ("pa$$word$", "pa$$word$"),
            ("$HOME", "$HOME"),
            ("{\"a\": {\"b\": 1}}", "{\"a\": {\"b\": 1}}"),
            ("{{ title }}", "{{ title }}"),
            // What comes out is not looked at again.
            ("${TRICK}", "${TOKEN}"),
        ] {
            assert_eq!(of(text), Ok(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_stands_for_nothing_is_an_error_that_names_it() {
        for (text, expected) in [
            ("${NONE}", Problem::Unset("NONE".into())),
            ("{{ env.NONE }}", Problem::Unset("NONE".into())),
            ("${env:NONE}", Problem::Unset("NONE".into())),
            ("a ${TOKEN", Problem::Unclosed),
            ("${input:api-key}", Problem::Input("api-key".into())),
            (
                "${{ secrets.X }}",
                Problem::Unknown("${{ secrets.X }}".into()),
            ),
            ("${keyring:a/-x}", Problem::Unknown("${keyring}".into())),
            ("${vault:x}", Problem::Unknown("${vault}".into())),
        ] {
            let problem = of(text).unwrap_err();
            assert_eq!(problem, expected, "{text}");
            assert!(!problem.fixes().is_empty());
        }
        let none = of("${keyring:gitlab/me}").unwrap_err();
        assert!(
            none.to_string().contains("gitlab/me of the keyring"),
            "{none}"
        );
        assert!(
            of("${file:/no}")
                .unwrap_err()
                .to_string()
                .contains("it is not there")
        );
    }

    #[test]
    fn a_tilde_is_a_home_only_where_paths_are() {
        let url = with(|surroundings| expand("~/x", false, surroundings));
        assert_eq!(url.unwrap(), "~/x");
    }

    #[test]
    fn variables_without_brackets_get_them() {
        assert_eq!(embrace("a $B_1-${C} $5 $"), "a ${B_1}-${C} $5 $");
        assert!(is_bare_variable("$TOKEN") && !is_bare_variable("$5") && !is_bare_variable("a$B"));
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(text in "([a-zA-Z~/:.\\-]|\\$|\\{|\\}|env|file|é| )*") {
            let _ = of(&text);
            let _ = embrace(&text);
        }

        #[test]
        fn text_without_signs_is_left_alone(text in "[^${~]*") {
            prop_assert_eq!(of(&text), Ok(text));
        }
    }
}
