//! What belongs to one stdio stream, one HTTP session, or one modern HTTP request.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

#[cfg(feature = "http")]
use crate::out::Out;

/// The requests under way on one stream, by their ids as they were written.
pub(crate) struct Session {
    number: u64,
    /// The legacy revision agreed on, once `initialize` is answered.
    revision: Mutex<Option<&'static str>>,
    /// The rank of the least log messages that a legacy client wants.
    level: AtomicUsize,
    /// What a legacy client said at `initialize` that it can be asked.
    capabilities: Mutex<Value>,
    /// Nothing once the session has ended: what begins then is cancelled already.
    running: Mutex<Option<HashMap<String, Running>>>,
    /// Which request each question of ours belongs to.
    questions: Mutex<HashMap<u64, String>>,
    /// Where everything goes that the server says, if there is one place for it.
    #[cfg(feature = "http")]
    out: Mutex<Option<Out>>,
}

/// A request under way.
struct Running {
    /// Passes on the client's answers to questions; dropping it is the cancellation.
    answers: Sender<Answer>,
    nonce: Option<String>,
}

/// A client's answer to a question.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) question: u64,
    /// As `{"result":…}` or `{"error":…}`.
    pub(crate) text: String,
}

impl Session {
    pub(crate) fn new() -> Session {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Session {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            revision: Mutex::default(),
            level: AtomicUsize::new(0),
            capabilities: Mutex::default(),
            running: Mutex::new(Some(HashMap::new())),
            questions: Mutex::default(),
            #[cfg(feature = "http")]
            out: Mutex::default(),
        }
    }

    /// Everything that is said in it goes there.
    #[cfg(feature = "http")]
    pub(crate) fn speak_through(&self, out: &Out) {
        *locked(&self.out) = Some(out.clone());
    }

    /// Where everything goes that is said in it.
    #[cfg(feature = "http")]
    pub(crate) fn out(&self) -> Option<Out> {
        locked(&self.out).clone()
    }

    /// Tells sessions of one process apart.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn is_initialized(&self) -> bool {
        self.revision().is_some()
    }

    pub(crate) fn revision(&self) -> Option<&'static str> {
        *locked(&self.revision)
    }

    pub(crate) fn set_revision(&self, revision: &'static str) {
        *locked(&self.revision) = Some(revision);
    }

    pub(crate) fn capabilities(&self) -> Value {
        locked(&self.capabilities).clone()
    }

    pub(crate) fn set_capabilities(&self, capabilities: Value) {
        *locked(&self.capabilities) = capabilities;
    }

    pub(crate) fn level(&self) -> usize {
        self.level.load(Ordering::Relaxed)
    }

    pub(crate) fn set_level(&self, rank: usize) {
        self.level.store(rank, Ordering::Relaxed);
    }

    /// Takes note of a request that will take long; nothing if its id is in use.
    pub(crate) fn begin(&self, id: &str, nonce: Option<&str>) -> Option<Receiver<Answer>> {
        let (answers, receiver) = channel();
        if let Some(running) = locked(&self.running).as_mut() {
            if running.contains_key(id) {
                return None;
            }
            let nonce = nonce.map(str::to_owned);
            running.insert(id.to_owned(), Running { answers, nonce });
        }
        Some(receiver)
    }

    /// Ends a request; false if it was cancelled before, and so must not be answered.
    pub(crate) fn finish(&self, id: &str) -> bool {
        self.cancel(id).is_some()
    }

    /// Cancels a request, and returns its nonce, if it runs.
    pub(crate) fn cancel(&self, id: &str) -> Option<Option<String>> {
        let request = locked(&self.running).as_mut()?.remove(id)?;
        Some(request.nonce)
    }

    /// Cancels all that runs and all that may come; returns the nonces of what ran.
    #[cfg(feature = "http")]
    pub(crate) fn end(&self) -> Vec<Option<String>> {
        let running = locked(&self.running).take().unwrap_or_default();
        running.into_values().map(|request| request.nonce).collect()
    }

    /// Takes note of a question that a request has for the client.
    pub(crate) fn ask(&self, question: u64, request: &str) {
        locked(&self.questions).insert(question, request.to_owned());
    }

    /// Passes an answer on to the request that asked, if it still runs.
    pub(crate) fn answered(&self, question: &str, text: String) {
        if let Ok(question) = question.parse()
            && let Some(request) = locked(&self.questions).remove(&question)
            && let Some(running) = locked(&self.running)
                .as_ref()
                .and_then(|running| running.get(&request))
        {
            let _ = running.answers.send(Answer { question, text });
        }
    }
}

/// Locks; a panic elsewhere leaves these maps whole.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::TryRecvError;

    #[test]
    fn a_cancelled_request_is_told_and_must_not_be_answered() {
        let session = Session::new();
        let inbox = session.begin("7", None).unwrap();
        assert_eq!(inbox.try_recv(), Err(TryRecvError::Empty));
        session.finish("7");
        assert_eq!(inbox.try_recv(), Err(TryRecvError::Disconnected));
        assert!(!session.finish("7"));
    }

    #[cfg(feature = "http")]
    #[test]
    fn what_begins_after_the_end_is_cancelled_already() {
        let session = Session::new();
        let before = session.begin("1", None).unwrap();
        session.end();
        let after = session.begin("2", None).unwrap();
        assert_eq!(before.try_recv(), Err(TryRecvError::Disconnected));
        assert_eq!(after.try_recv(), Err(TryRecvError::Disconnected));
        assert!(!session.finish("1") && !session.finish("2"));
    }

    #[test]
    fn a_number_and_a_string_are_two_ids() {
        let session = Session::new();
        let number = session.begin("7", None).unwrap();
        let _string = session.begin("\"7\"", None).unwrap();
        session.finish("\"7\"");
        assert_eq!(number.try_recv(), Err(TryRecvError::Empty));
        assert!(session.begin("7", None).is_none(), "in use");
        assert!(session.finish("7"));
        assert!(session.begin("7", None).is_some());
    }

    #[test]
    fn an_answer_reaches_the_request_that_asked() {
        let session = Session::new();
        let (first, second) = (
            session.begin("1", None).unwrap(),
            session.begin("2", None).unwrap(),
        );
        session.ask(10, "1");
        session.ask(11, "2");
        session.answered("11", "b".to_owned());
        session.answered("11", "again".to_owned());
        session.answered("99", "nobody's".to_owned());
        session.answered("10", "a".to_owned());
        for (inbox, question, text) in [(first, 10, "a"), (second, 11, "b")] {
            let text = text.to_owned();
            assert_eq!(inbox.try_recv(), Ok(Answer { question, text }));
            assert_eq!(inbox.try_recv(), Err(TryRecvError::Empty));
        }
    }
}
