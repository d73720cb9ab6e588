//! All sessions of the legacy era.

use super::{
    Refusal, plain,
    session::{Id, Session},
};
use crate::{api::Context, face::mcp::Introduction, pool::key::Credential};
use http::StatusCode;
use parking_lot::Mutex;
use std::{
    cmp::Reverse,
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

/// How many there may be.
const MAX: usize = 256;

/// A session that nobody has used for so long is put away. It begins anew when its client comes back.
const IDLE: Duration = Duration::from_secs(30 * 60);

/// How many of those that were ended are remembered.
const MAX_ENDED: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<All>);

#[derive(Debug, Default)]
struct All {
    sessions: HashMap<Id, Arc<Session>>,
    /// Their clients have ended them: they do not begin anew.
    ended: VecDeque<Id>,
}

impl Sessions {
    /// Keeps a session under its id.
    pub(super) fn keep(&self, id: Id, session: Arc<Session>) -> Result<(), Refusal> {
        let mut all = self.0.lock();
        let put_away = all.make_room()?;
        all.sessions.insert(id, session);
        drop(all);
        // What ends with them takes a while, and others are waiting.
        drop(put_away);
        Ok(())
    }

    /// The session of that id. One that we do not know may be of an earlier daemon: it begins anew.
    pub(super) fn find(
        &self,
        id: &str,
        context: &Arc<Context>,
        introduction: Introduction,
        pid: Option<u32>,
    ) -> Result<Option<Arc<Session>>, Refusal> {
        let Some((id, answers, name)) = Id::read(id) else {
            return Ok(None);
        };
        let mut all = self.0.lock();
        if let Some(session) = all.sessions.get(&id) {
            // Whoever shows another token has no part in it.
            let is_theirs = session.is_of(introduction.credential.as_ref());
            return Ok(is_theirs.then(|| Arc::clone(session)));
        }
        if all.ended.contains(&id) {
            return Ok(None);
        }
        let put_away = all.make_room()?;
        let session = Session::new(context, introduction, pid);
        session.client().greet(name, String::new(), answers);
        all.sessions.insert(id, Arc::clone(&session));
        drop(all);
        drop(put_away);
        Ok(Some(session))
    }

    /// Its client has ended it. False when there is none.
    pub(super) fn end(&self, id: &str, credential: Option<&Credential>) -> bool {
        let Some((id, ..)) = Id::read(id) else {
            return false;
        };
        let mut all = self.0.lock();
        let is_theirs = |session: &Arc<Session>| session.is_of(credential);
        if all.ended.contains(&id) || !all.sessions.get(&id).is_none_or(is_theirs) {
            return false;
        }
        let session = all.sessions.remove(&id);
        all.ended.push_back(id);
        if all.ended.len() > MAX_ENDED {
            all.ended.pop_front();
        }
        drop(all);
        // It may be held by answers that are under way: they end now.
        if let Some(session) = session {
            session.end();
        }
        true
    }
}

impl All {
    /// Takes out what nobody uses: all that has been idle for long, and the idlest if there are too many.
    fn make_room(&mut self) -> Result<Vec<Arc<Session>>, Refusal> {
        let mut idle: Vec<(Duration, Id)> = self
            .sessions
            .iter()
            .filter_map(|(id, session)| Some((session.idle()?, id.clone())))
            .collect();
        idle.sort_by_key(|(idle, _)| Reverse(*idle));
        let too_many = (self.sessions.len() + 1).saturating_sub(MAX);
        if too_many > idle.len() {
            let text = format!("there are {MAX} sessions, and all are in use");
            return Err(plain(StatusCode::SERVICE_UNAVAILABLE, &text));
        }
        let old = idle.iter().take_while(|(idle, _)| *idle >= IDLE).count();
        idle.truncate(old.max(too_many));
        let taken = idle
            .into_iter()
            .filter_map(|(_, id)| self.sessions.remove(&id));
        Ok(taken.collect())
    }
}
