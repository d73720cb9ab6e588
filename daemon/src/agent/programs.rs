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
    /// Whether the system tells them.
    pub const ARE_KNOWN: bool = cfg!(any(target_os = "linux", windows));

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

/// A process as the system knows it: its names, and who started it.
#[cfg(any(target_os = "linux", windows))]
struct Entry {
    names: Vec<String>,
    parent: u32,
}

#[cfg(any(target_os = "linux", windows))]
fn generations(pid: u32) -> Vec<Vec<String>> {
    let look = lookup();
    let mut next = pid;
    let line = std::iter::from_fn(|| {
        let entry = (next > 1).then(|| look(next)).flatten()?;
        next = entry.parent;
        Some(entry.names)
    });
    line.take(GENERATIONS).collect()
}

#[cfg(target_os = "linux")]
fn lookup() -> impl Fn(u32) -> Option<Entry> {
    use std::fs;
    |pid| {
        let at = format!("/proc/{pid}");
        let exe = fs::read_link(format!("{at}/exe")).unwrap_or_default();
        let exe = exe.to_string_lossy();
        // What Linux says of a program that was replaced while it runs.
        let exe = exe.strip_suffix(" (deleted)").unwrap_or(&exe);
        let words = fs::read(format!("{at}/cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words);
        let words: Vec<String> = words.split('\0').take(8).map(str::to_owned).collect();
        let stat = fs::read_to_string(format!("{at}/stat")).ok()?;
        // The name before it may hold anything.
        let (process, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
        Some(Entry {
            names: names(exe, Some(process), &words),
            parent: rest.split_ascii_whitespace().nth(1)?.parse().ok()?,
        })
    }
}

#[cfg(windows)]
fn lookup() -> impl Fn(u32) -> Option<Entry> {
    let table = crate::process::processes();
    move |pid| {
        let (_, parent, name) = table.iter().find(|(own, ..)| *own == pid)?;
        Some(Entry {
            names: names(name, None, &[]),
            parent: *parent,
        })
    }
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
        let mut shell = std::process::Command::new("sh")
            .args(["-c", "sleep 60 & echo $!; wait"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut told = String::new();
        let out = shell.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut told).unwrap();
        let pid: u32 = told.trim().parse().unwrap();
        let theirs = Programs::of(pid);
        assert_eq!(theirs.starters[1], ours.own);
        assert!(theirs.starters[0].contains(&"sh".to_owned()), "{theirs:?}");
        for pid in [pid, shell.id()] {
            let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        }
        shell.wait().unwrap();
    }
}
