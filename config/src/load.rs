//! Reads all layers into one.

use crate::{
    belief,
    diagnosis::Diagnosis,
    layers::Places,
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
    /// The servers, in the order of their names; also those that are left out.
    pub servers: Vec<Server>,
    /// Servers of an earlier layer of which a later one has another.
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
    // Ancestors before what is in them.
    paths.sort_by_key(|path| path.components().count());
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
        self.settings.log = settings.log.or(self.settings.log.take());
        self.settings.threads = settings.threads.or(self.settings.threads);
        self.settings.http = settings.http.or(self.settings.http);
        self.global_headers(source, settings.headers);
        for server in servers {
            match self
                .servers
                .iter_mut()
                .find(|other| other.name == server.name)
            {
                Some(other) => {
                    let loser = std::mem::replace(other, server);
                    clash(&mut self.diagnoses, other, &loser);
                    self.overridden.push(loser);
                }
                None => self.servers.push(server),
            }
        }
    }
}

impl Loaded {
    /// What goes to all servers is not for one project to say.
    fn global_headers(&mut self, source: &Arc<Source>, headers: Vec<(String, Setting, Origin)>) {
        let Some((_, _, origin)) = headers.first() else {
            return;
        };
        if source.layer == Layer::Project {
            let message = "the headers of a project are not sent to all servers: passed over";
            self.diagnoses.push(
                Diagnosis::warning("config::unused", message)
                    .in_file(source)
                    .at(origin.span.clone(), "these")
                    .fix("give each server its own \"headers\""),
            );
            return;
        }
        for header in headers {
            let all = &mut self.settings.headers;
            all.retain(|(name, _, _)| !name.eq_ignore_ascii_case(&header.0));
            all.push(header);
        }
    }
}

/// Two projects do not know of each other: that one hides the other's server is worth a word.
fn clash(diagnoses: &mut Vec<Diagnosis>, winner: &Server, loser: &Server) {
    let (mine, theirs) = (&winner.origin.source, &loser.origin.source);
    let both_projects = mine.layer == Layer::Project && theirs.layer == Layer::Project;
    let around = theirs.path.parent().and_then(crate::layers::workspace_of);
    let is_inside = around.is_some_and(|folder| mine.path.starts_with(folder));
    if both_projects && !is_inside {
        diagnoses.push(
            Diagnosis::warning(
                "config::clash",
                format!(
                    "two projects have a server {:?}: this one is used",
                    winner.name
                ),
            )
            .in_file(mine)
            .of_server(&winner.name)
            .at(winner.origin.span.clone(), "this one")
            .note(format!("the other is in {}", theirs.path.display()))
            .fix("rename one of them"),
        );
    }
}
