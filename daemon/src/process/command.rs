//! What is to be started: the program, its arguments, and a clean environment.

use std::{
    collections::BTreeMap,
    env,
    ffi::{OsStr, OsString},
    io,
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
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PATHEXT",
    "SYSTEMROOT",
    "SYSTEMDRIVE",
    "WINDIR",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "NUMBER_OF_PROCESSORS",
    "PROCESSOR_ARCHITECTURE",
];

/// What is to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
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
        let missing_cwd = spec.cwd.as_ref().filter(|cwd| !cwd.is_dir());
        match (source.kind(), missing_cwd) {
            (_, Some(cwd)) => Self::NoSuchDirectory(cwd.clone()),
            (io::ErrorKind::PermissionDenied, _) => Self::NotExecutable(program.to_owned()),
            _ => Self::Io {
                program: program.to_owned(),
                source,
            },
        }
    }

    /// Whether the command itself is missing.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotOnPath { .. } | Self::NoSuchFile(_))
    }

    /// Whether the system has no room for another process now, whichever it is.
    pub fn is_no_room(&self) -> bool {
        // EMFILE and ENFILE have no kind of their own.
        let out_of_files = |code| cfg!(unix) && matches!(code, 23 | 24);
        self.source().is_some_and(|source| {
            matches!(
                source.kind(),
                io::ErrorKind::WouldBlock
                    | io::ErrorKind::OutOfMemory
                    | io::ErrorKind::QuotaExceeded
            ) || source.raw_os_error().is_some_and(out_of_files)
        })
    }

    /// Whether the program is being written just now.
    pub fn is_busy(&self) -> bool {
        self.source()
            .is_some_and(|source| source.kind() == io::ErrorKind::ExecutableFileBusy)
    }

    fn source(&self) -> Option<&io::Error> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl SpawnSpec {
    /// The file to be run: the PATH of the server itself is searched, not the daemon's.
    pub(super) fn find_program(&self) -> Result<PathBuf, SpawnError> {
        let command = Path::new(&self.command);
        if command.components().count() > 1 || self.command.contains(['/', '\\']) {
            let program = match &self.cwd {
                Some(cwd) => cwd.join(command),
                None => command.to_owned(),
            };
            return first_file(&program).ok_or(SpawnError::NoSuchFile(program));
        }
        let path = self
            .env
            .get(OsStr::new("PATH"))
            .cloned()
            .unwrap_or_default();
        let mut denied = None;
        for dir in env::split_paths(&path).filter(|dir| dir.is_absolute()) {
            let Some(program) = first_file(&dir.join(command)) else {
                continue;
            };
            if super::platform::is_executable(&program) {
                return Ok(program);
            }
            denied.get_or_insert(program);
        }
        Err(match denied {
            Some(program) => SpawnError::NotExecutable(program),
            None => SpawnError::NotOnPath {
                command: self.command.clone(),
                path,
            },
        })
    }
}

/// The file itself, or with one of the endings that the platform runs.
fn first_file(program: &Path) -> Option<PathBuf> {
    super::platform::endings().iter().find_map(|ending| {
        let mut name = program.as_os_str().to_owned();
        name.push(ending);
        let path = PathBuf::from(name);
        path.is_file().then_some(path)
    })
}

/// The environment of a server: what is safe, what its config passes through, what it sets.
pub fn environment(
    ours: impl IntoIterator<Item = (OsString, OsString)>,
    passed: &[String],
    set: &BTreeMap<String, String>,
) -> BTreeMap<OsString, OsString> {
    let wanted = |name: &OsStr| {
        let is = |other: &str| {
            if cfg!(windows) {
                name.eq_ignore_ascii_case(other)
            } else {
                name == other
            }
        };
        SAFE_VARIABLES.iter().any(|safe| is(safe)) || passed.iter().any(|name| is(name))
    };
    let mut env: BTreeMap<OsString, OsString> = ours
        .into_iter()
        // A value that begins like a function is how a shell was once tricked.
        .filter(|(name, value)| wanted(name) && !value.as_encoded_bytes().starts_with(b"()"))
        .collect();
    env.extend(set.iter().map(|(name, value)| (name.into(), value.into())));
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
