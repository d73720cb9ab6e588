//! What is known of a server and its lists, whichever of its processes told it, also while none runs.

use crate::mcp::{
    handshake::{Listed, ServerInfo},
    lists::{Kind, List},
};
use nexus_proto::text;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{sync::watch, time::Instant};

/// However short a server says its lists are good for, they are not asked for more often than this.
const FRESH: Duration = Duration::from_secs(1);

/// A list that could not be had is asked for again after this long, if somebody looks.
const PAUSE: Duration = Duration::from_secs(30);

/// What a server said of itself, and its lists.
#[derive(Debug, Clone, Default)]
pub struct Lists {
    /// What it said of itself.
    pub info: Option<Arc<ServerInfo>>,
    /// Its last process did not survive the first question of the modern era: the next is not asked it.
    pub greet_as_legacy: bool,
    /// It has put questions to its client.
    pub asks: bool,
    known: [Known; 4],
}

/// One list, as far as it is known.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// `None` until it has been listed once.
    pub list: Option<Arc<List>>,
    /// Why it could not be listed.
    pub error: Option<String>,
    /// When it is to be asked for again; never, where the server tells of changes.
    stale_at: Option<Instant>,
}

impl Known {
    /// Whether it has been kept for longer than the server says it is good for.
    pub fn is_stale(&self) -> bool {
        self.stale_at.is_some_and(|at| at <= Instant::now())
    }
}

impl Lists {
    /// One of its lists.
    pub fn of(&self, kind: Kind) -> &Known {
        &self.known[kind as usize]
    }

    /// Takes over a list that was kept.
    pub fn put(&mut self, kind: Kind, list: List) {
        self.known[kind as usize].list = Some(Arc::new(list));
    }

    /// Whether it is modern, if that is known.
    pub fn was_modern(&self) -> Option<bool> {
        if self.greet_as_legacy {
            return Some(false);
        }
        self.info.as_ref().map(|info| info.revision.is_modern())
    }

    /// Takes down what a process has listed, or why it could not. Returns whether that is news.
    pub fn note(&mut self, listed: Listed) -> bool {
        let known = &mut self.known[listed.kind as usize];
        match listed.list {
            Ok((list, ttl)) => {
                known.stale_at = ttl.and_then(|ttl| Instant::now().checked_add(ttl.max(FRESH)));
                let mended = known.error.take().is_some();
                // What is the same stays the same: whoever compares need not look again.
                if known.list.as_deref() == Some(&list) {
                    return mended;
                }
                known.list = Some(Arc::new(list));
            }
            Err(error) => {
                // An old list is better than none; a server that never gave one has none.
                known.list.get_or_insert_default();
                known.error = Some(error);
                // Whoever could not give it just now is not pressed.
                known.stale_at = known.stale_at.map(|_| Instant::now() + PAUSE);
            }
        }
        true
    }
}

/// What becomes of what a server tells before anybody can read it.
#[derive(Debug, Clone, Copy)]
pub struct Wash {
    /// Of a list.
    pub list: fn(Kind, List) -> List,
    /// Of what it says of itself.
    pub info: fn(ServerInfo) -> ServerInfo,
}

/// Where the processes of one server write what they tell, for everybody to read.
#[derive(Debug)]
pub struct ListBoard {
    wash: Wash,
    lists: watch::Sender<Lists>,
    asks: Arc<AtomicBool>,
}

impl ListBoard {
    /// What was known before. Whether a server asks is known of all its processes at once.
    pub fn new(lists: Lists, asks: Arc<AtomicBool>, wash: Wash) -> Self {
        asks.fetch_or(lists.asks, Ordering::Relaxed);
        Self {
            wash,
            asks,
            lists: watch::channel(lists).0,
        }
    }

    /// What is known now. Not to be held across an await.
    pub fn current(&self) -> watch::Ref<'_, Lists> {
        self.lists.borrow()
    }

    /// What is known now, to keep.
    pub fn now(&self) -> Lists {
        Lists {
            asks: self.asks.load(Ordering::Relaxed),
            ..self.current().clone()
        }
    }

    /// A way to wait for changes.
    pub fn subscribe(&self) -> watch::Receiver<Lists> {
        self.lists.subscribe()
    }

    /// Whether the server has ever put a question to its client.
    pub fn asks(&self) -> &Arc<AtomicBool> {
        &self.asks
    }

    /// Another program: what was known says nothing about it.
    pub fn replace(&self, lists: Lists) {
        self.asks.fetch_or(lists.asks, Ordering::Relaxed);
        self.lists.send_replace(lists);
    }

    /// Takes down that the server asks, once it has.
    pub(super) fn note_asks(&self) {
        let asks = self.asks.load(Ordering::Relaxed);
        self.lists
            .send_if_modified(|lists| asks != std::mem::replace(&mut lists.asks, asks));
    }

    /// Whether the next process is to be greeted as an old one, whatever is known of it.
    pub(super) fn greet_as_legacy(&self, so: bool) {
        self.lists
            .send_if_modified(|lists| so != std::mem::replace(&mut lists.greet_as_legacy, so));
    }

    /// A process has introduced itself.
    pub(super) fn introduce(&self, info: ServerInfo) {
        let info = (self.wash.info)(info);
        self.lists.send_if_modified(|lists| {
            lists.greet_as_legacy = false;
            if info.revision.is_modern() {
                // What it asks now, it asks in its answers.
                self.asks.store(false, Ordering::Relaxed);
            }
            let news = lists.info.as_deref() != Some(&info);
            if news {
                lists.info = Some(Arc::new(info));
            }
            news
        });
    }

    /// A process has given a list, or could not.
    pub(super) fn list(&self, listed: Listed) {
        let Listed { kind, list } = listed;
        let list = match list {
            Ok((list, ttl)) => Ok(((self.wash.list)(kind, list), ttl)),
            Err(error) => Err(text::clean(&error).into_owned()),
        };
        let listed = Listed { kind, list };
        self.lists.send_if_modified(|lists| lists.note(listed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AS_IT_IS: Wash = Wash {
        list: |_, list| list,
        info: |info| info,
    };

    fn listed(list: Result<List, String>, ttl: Option<Duration>) -> Listed {
        Listed {
            kind: Kind::Tools,
            list: list.map(|list| (list, ttl)),
        }
    }

    #[test]
    fn an_old_list_is_better_than_none() {
        let board = ListBoard::new(Lists::default(), Arc::default(), AS_IT_IS);
        let tools = || board.current().of(Kind::Tools).clone();
        board.list(listed(Err("no".into()), None));
        assert!(tools().list.unwrap().entries.is_empty());
        let good = List {
            warnings: vec!["odd".into()],
            ..List::default()
        };
        board.list(listed(Ok(good.clone()), None));
        board.list(listed(Err("no".into()), None));
        assert_eq!(*tools().list.unwrap(), good);
        assert!(tools().error.is_some());
        assert!(board.current().of(Kind::Prompts).list.is_none());
    }

    #[test]
    fn the_same_list_again_is_no_news() {
        let board = ListBoard::new(Lists::default(), Arc::default(), AS_IT_IS);
        let mut news = board.subscribe();
        board.list(listed(Ok(List::default()), None));
        assert!(news.has_changed().unwrap());
        news.mark_unchanged();
        board.list(listed(Ok(List::default()), None));
        assert!(!news.has_changed().unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_is_stale_when_its_server_says_so() {
        let board = ListBoard::new(Lists::default(), Arc::default(), AS_IT_IS);
        let stale = || board.current().of(Kind::Tools).is_stale();
        board.list(listed(Ok(List::default()), None));
        tokio::time::advance(Duration::from_secs(86_400)).await;
        assert!(!stale());
        board.list(listed(Ok(List::default()), Some(Duration::from_secs(5))));
        tokio::time::advance(Duration::from_secs(4)).await;
        assert!(!stale());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(stale());
        board.list(listed(Ok(List::default()), Some(Duration::MAX)));
        assert!(!stale());
    }
}
