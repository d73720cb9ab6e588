//! Which file a command means. What there is on the disk is asked for: nothing here touches it.

use std::path::{Path, PathBuf};

/// What a file is to somebody who wants to run it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It can be run.
    Program,
    /// It has no content. Windows has such stand-ins for programs of its shop: some start the program,
    /// some only the shop.
    Empty,
    /// It cannot be run.
    Other,
}

/// The first program that one of the names means, each looked for in all the folders. Where there is
/// none, what was found instead.
pub(super) fn first_program(
    names: &[&str],
    folders: &[PathBuf],
    endings: &[String],
    kind: impl Fn(&Path) -> Option<Kind>,
) -> Result<PathBuf, Option<PathBuf>> {
    let mut empty = None;
    let mut other = None;
    for name in names {
        for path in folders
            .iter()
            .flat_map(|folder| spellings(&folder.join(name), endings))
        {
            match kind(&path) {
                Some(Kind::Program) => return Ok(path),
                Some(Kind::Empty) => empty = empty.or(Some(path)),
                Some(Kind::Other) => other = other.or(Some(path)),
                None => {}
            }
        }
    }
    empty.ok_or(other)
}

/// The name itself and with each of the endings. A name that has one already is meant as it stands;
/// any other is more likely the beginning of one.
fn spellings(path: &Path, endings: &[String]) -> Vec<PathBuf> {
    let with = |ending: &String| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    let name = path.as_os_str().to_string_lossy().to_ascii_lowercase();
    let has_one = endings.iter().any(|ending| name.ends_with(ending.as_str()));
    let mut spellings: Vec<PathBuf> = endings.iter().map(with).collect();
    let place = if has_one { 0 } else { spellings.len() };
    spellings.insert(place, path.to_owned());
    spellings
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOWS: &[&str] = &[".com", ".exe", ".bat", ".cmd", ".js"];

    /// A disk on which a file is what its name says: `!` is not a program, `?` is empty.
    fn look(names: &[&str], endings: &[&str], disk: &[&str]) -> Result<String, Option<String>> {
        let folders = [PathBuf::from("a"), PathBuf::from("b")];
        let endings: Vec<String> = endings.iter().map(|&ending| ending.into()).collect();
        let text = |path: PathBuf| path.to_string_lossy().replace('\\', "/");
        let kind = |path: &Path| {
            let path = text(path.to_owned());
            disk.iter().find_map(|file| {
                let kind = match file.as_bytes()[0] {
                    b'!' => Kind::Other,
                    b'?' => Kind::Empty,
                    _ => Kind::Program,
                };
                (file.trim_start_matches(['!', '?']) == path).then_some(kind)
            })
        };
        first_program(names, &folders, &endings, kind)
            .map(text)
            .map_err(|other| other.map(text))
    }

    fn found(path: &str) -> Result<String, Option<String>> {
        Ok(path.to_owned())
    }

    #[test]
    fn where_names_have_no_endings_the_first_folder_wins() {
        assert_eq!(look(&["x"], &[], &["b/x", "a/x"]), found("a/x"));
        assert_eq!(look(&["x"], &[], &["a/x.exe"]), Err(None));
        assert_eq!(look(&["x"], &[], &["!a/x", "b/x"]), found("b/x"));
        assert_eq!(
            look(&["x"], &[], &["!a/x", "!b/x"]),
            Err(Some("a/x".into()))
        );
    }

    #[test]
    fn a_name_is_completed_before_it_is_taken_as_it_stands() {
        let npm = ["a/npx", "a/npx.cmd", "b/npx.exe"];
        assert_eq!(look(&["npx"], WINDOWS, &npm), found("a/npx.cmd"));
        let both = ["a/x.cmd", "a/x.exe"];
        assert_eq!(look(&["x"], WINDOWS, &both), found("a/x.exe"));
        assert_eq!(
            look(
                &["python3.11"],
                WINDOWS,
                &["a/python3.11", "a/python3.11.exe"]
            ),
            found("a/python3.11.exe")
        );
        assert_eq!(look(&["tool"], WINDOWS, &["b/tool"]), found("b/tool"));
    }

    #[test]
    fn a_name_with_an_ending_is_taken_as_it_stands() {
        let both = ["a/x.CMD.exe", "a/x.CMD"];
        assert_eq!(look(&["x.CMD"], WINDOWS, &both), found("a/x.CMD"));
        assert_eq!(look(&["x.CMD"], WINDOWS, &both[..1]), found("a/x.CMD.exe"));
    }

    #[test]
    fn what_cannot_be_run_is_passed_over_and_named() {
        let script = ["!a/npx", "b/npx.cmd"];
        assert_eq!(look(&["npx"], WINDOWS, &script), found("b/npx.cmd"));
        assert_eq!(
            look(&["x"], WINDOWS, &["!a/x.js"]),
            Err(Some("a/x.js".into()))
        );
    }

    #[test]
    fn a_stand_in_is_better_than_nothing_and_worse_than_another_name() {
        let names = ["python3", "python"];
        let shop = "?a/python3.exe";
        assert_eq!(look(&names, WINDOWS, &[shop]), found("a/python3.exe"));
        let installed = [shop, "?a/python.exe", "b/python.exe"];
        assert_eq!(look(&names, WINDOWS, &installed), found("b/python.exe"));
        let real = ["a/python.exe", "b/python3.exe"];
        assert_eq!(look(&names, WINDOWS, &real), found("b/python3.exe"));
    }
}
