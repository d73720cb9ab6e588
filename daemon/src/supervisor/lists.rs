//! What is known of a server's tools, whichever of its processes told it, also while none runs.

use crate::mcp::handshake::{ServerInfo, ToolList};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use tokio::sync::watch;

/// What a server said of itself, and its tools.
#[derive(Debug, Clone, Default)]
pub struct Lists {
    /// What it said of itself.
    pub info: Option<Arc<ServerInfo>>,
    /// Its tools. `None` until they have been listed once.
    pub tools: Option<Arc<ToolList>>,
    /// Why its tools could not be listed.
    pub error: Option<String>,
    /// It has put questions to its client.
    pub asks: bool,
}

/// Where the processes of one server write what they tell, for everybody to read.
#[derive(Debug)]
pub struct ListBoard {
    lists: watch::Sender<Lists>,
    asks: Arc<AtomicBool>,
}

impl ListBoard {
    /// What was known before.
    pub fn new(lists: Lists) -> Self {
        Self {
            asks: Arc::new(AtomicBool::new(lists.asks)),
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
        self.asks.store(lists.asks, Ordering::Relaxed);
        self.lists.send_replace(lists);
    }

    /// Takes down that the server asks, once it has.
    pub(super) fn note_asks(&self) {
        let asks = self.asks.load(Ordering::Relaxed);
        self.lists
            .send_if_modified(|lists| asks != std::mem::replace(&mut lists.asks, asks));
    }

    /// A process has introduced itself.
    pub(super) fn introduce(&self, info: ServerInfo) {
        self.lists.send_if_modified(|lists| {
            let news = lists.info.as_deref() != Some(&info);
            if news {
                lists.info = Some(Arc::new(info));
            }
            news
        });
    }

    /// A process has listed its tools, or could not.
    pub(super) fn list(&self, tools: Result<ToolList, String>) {
        self.lists.send_if_modified(|lists| match tools {
            // What is the same stays the same: whoever compares need not look again.
            Ok(tools) if lists.tools.as_deref() == Some(&tools) => lists.error.take().is_some(),
            Ok(tools) => {
                lists.tools = Some(Arc::new(tools));
                lists.error = None;
                true
            }
            Err(error) => {
                // An old list is better than none; a server that never gave one has none.
                lists.tools.get_or_insert_default();
                lists.error = Some(error);
                true
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_list_is_better_than_none() {
        let board = ListBoard::new(Lists::default());
        board.list(Err("no".into()));
        assert!(board.current().tools.as_ref().unwrap().tools.is_empty());
        let good = ToolList {
            warnings: vec!["odd".into()],
            ..ToolList::default()
        };
        board.list(Ok(good.clone()));
        board.list(Err("no".into()));
        let lists = board.current().clone();
        assert_eq!(*lists.tools.unwrap(), good);
        assert!(lists.error.is_some());
    }

    #[test]
    fn the_same_list_again_is_no_news() {
        let board = ListBoard::new(Lists::default());
        let mut news = board.subscribe();
        board.list(Ok(ToolList::default()));
        assert!(news.has_changed().unwrap());
        news.mark_unchanged();
        board.list(Ok(ToolList::default()));
        assert!(!news.has_changed().unwrap());
    }
}
