//! An agent: one client connection, what it has said of itself, and what it is asked.

mod answers;
mod attachment;
mod folder;
mod programs;
mod registry;
mod standing;

pub use answers::Answers;
pub use attachment::{Attachment, Hello, Question, Refusal, Root, ToAgent};
pub use folder::folder;
pub use programs::Programs;
pub use registry::{Presence, Registry};
pub use standing::{Role, Standing, is_operator};

use bytes::Bytes;
use nexus_proto::{name::passes_on, text};
use parking_lot::RwLock;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering},
    },
};
use tokio::sync::watch;

/// No name is longer.
const MAX_NAME: usize = 128;

/// What an agent declares that has not said what it can be asked.
const NOTHING: Bytes = Bytes::from_static(b"{}");

/// What a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    /// It speaks gRPC.
    Grpc,
    /// It speaks MCP: it is an agent's.
    Mcp,
}

/// One client. What is its own ends when it leaves.
#[derive(Debug)]
pub struct Agent {
    id: u64,
    pid: Option<u32>,
    speaks: Speaks,
    programs: OnceLock<Programs>,
    /// What it calls itself; empty until it does.
    name: RwLock<String>,
    /// It says that it is an agent, whatever its program is.
    is_agent: AtomicBool,
    present: watch::Sender<()>,
    attachment: RwLock<Option<Arc<Attachment>>>,
    /// What it says with each request that it can be asked, if it says it so.
    declared: AtomicU8,
    /// How many questions of which servers it has been asked and has not answered.
    questions: watch::Sender<BTreeMap<String, u32>>,
    project: RwLock<Option<Project>>,
    standing: RwLock<Option<Known>>,
    in_flight: AtomicU32,
    calls: AtomicU64,
}

impl Agent {
    /// A client that has just come, and its process where that is known.
    pub fn new(pid: Option<u32>, speaks: Speaks) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self {
            id: LAST.fetch_add(1, Ordering::Relaxed) + 1,
            pid,
            speaks,
            programs: OnceLock::new(),
            name: RwLock::default(),
            is_agent: AtomicBool::new(speaks == Speaks::Mcp),
            present: watch::channel(()).0,
            attachment: RwLock::default(),
            declared: AtomicU8::new(0),
            questions: watch::Sender::default(),
            project: RwLock::default(),
            standing: RwLock::default(),
            in_flight: AtomicU32::new(0),
            calls: AtomicU64::new(0),
        }
    }

    /// Its number. No two clients of one daemon have the same.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Its process.
    pub fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// What it speaks.
    pub fn speaks(&self) -> Speaks {
        self.speaks
    }

    /// Its program, and those that started it. They are looked at once: later they may be others.
    pub fn programs(&self) -> &Programs {
        let look = || self.pid.map(Programs::of).unwrap_or_default();
        self.programs.get_or_init(look)
    }

    /// It calls itself so.
    pub fn called(&self, name: &str) {
        if *self.name.read() == name {
            return;
        }
        // It is shown to people who decide by it.
        let name = text::clean(name).replace(['\n', '\t'], " ");
        let name: String = name.chars().take(MAX_NAME).collect();
        if *self.name.read() != name {
            *self.name.write() = name;
        }
    }

    /// It says that it is an agent of this name, which may be empty.
    pub fn is_agent_called(&self, name: &str) {
        self.is_agent.store(true, Ordering::Relaxed);
        self.called(name);
    }

    /// Whether it is an agent, whatever its program is: it says so, or it speaks as only agents do.
    pub fn is_agent(&self) -> bool {
        self.is_agent.load(Ordering::Relaxed)
    }

    /// Who it is to us, who works in this folder: found out once for each `edition` of the rules, and anew when it
    /// says something else of itself.
    pub fn standing(
        &self,
        edition: u64,
        project: Option<&Path>,
        find: impl FnOnce() -> Standing,
    ) -> Arc<Standing> {
        let is_agent = self.is_agent();
        if let Some(known) = &*self.standing.read()
            && (known.edition, known.is_agent) == (edition, is_agent)
            && known.project.as_deref() == project
            && known.name == *self.name.read()
        {
            return Arc::clone(&known.standing);
        }
        let name = self.name();
        let standing = Arc::new(find());
        *self.standing.write() = Some(Known {
            edition,
            is_agent,
            name,
            project: project.map(Path::to_owned),
            standing: Arc::clone(&standing),
        });
        standing
    }

    /// What it calls itself; empty if it has not said it.
    pub fn name(&self) -> String {
        self.name.read().clone()
    }

    /// What people call it: by its own word, or else by its program.
    pub fn label(&self) -> String {
        let name = self.name();
        if !name.is_empty() {
            return name;
        }
        let programs = self.programs();
        let generations = std::iter::once(&programs.own).chain(&programs.starters);
        let file = |names: &Vec<String>| names.get(1).cloned();
        let told = match self.speaks {
            Speaks::Grpc => programs.own.get(1).cloned(),
            Speaks::Mcp => generations.filter_map(file).find(|name| !passes_on(name)),
        };
        told.unwrap_or_else(|| format!("agent {}", self.id))
    }

    /// Done when it has gone.
    pub fn gone(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut present = self.present.subscribe();
        // Nothing is ever sent: the only change is the end.
        async move { while present.changed().await.is_ok() {} }
    }

    /// What it has said of itself, if it has.
    pub fn attachment(&self) -> Option<Arc<Attachment>> {
        self.attachment.read().clone()
    }

    /// It has said who it is. What it said before is no longer so.
    pub fn attach(&self, attachment: Arc<Attachment>) {
        if !attachment.hello.name.is_empty() {
            self.called(&attachment.hello.name);
        }
        *self.attachment.write() = Some(attachment);
    }

    /// It can no longer be asked; unless it has attached itself once more meanwhile.
    pub fn detach(&self, attachment: &Arc<Attachment>) {
        let mut current = self.attachment.write();
        if current
            .as_ref()
            .is_some_and(|it| Arc::ptr_eq(it, attachment))
        {
            *current = None;
        }
        drop(current);
        attachment.close();
    }

    /// It says with a request that it can be asked this.
    pub fn declare(&self, answers: Answers) {
        self.declared.store(answers.bits(), Ordering::Relaxed);
    }

    /// What a process of its own is told that it can be asked: the same for all of its requests.
    pub fn own_answers(&self) -> Answers {
        match self.attachment() {
            Some(attachment) => attachment.hello.answers,
            None => Answers::of_bits(self.declared.load(Ordering::Relaxed)),
        }
    }

    /// What it can be asked.
    pub fn answers(&self) -> Answers {
        let attachment = self.attachment.read();
        attachment
            .as_ref()
            .map_or(Answers::NONE, |it| it.hello.answers)
    }

    /// The same as a client declares it: a JSON object.
    pub fn declaration(&self) -> Bytes {
        let attachment = self.attachment.read();
        attachment
            .as_ref()
            .map_or(NOTHING, |it| it.declaration.clone())
    }

    /// Puts a question of a server's to it. Dropping the future takes the question back.
    pub async fn ask(&self, question: Question) -> Result<Bytes, Refusal> {
        let Some(attachment) = self.attachment() else {
            return Err(Refusal::cannot(&question.method));
        };
        let _open = Open::new(&self.questions, &question.server);
        attachment.ask(question).await
    }

    /// What it was sent to a page for is done.
    pub fn elicitation_complete(&self, server: &str, id: &str) {
        if let Some(attachment) = self.attachment() {
            attachment.elicitation_complete(server, id);
        }
    }

    /// How many questions it has been asked and has not answered.
    pub fn questions(&self) -> u32 {
        self.questions.borrow().values().sum()
    }

    /// Whether it has been asked something by this server, and has not answered.
    pub fn is_asked_by(&self, server: &str) -> bool {
        self.questions.borrow().contains_key(server)
    }

    /// A way to wait for changes of that, by the names of servers.
    pub fn watch_questions(&self) -> watch::Receiver<BTreeMap<String, u32>> {
        self.questions.subscribe()
    }

    /// The folder that it works in, as it last said.
    pub fn project(&self) -> Option<PathBuf> {
        let project = self.project.read();
        project.as_ref().map(|project| project.real.clone())
    }

    /// It says which folder it works in. Returns its one name: links lead to it.
    pub fn works_in(&self, said: PathBuf) -> PathBuf {
        if let Some(known) = &*self.project.read()
            && known.said == said
        {
            return known.real.clone();
        }
        let real = said.canonicalize().unwrap_or_else(|_| said.clone());
        *self.project.write() = Some(Project {
            said,
            real: real.clone(),
        });
        real
    }

    /// One more call of its, until the guard is dropped.
    pub fn begin_call(self: &Arc<Self>) -> CallGuard {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        CallGuard(Arc::clone(self))
    }

    /// Its calls that are under way, and its calls so far.
    pub fn counts(&self) -> (u32, u64) {
        (
            self.in_flight.load(Ordering::Relaxed),
            self.calls.load(Ordering::Relaxed),
        )
    }
}

impl Default for Agent {
    fn default() -> Self {
        Self::new(None, Speaks::Grpc)
    }
}

/// Who an agent was found to be, and by what.
#[derive(Debug)]
struct Known {
    edition: u64,
    is_agent: bool,
    name: String,
    project: Option<PathBuf>,
    standing: Arc<Standing>,
}

/// A folder that an agent works in.
#[derive(Debug)]
struct Project {
    said: PathBuf,
    real: PathBuf,
}

/// One call of an agent's that is under way.
#[derive(Debug)]
pub struct CallGuard(Arc<Agent>);

impl Drop for CallGuard {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One question that is open.
struct Open<'a> {
    questions: &'a watch::Sender<BTreeMap<String, u32>>,
    server: String,
}

impl<'a> Open<'a> {
    fn new(questions: &'a watch::Sender<BTreeMap<String, u32>>, server: &str) -> Self {
        let server = server.to_owned();
        questions.send_modify(|open| *open.entry(server.clone()).or_default() += 1);
        Self { questions, server }
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.questions
            .send_modify(|open| match open.get_mut(&self.server) {
                Some(count) if *count > 1 => *count -= 1,
                _ => drop(open.remove(&self.server)),
            });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_agent_is_gone_when_nobody_holds_it() {
        let agent = Arc::new(Agent::default());
        let mut gone = std::pin::pin!(agent.gone());
        let held = Arc::clone(&agent);
        drop(agent);
        assert!(futures_util::poll!(&mut gone).is_pending());
        drop(held);
        gone.await;
    }

    #[tokio::test]
    async fn whoever_has_not_said_what_it_can_be_asked_is_asked_nothing() {
        let agent = Agent::default();
        assert_eq!(agent.declaration(), "{}");
        let question = Question {
            server: "s".into(),
            method: "roots/list".into(),
            params: Bytes::new(),
        };
        assert_eq!(agent.ask(question).await.unwrap_err().code, -32601);
        assert_eq!(agent.questions(), 0);
    }
}
