//! Which program an agent is, and which programs started it.

/// How far up it is looked.
#[cfg(any(target_os = "linux", windows))]
const GENERATIONS: usize = 16;

/// The names of a program and of those that started it: paths, names of files, of scripts and of processes.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Programs {
    /// Its own.
    pub own: Vec<String>,
    /// Those of who started it, the nearest first.
    pub starters: Vec<Vec<String>>,
}

impl Programs {
    /// Those of a process, as far as the system tells.
    pub fn of(pid: u32) -> Self {
        let mut generations = generations(pid).into_iter();
        Self {
            own: generations.next().unwrap_or_default(),
            starters: generations.collect(),
        }
    }

    /// One name for each, its own first: that of its file.
    pub fn names(&self) -> Vec<String> {
        let all = std::iter::once(&self.own).chain(&self.starters);
        let name = |names: &Vec<String>| names.get(1).or(names.first()).cloned();
        all.filter_map(name).collect()
    }

    /// All names, its own first.
    pub fn all(&self) -> Vec<String> {
        let starters = self.starters.iter().flatten();
        self.own.iter().chain(starters).cloned().collect()
    }
}

/// Programs that run scripts: what counts is the script.
const INTERPRETERS: &[&str] = &["node", "bun", "deno", "python", "python3", "ruby"];

/// The names that a process goes by.
fn names(exe: &str, process: Option<&str>, words: &[String]) -> Vec<String> {
    let file = |path: &str| {
        let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
        let name = name.strip_suffix(".exe").unwrap_or(name);
        name.to_owned()
    };
    let program = file(exe);
    let is_interpreter = INTERPRETERS.iter().any(|name| {
        program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') == *name
            || program == *name
    });
    let script = words.iter().skip(1).find(|word| !word.starts_with('-'));
    let script = script.filter(|_| is_interpreter);
    let mut names = vec![exe.to_owned(), program];
    if let Some(script) = script {
        names.push(script.clone());
        let name = file(script);
        names.push(
            name.rsplit_once('.')
                .map_or(name.clone(), |(stem, _)| stem.to_owned()),
        );
        names.push(name);
    }
    names.extend(process.map(str::to_owned));
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| !name.is_empty() && seen.insert(name.clone()));
    names
}

#[cfg(target_os = "linux")]
fn generations(pid: u32) -> Vec<Vec<String>> {
    use std::fs;
    let mut generations = Vec::new();
    let mut pid = pid;
    while pid > 1 && generations.len() < GENERATIONS {
        let at = format!("/proc/{pid}");
        let exe = fs::read_link(format!("{at}/exe")).unwrap_or_default();
        let exe = exe.to_string_lossy();
        // What Linux says of a program that was replaced while it runs.
        let exe = exe.strip_suffix(" (deleted)").unwrap_or(&exe);
        let words = fs::read(format!("{at}/cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words);
        let words: Vec<String> = words.split('\0').take(8).map(str::to_owned).collect();
        let Ok(stat) = fs::read_to_string(format!("{at}/stat")) else {
            break;
        };
        let process = stat
            .split_once('(')
            .and_then(|(_, rest)| rest.rsplit_once(')'));
        generations.push(names(exe, process.map(|(name, _)| name), &words));
        let parent =
            process.and_then(|(_, rest)| rest.split_ascii_whitespace().nth(1)?.parse().ok());
        pid = parent.unwrap_or(0);
    }
    generations
}

#[cfg(windows)]
fn generations(pid: u32) -> Vec<Vec<String>> {
    let table = crate::process::processes();
    let mut generations = Vec::new();
    let mut pid = pid;
    while let Some((_, parent, name)) = table.iter().find(|(own, ..)| *own == pid) {
        if generations.len() == GENERATIONS {
            break;
        }
        generations.push(names(name, None, &[]));
        pid = *parent;
    }
    generations
}

/// Nothing is known of them.
#[cfg(not(any(target_os = "linux", windows)))]
fn generations(_pid: u32) -> Vec<Vec<String>> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_counts_as_a_program() {
        let words = |words: &[&str]| {
            words
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            names("/usr/bin/claude", Some("claude"), &[]),
            ["/usr/bin/claude", "claude"]
        );
        assert_eq!(
            names(
                "/usr/bin/node",
                Some("node"),
                &words(&["node", "--no-warnings", "/opt/bin/gemini.js"])
            ),
            [
                "/usr/bin/node",
                "node",
                "/opt/bin/gemini.js",
                "gemini",
                "gemini.js"
            ]
        );
        assert_eq!(
            names(
                "/usr/bin/python3.12",
                None,
                &words(&["python3", "/x/aider"])
            )[2..],
            ["/x/aider", "aider"]
        );
        assert_eq!(names("C:\\bin\\nexusctl.exe", None, &[])[1], "nexusctl");
        assert_eq!(
            names("/bin/bash", None, &words(&["bash", "/x/claude"])).len(),
            2
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_is_known_with_those_that_started_it() {
        let ours = Programs::of(std::process::id());
        let exe = std::env::current_exe().unwrap();
        assert_eq!(ours.own[0], exe.to_string_lossy());
        let parent = std::os::unix::process::parent_id();
        if parent > 1 {
            assert_eq!(ours.starters[0], Programs::of(parent).own);
        }
    }
}
