//! What is to be started: the program, its arguments, and a clean environment.

mod lookup;

use lookup::Kind;
use std::{
    collections::BTreeMap,
    env,
    ffi::{OsStr, OsString},
    fmt, io,
    path::{Path, PathBuf},
};

/// The variables that every server gets. All others are given on purpose or not at all.
const SAFE_VARIABLES: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TERM",
    "SHELL",
    "TMPDIR",
    "TMP",
    "TEMP",
    "TZ",
    // where caches and files of the user belong
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    // Windows
    "USERNAME",
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PROGRAMFILES(X86)",
    "PROGRAMW6432",
    "PATHEXT",
    "SYSTEMROOT",
    "SYSTEMDRIVE",
    "WINDIR",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "OS",
    "NUMBER_OF_PROCESSORS",
    "PROCESSOR_ARCHITECTURE",
];

/// What is to be started.
#[derive(Clone, PartialEq, Eq)]
pub struct SpawnSpec {
    /// A name to be looked up on the PATH, or a path.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// All of its environment.
    pub env: BTreeMap<OsString, OsString>,
    /// Where it runs.
    pub cwd: Option<PathBuf>,
}

/// Not its arguments and variables: they may be secret.
impl fmt::Debug for SpawnSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpawnSpec")
            .field("command", &self.command)
            .finish_non_exhaustive()
    }
}

/// Why a program was not started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// It is nowhere on the PATH.
    #[error("command not found: {command:?} is not in {}", searched(path))]
    NotOnPath {
        /// What was looked for.
        command: String,
        /// The PATH that was searched.
        path: OsString,
    },
    /// There is no such file.
    #[error("command not found: {} does not exist", .0.display())]
    NoSuchFile(PathBuf),
    /// There is no such directory to run in.
    #[error("the working directory {} does not exist", .0.display())]
    NoSuchDirectory(PathBuf),
    /// It is not executable.
    #[error("permission denied: {} is not executable by this user", .0.display())]
    NotExecutable(PathBuf),
    /// It is a script or a document, which Windows does not start by itself, or a broken program.
    #[error(
        "{} is not a program for this system; for a script, the command is what runs it",
        .0.display()
    )]
    NotAProgram(PathBuf),
    /// A batch file reads its arguments from one line: what follows a line break would be lost.
    #[error(
        "argument {number} has a line break, which {} cannot be given: it is a batch file",
        program.display()
    )]
    BatchArgument {
        /// The batch file.
        program: PathBuf,
        /// Which argument, from one.
        number: usize,
    },
    /// The system refused.
    #[error("cannot start {}: {source}", program.display())]
    Io {
        /// The program.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl SpawnError {
    pub(super) fn from_io(spec: &SpawnSpec, program: &Path, source: io::Error) -> Self {
        if let Some(cwd) = spec.cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
            return Self::NoSuchDirectory(cwd.clone());
        }
        let program = program.to_owned();
        let has_break = |arg: &String| arg.contains(['\r', '\n']);
        match (source.kind(), spec.args.iter().position(has_break)) {
            // Std refuses this for batch files, and says no more than that something is wrong.
            (io::ErrorKind::InvalidInput, Some(index)) if cfg!(windows) => Self::BatchArgument {
                program,
                number: index + 1,
            },
            (io::ErrorKind::PermissionDenied, _) if cfg!(unix) => Self::NotExecutable(program),
            _ if source.raw_os_error().is_some_and(is_no_program) => Self::NotAProgram(program),
            _ => Self::Io { program, source },
        }
    }

    /// A file was found that cannot be run.
    fn refused(file: PathBuf) -> Self {
        if cfg!(windows) {
            Self::NotAProgram(file)
        } else {
            Self::NotExecutable(file)
        }
    }

    /// Whether the command itself is missing.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotOnPath { .. } | Self::NoSuchFile(_))
    }

    /// Whether the system has no room for another process now, whichever it is.
    pub fn is_no_room(&self) -> bool {
        self.source().is_some_and(|source| {
            matches!(
                source.kind(),
                io::ErrorKind::WouldBlock
                    | io::ErrorKind::OutOfMemory
                    | io::ErrorKind::QuotaExceeded
            ) || source.raw_os_error().is_some_and(is_shortage)
        })
    }

    /// Whether the program is being written just now.
    pub fn is_busy(&self) -> bool {
        // ERROR_SHARING_VIOLATION has no kind of its own.
        let is_shared = |code| cfg!(windows) && code == 32;
        self.source().is_some_and(|source| {
            source.kind() == io::ErrorKind::ExecutableFileBusy
                || source.raw_os_error().is_some_and(is_shared)
        })
    }

    fn source(&self) -> Option<&io::Error> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Shortages that have no kind of their own: ENFILE and EMFILE; on Windows open files, system
/// resources, and the page file.
fn is_shortage(code: i32) -> bool {
    match code {
        23 | 24 => cfg!(unix),
        4 | 1450 | 1455 => cfg!(windows),
        _ => false,
    }
}

/// ERROR_BAD_EXE_FORMAT and ERROR_EXE_MACHINE_TYPE_MISMATCH, whose texts speak of `%1`.
fn is_no_program(code: i32) -> bool {
    cfg!(windows) && matches!(code, 193 | 216)
}

impl SpawnSpec {
    /// The file to be run: the PATH of the server itself is searched, not the daemon's.
    pub(super) fn find_program(&self) -> Result<PathBuf, SpawnError> {
        let endings = super::platform::endings(self.variable("PATHEXT"));
        let command = Path::new(&self.command);
        if command.components().count() > 1 || self.command.contains(['/', '\\']) {
            let folder = self.cwd.clone().unwrap_or_default();
            let missing = || SpawnError::NoSuchFile(folder.join(command));
            let folders = std::slice::from_ref(&folder);
            return lookup::first_program(&[&self.command], folders, &endings, kind)
                .map_err(|other| other.map_or_else(missing, SpawnError::refused));
        }
        let path = self.variable("PATH").unwrap_or_default();
        let folders: Vec<PathBuf> = env::split_paths(path)
            .filter(|dir| dir.is_absolute())
            .collect();
        let missing = || SpawnError::NotOnPath {
            command: self.command.clone(),
            path: path.to_owned(),
        };
        lookup::first_program(&self.names(), &folders, &endings, kind)
            .map_err(|other| other.map_or_else(missing, SpawnError::refused))
    }

    /// What the program may be called. Python for Windows comes as `python` alone.
    fn names(&self) -> Vec<&str> {
        let mut names = vec![self.command.as_str()];
        if cfg!(windows) && self.command.eq_ignore_ascii_case("python3") {
            names.push("python");
        }
        names
    }

    fn variable(&self, name: &str) -> Option<&OsStr> {
        let mut env = self.env.iter();
        env.find(|(other, _)| is_same_variable(other, OsStr::new(name)))
            .map(|(_, value)| value.as_os_str())
    }
}

fn kind(path: &Path) -> Option<Kind> {
    let file = path.metadata().ok().filter(|file| file.is_file())?;
    Some(if !super::platform::is_executable(path) {
        Kind::Other
    } else if file.len() == 0 {
        Kind::Empty
    } else {
        Kind::Program
    })
}

/// On Windows it is `Path` as a rule, and `PATH` means the same.
fn is_same_variable(one: &OsStr, other: &OsStr) -> bool {
    if cfg!(windows) {
        one.eq_ignore_ascii_case(other)
    } else {
        one == other
    }
}

/// The environment of a server: what is safe, what its config passes through, what it sets.
pub fn environment(
    ours: impl IntoIterator<Item = (OsString, OsString)>,
    passed: &[String],
    set: &BTreeMap<String, String>,
) -> BTreeMap<OsString, OsString> {
    let wanted = |name: &OsStr| {
        let is = |other: &str| is_same_variable(name, OsStr::new(other));
        SAFE_VARIABLES.iter().any(|safe| is(safe)) || passed.iter().any(|name| is(name))
    };
    let mut env: BTreeMap<OsString, OsString> = ours
        .into_iter()
        // A value that begins like a function is how a shell was once tricked.
        .filter(|(name, value)| wanted(name) && !value.as_encoded_bytes().starts_with(b"()"))
        .collect();
    for (name, value) in set {
        env.retain(|other, _| !is_same_variable(other, OsStr::new(name)));
        env.insert(name.into(), value.into());
    }
    env
}

fn searched(path: &OsStr) -> String {
    if path.is_empty() {
        return "the PATH, which is empty".to_owned();
    }
    format!("the PATH ({})", path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        pairs.iter().map(|(k, v)| (k.into(), v.into())).collect()
    }

    #[test]
    fn a_server_sees_what_is_safe_what_is_passed_and_what_is_set() {
        let ours = variables(&[
            ("PATH", "/bin"),
            ("HOME", "/home/u"),
            ("AWS_SECRET_ACCESS_KEY", "x"),
            ("GITHUB_TOKEN", "t"),
            ("TERM", "() { :;}; echo"),
        ]);
        let set = BTreeMap::from([("HOME".to_owned(), "/elsewhere".to_owned())]);
        let env = environment(ours, &["GITHUB_TOKEN".to_owned()], &set);
        let expected = variables(&[
            ("GITHUB_TOKEN", "t"),
            ("HOME", "/elsewhere"),
            ("PATH", "/bin"),
        ]);
        assert_eq!(env.into_iter().collect::<Vec<_>>(), expected);
    }

    #[cfg(unix)]
    #[test]
    fn a_missing_command_names_the_path_that_was_searched() {
        let spec = |command: &str, path: &str| SpawnSpec {
            command: command.into(),
            args: vec![],
            env: variables(&[("PATH", path)]).into_iter().collect(),
            cwd: None,
        };
        let error = spec("no-such-thing", "/a:/b").find_program().unwrap_err();
        assert!(error.is_not_found());
        assert!(error.to_string().contains("/a:/b"), "{error}");
        let error = spec("/no/such/thing", "/a").find_program().unwrap_err();
        assert!(
            error.to_string().contains("/no/such/thing does not exist"),
            "{error}"
        );
        assert_eq!(
            spec("sh", "/nowhere:/bin").find_program().unwrap(),
            Path::new("/bin/sh")
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_cannot_be_run_is_passed_over_and_named() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("tool");
        std::fs::write(&file, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        let spec = SpawnSpec {
            command: "tool".into(),
            args: vec![],
            env: BTreeMap::from([("PATH".into(), dir.path().into())]),
            cwd: None,
        };
        let error = spec.find_program().unwrap_err();
        assert!(matches!(error, SpawnError::NotExecutable(_)), "{error}");
    }
}
