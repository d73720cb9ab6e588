//! Reads all layers into one.

use crate::{
    belief,
    diagnosis::Diagnosis,
    layers::{Places, project_order},
    model::{Origin, Server, Setting, Settings},
    read::{Dialect, Document, read},
    source::{Layer, Source},
    trust::{Trust, Verdict},
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// What to read.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// This file, and no other.
    pub asked: Option<&'a Path>,
    /// Where files are.
    pub places: &'a Places,
    /// Where somebody is working: untrusted files of that project are told of.
    pub folder: Option<&'a Path>,
}

/// All layers in one.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    /// The files that were read, the strongest last.
    pub files: Vec<Arc<Source>>,
    /// The servers, in the order of their names; also those that are left out. Several may have one name: no two
    /// of these are for the same people.
    pub servers: Vec<Server>,
    /// Servers of an earlier layer of which a later one has another for the same people.
    pub overridden: Vec<Server>,
    /// What the daemon itself is told.
    pub settings: Settings,
    /// What is wrong.
    pub diagnoses: Vec<Diagnosis>,
    /// All files that count, or would if they were there, and what was in them.
    pub watched: Vec<(PathBuf, Option<Vec<u8>>)>,
}

impl Loaded {
    /// Whether something does not work.
    pub fn has_errors(&self) -> bool {
        self.diagnoses.iter().any(Diagnosis::is_error)
    }

    /// The servers that those see who work in `folder`: one of each name.
    pub fn seen_from<'a>(&'a self, folder: Option<&'a Path>) -> impl Iterator<Item = &'a Server> {
        let servers = self.servers.iter();
        servers.filter(move |server| server.scope.has(folder))
    }

    /// The servers that are to run.
    pub fn enabled(&self) -> impl Iterator<Item = &Server> {
        self.servers.iter().filter(|server| server.enabled)
    }
}

/// Reads all layers.
pub fn load(request: Request<'_>) -> Loaded {
    let mut loaded = Loaded::default();
    match request.asked {
        Some(path) => {
            if !loaded.file(path, Layer::Asked) {
                let message = format!("cannot read {}: there is no such file", path.display());
                let diagnosis = Diagnosis::error("config::unreadable", message);
                loaded.diagnoses.push(diagnosis.fix("is the path right?"));
            }
        }
        None => {
            for (layer, path) in request.places.files() {
                loaded.file(&path, layer);
            }
            projects(&mut loaded, request);
        }
    }
    loaded.servers.sort_by(|a, b| a.name.cmp(&b.name));
    loaded
}

/// The files of all projects that somebody has trusted, and a word on those that nobody has.
fn projects(loaded: &mut Loaded, request: Request<'_>) {
    let store = request.places.trust_file();
    let trust = store.as_deref().map_or(Ok(Trust::default()), Trust::read);
    let trust = trust.unwrap_or_else(|why| {
        loaded.diagnoses.push(
            Diagnosis::warning(
                "trust::unreadable",
                "it cannot be told which projects are trusted: none is",
            )
            .note(why)
            .fix("remove the file, and `nexusctl trust` each project again"),
        );
        Trust::default()
    });
    let mut paths: Vec<PathBuf> = trust.files.keys().cloned().collect();
    let here = request
        .folder
        .map(|folder| request.places.project_files(folder))
        .unwrap_or_default();
    for path in here {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths.sort_by_key(|path| project_order(path));
    for path in paths {
        let mut content = None;
        match belief::read(&path, Layer::Project) {
            // A project comes and goes.
            Ok(None) => {}
            Ok(Some(bytes)) => {
                match trust.verdict(&path, &bytes) {
                    Verdict::Trusted => loaded.take_project(&path, &bytes),
                    verdict => loaded.diagnoses.push(untrusted(&path, verdict)),
                }
                content = Some(bytes);
            }
            // What somebody else has put there must not keep everything else from working.
            Err(diagnosis) => loaded.diagnoses.push(diagnosis.as_warning()),
        }
        if trust.files.contains_key(&path) {
            loaded.watched.push((path, content));
        }
    }
    if let Some(store) = store {
        let content = belief::read(&store, Layer::User).ok().flatten();
        loaded.watched.push((store, content));
    }
}

fn untrusted(path: &Path, verdict: Verdict) -> Diagnosis {
    let message = match verdict {
        Verdict::Changed => "this project file has changed since it was trusted: it is left out",
        _ => "this project file is not trusted: it is left out",
    };
    Diagnosis::warning("trust::needed", message)
        .in_file(&Source::new(path, Layer::Project, ""))
        .note("it says which programs are run, and may have come with a download")
        .fix(format!(
            "look at it, and then: nexusctl trust {}",
            path.display()
        ))
}

impl Loaded {
    /// Reads a file. Returns whether there is one.
    fn file(&mut self, path: &Path, layer: Layer) -> bool {
        let content = match belief::read(path, layer) {
            Ok(content) => content,
            Err(diagnosis) => {
                self.diagnoses.push(*diagnosis);
                self.watched.push((path.to_owned(), None));
                return true;
            }
        };
        if let Some(bytes) = &content {
            self.take(path, layer, bytes);
        }
        let is_there = content.is_some();
        self.watched.push((path.to_owned(), content));
        is_there
    }

    fn take_project(&mut self, path: &Path, bytes: &[u8]) {
        let before = self.diagnoses.len();
        self.take(path, Layer::Project, bytes);
        // One project must not keep everybody else from working.
        for diagnosis in &mut self.diagnoses[before..] {
            *diagnosis = diagnosis.clone().as_warning();
        }
    }

    fn take(&mut self, path: &Path, layer: Layer, bytes: &[u8]) {
        match Source::of_bytes(path, layer, bytes) {
            Ok(source) => self.add(&source),
            Err(diagnosis) => self.diagnoses.push(*diagnosis),
        }
    }

    /// Takes over what a file says: it wins over what was there.
    pub fn add(&mut self, source: &Arc<Source>) {
        let Document {
            servers,
            settings,
            diagnoses,
        } = read(source, Dialect::default());
        self.files.push(Arc::clone(source));
        self.diagnoses.extend(diagnoses);
        match source.project() {
            None => {
                self.settings.log = settings.log.or(self.settings.log.take());
                self.settings.threads = settings.threads.or(self.settings.threads);
                self.settings.http = settings.http.or(self.settings.http);
                for profile in settings.profiles {
                    self.settings
                        .profiles
                        .retain(|old| old.name != profile.name);
                    self.settings.profiles.push(profile);
                }
                self.settings.policy.add(settings.policy);
                for header in settings.headers {
                    self.add_header(header);
                }
            }
            Some(_) if settings != Settings::default() => self.diagnoses.push(
                Diagnosis::warning(
                    "config::unused",
                    "\"daemon\", \"profiles\" and \"policy\" are passed over: they are not a project's to say",
                )
                .in_file(source)
                .fix("what the daemon is told stands in your own nexus.toml"),
            ),
            Some(_) => {}
        }
        for server in servers {
            self.add_server(server);
        }
    }

    /// What is sent to all servers that are reached over HTTP.
    fn add_header(&mut self, header: (String, Setting, Origin)) {
        let all = &mut self.settings.headers;
        all.retain(|(name, _, _)| !name.eq_ignore_ascii_case(&header.0));
        all.push(header);
    }

    /// It takes the place of one of the same name that is for the same people, and hides one that is for more.
    fn add_server(&mut self, server: Server) {
        let folder = server.scope.folder.as_deref();
        let mut namesakes = self.servers.iter_mut().filter(|s| s.name == server.name);
        let same = namesakes.find(|other| other.scope.folder.as_deref() == folder);
        if let Some(other) = same {
            self.overridden.push(std::mem::replace(other, server));
            return;
        }
        if let Some(folder) = folder {
            let namesakes = self.servers.iter_mut().filter(|s| s.name == server.name);
            for other in namesakes.filter(|other| other.scope.reaches(Some(folder))) {
                other.scope.except.push(folder.to_owned());
            }
        }
        self.servers.push(server);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, Layer, &str)]) -> Loaded {
        let mut loaded = Loaded::default();
        for (path, layer, text) in files {
            loaded.add(&Source::new(*path, *layer, *text));
        }
        loaded
    }

    fn seen(loaded: &Loaded, folder: &str) -> Vec<String> {
        let servers = loaded.seen_from(Some(Path::new(folder)));
        let line = |server: &Server| {
            let file = server.origin.source.path.display();
            format!(
                "{} of {file}{}",
                server.name,
                if server.enabled { "" } else { ", off" }
            )
        };
        servers.map(line).collect()
    }

    #[test]
    fn a_project_has_its_own_and_hides_what_others_have_only_in_itself() {
        let loaded = of(&[
            (
                "/u/mcp.json",
                Layer::User,
                r#"{"servers": {"x": {"command": "u"}, "y": {"command": "u"}}}"#,
            ),
            (
                "/a/.mcp.json",
                Layer::Project,
                r#"{"mcpServers": {"x": {"command": "a"}, "z": {"command": "a"}}}"#,
            ),
            (
                "/b/.mcp.json",
                Layer::Project,
                r#"{"mcpServers": {"x": {"command": "b"}, "y": {"disabled": true}}}"#,
            ),
            (
                "/a/.nexus/mcp.json",
                Layer::Project,
                r#"{"mcpServers": {"z": {"command": "a2"}}}"#,
            ),
            (
                "/a/sub/.mcp.json",
                Layer::Project,
                r#"{"mcpServers": {"x": {"disabled": true}}}"#,
            ),
        ]);
        let sorted = |folder| {
            let mut seen = seen(&loaded, folder);
            seen.sort();
            seen
        };
        assert_eq!(
            sorted("/elsewhere"),
            ["x of /u/mcp.json", "y of /u/mcp.json"]
        );
        assert_eq!(
            sorted("/a"),
            [
                "x of /a/.mcp.json",
                "y of /u/mcp.json",
                "z of /a/.nexus/mcp.json"
            ]
        );
        assert_eq!(
            sorted("/a/sub/deep"),
            [
                "x of /a/sub/.mcp.json, off",
                "y of /u/mcp.json",
                "z of /a/.nexus/mcp.json"
            ]
        );
        assert_eq!(
            sorted("/b"),
            ["x of /b/.mcp.json", "y of /b/.mcp.json, off"]
        );
        assert_eq!(loaded.overridden.len(), 1);
    }

    #[test]
    fn a_project_does_not_tell_the_daemon_what_to_do() {
        let loaded = of(&[
            ("/u/nexus.toml", Layer::User, "[daemon]\nlog = \"info\"\n"),
            (
                "/a/.nexus/nexus.toml",
                Layer::Project,
                "[daemon]\nlog = \"trace\"\nthreads = 9\n",
            ),
        ]);
        assert_eq!(loaded.settings.log.as_deref(), Some("info"));
        assert_eq!(loaded.settings.threads, None);
        assert_eq!(loaded.diagnoses.len(), 1);
        assert_eq!(loaded.diagnoses[0].code, "config::unused");
    }
}
