//! From what was written to what is run: variables filled in, files of variables read, secrets fetched.

mod http;

pub use http::Remote;

use crate::{
    diagnosis::Diagnosis,
    endpoint::Secret,
    env_file,
    expand::{Problem, Reference, Surroundings, expand, is_bare_variable},
    keyring::Entry,
    layers::Places,
    mask,
    model::{Server, Setting, Settings, Stdio, Text, Transport},
    secret::{self, How, Starter},
    source::Source,
};
use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

/// How a server is reached, with nothing left to be filled in.
#[derive(Clone, PartialEq, Eq)]
pub enum Resolved {
    /// What is run.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables that it gets.
        env: BTreeMap<String, String>,
        /// Where it runs.
        cwd: Option<PathBuf>,
    },
    /// What is connected to.
    Http(Box<Remote>),
}

/// Not what is in it: that may be a secret.
impl std::fmt::Debug for Resolved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Resolved(***)")
    }
}

/// How many servers are asked for at once. A keyring that is locked lets each of them wait.
const AT_ONCE: usize = 16;

/// All of them, in their order. Those for which somebody has to be asked do not wait for each other.
pub fn resolve_all(
    servers: &[Server],
    places: &Places,
    starter: &(dyn Starter + Sync),
) -> Vec<(Option<Resolved>, Vec<Diagnosis>)> {
    let fetch = |server| resolve(server, places, How::Fetch(starter));
    let mut all = Vec::with_capacity(servers.len());
    for some in servers.chunks(AT_ONCE) {
        thread::scope(|scope| {
            let started: Vec<_> = some
                .iter()
                .map(|server| server.has_to_ask().then(|| scope.spawn(|| fetch(server))))
                .collect();
            for (server, started) in some.iter().zip(started) {
                // A thread that failed is no reason to fail: it is tried here.
                let asked = started.and_then(|thread| thread.join().ok());
                all.push(asked.unwrap_or_else(|| fetch(server)));
            }
        });
    }
    all
}

/// Fills in everything, or says all that is missing.
pub fn resolve(
    server: &Server,
    places: &Places,
    how: How<'_>,
) -> (Option<Resolved>, Vec<Diagnosis>) {
    let source = &server.origin.source;
    let (resolved, diagnoses) =
        fill(
            source,
            Some(&server.name),
            places,
            how,
            |filling| match &server.transport {
                Some(Transport::Stdio(stdio)) => Some(filling.stdio(stdio)),
                Some(Transport::Http(http)) => filling.http(http),
                None => None,
            },
        );
    let failed = diagnoses.iter().any(Diagnosis::is_error);
    (resolved.filter(|_| !failed), diagnoses)
}

/// What is sent to all servers that are reached over HTTP; those that lack something are left out.
pub fn headers(
    settings: &Settings,
    places: &Places,
    how: How<'_>,
) -> (Vec<(String, Secret)>, Vec<Diagnosis>) {
    let (mut headers, mut diagnoses) = (Vec::new(), Vec::new());
    for (name, setting, origin) in &settings.headers {
        let (header, found) = fill(&origin.source, None, places, how, |filling| {
            filling.header(name, setting, &origin.span)
        });
        if !found.iter().any(Diagnosis::is_error) {
            headers.extend(header);
        }
        // The daemon can do without it.
        diagnoses.extend(found.into_iter().map(Diagnosis::as_warning));
    }
    (headers, diagnoses)
}

fn fill<T>(
    source: &Arc<Source>,
    server: Option<&str>,
    places: &Places,
    how: How<'_>,
    work: impl FnOnce(&mut Filling<'_>) -> T,
) -> (T, Vec<Diagnosis>) {
    let path = std::path::absolute(&source.path).unwrap_or_else(|_| source.path.clone());
    let folder = path.parent().unwrap_or(Path::new("/"));
    let home = places.home.as_deref();
    let fetch = |reference: &Reference| secret::fetch(reference, how, folder, home);
    let surroundings = Surroundings {
        variable: &|name| env::var_os(name).map(|value| value.to_string_lossy().into_owned()),
        home,
        workspace: source.project(),
        fetch: &fetch,
    };
    let mut filling = Filling {
        source,
        server,
        with: &surroundings,
        folder,
        home,
        diagnoses: Vec::new(),
    };
    let filled = work(&mut filling);
    (filled, filling.diagnoses)
}

struct Filling<'a> {
    source: &'a Arc<Source>,
    server: Option<&'a str>,
    with: &'a Surroundings<'a>,
    folder: &'a Path,
    home: Option<&'a Path>,
    diagnoses: Vec<Diagnosis>,
}

impl Filling<'_> {
    fn stdio(&mut self, stdio: &Stdio) -> Resolved {
        let mut env = BTreeMap::new();
        for file in &stdio.env_files {
            env.extend(self.env_file(file));
        }
        for (name, setting) in &stdio.env {
            if name.is_empty() || name.contains(['=', '\0']) {
                self.tell(Diagnosis::error(
                    "config::variable",
                    format!("{name:?} cannot be the name of a variable"),
                ));
                continue;
            }
            let value = self.setting(name, setting, true);
            env.insert(name.clone(), value);
        }
        let cwd = match &stdio.cwd {
            Some(cwd) => {
                let cwd = self.folder.join(self.text(cwd, "cwd", true));
                Some(std::path::absolute(&cwd).unwrap_or(cwd))
            }
            // As if somebody who works in the project had started it.
            None => self.with.workspace.map(Path::to_owned),
        };
        Resolved::Stdio {
            command: self.text(&stdio.command, "command", true),
            args: stdio
                .args
                .iter()
                .map(|arg| self.text(arg, "args", true))
                .collect(),
            env,
            cwd,
        }
    }

    fn text(&mut self, text: &Text, key: &str, tilde: bool) -> String {
        match expand(&text.raw, tilde, self.with) {
            Ok(value) => {
                if value.contains('\0') {
                    self.tell(
                        Diagnosis::error("config::text", format!("{key:?} has a zero byte in it"))
                            .at(text.span.clone(), "here"),
                    );
                }
                value
            }
            Err(problem) => {
                self.problem(&problem, text, key);
                String::new()
            }
        }
    }

    /// `~` at the beginning of a variable's value is a home; a header has none.
    fn setting(&mut self, name: &str, setting: &Setting, tilde: bool) -> String {
        match setting {
            Setting::Text(text) => {
                self.look_at(name, text);
                self.text(text, name, tilde)
            }
            Setting::File(path) => {
                let raw = self.text(path, name, true);
                self.fetch(Reference::File(raw), path, name)
            }
            Setting::Keyring(entry) => {
                let raw = self.text(entry, name, false);
                match Entry::parse(&raw) {
                    Some(found) => self.fetch(Reference::Keyring(found), entry, name),
                    None => {
                        self.tell(
                            Diagnosis::error("config::secret", "this is no entry of a keyring")
                                .at(entry.span.clone(), "expected SERVICE/NAME"),
                        );
                        String::new()
                    }
                }
            }
            Setting::Command(argv) => {
                let words = argv
                    .iter()
                    .map(|word| self.text(word, name, true))
                    .collect();
                match argv.first() {
                    Some(first) => self.fetch(Reference::Command(words), first, name),
                    None => String::new(),
                }
            }
        }
    }

    fn fetch(&mut self, reference: Reference, text: &Text, key: &str) -> String {
        match (self.with.fetch)(&reference) {
            Ok(value) => value,
            Err(why) => {
                self.problem(&Problem::Reference(reference, why), text, key);
                String::new()
            }
        }
    }

    /// What works, but surely not as it was meant.
    fn look_at(&mut self, name: &str, text: &Text) {
        let warning = if is_bare_variable(&text.raw) {
            let better = format!("write ${{{}}}", &text.raw[1..]);
            Some((
                format!("{name:?} is passed on as it stands, with the `$`"),
                better,
            ))
        } else if text.raw.starts_with("file:")
            && mask::hides_argument(&format!("--{name}"), "file")
        {
            Some((
                format!("{name:?} is passed on as it stands"),
                "for the content of the file, write ${file:…}".to_owned(),
            ))
        } else {
            None
        };
        if let Some((message, fix)) = warning {
            self.tell(
                Diagnosis::warning("config::literal", message)
                    .at(text.span.clone(), "is this meant?")
                    .fix(fix),
            );
        }
    }

    fn env_file(&mut self, file: &Text) -> Vec<(String, String)> {
        let path = secret::place(&self.text(file, "env_file", true), self.folder, self.home);
        let variables = match secret::read_text(&path) {
            Ok(text) => {
                env_file::parse(&text).map_err(|line| format!("line {line} is not NAME=value"))
            }
            Err(why) => Err(why),
        };
        variables.unwrap_or_else(|why| {
            self.tell(
                Diagnosis::error(
                    "config::env-file",
                    format!("the variables in {} cannot be had: {why}", path.display()),
                )
                .at(file.span.clone(), "this file")
                .fix("every line is NAME=value, or a comment with #"),
            );
            Vec::new()
        })
    }

    fn problem(&mut self, problem: &Problem, text: &Text, key: &str) {
        let code = match problem {
            Problem::Unset(_) => "config::unset",
            Problem::Reference(..) => "config::secret",
            _ => "config::expansion",
        };
        let mut diagnosis = Diagnosis::error(code, problem.to_string())
            .at(text.span.clone(), format!("{key:?} needs it"));
        for fix in problem.fixes() {
            diagnosis = diagnosis.fix(fix);
        }
        self.tell(diagnosis);
    }

    fn tell(&mut self, diagnosis: Diagnosis) {
        let diagnosis = diagnosis.in_file(self.source);
        self.diagnoses.push(match self.server {
            Some(server) => diagnosis.of_server(server),
            None => diagnosis,
        });
    }
}
