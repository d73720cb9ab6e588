//! The lists that a server says have changed, until somebody has looked.

use super::lists::Kind;
use std::sync::atomic::{AtomicU8, Ordering};
use tokio::sync::Notify;

/// The lists that have changed.
#[derive(Debug, Default)]
pub struct Changes {
    kinds: AtomicU8,
    rung: Notify,
}

impl Changes {
    /// This one has.
    pub fn note(&self, kind: Kind) {
        self.kinds.fetch_or(bit(kind), Ordering::Relaxed);
        self.rung.notify_one();
    }

    /// Any of them may have.
    pub fn note_all(&self) {
        Kind::ALL.into_iter().for_each(|kind| self.note(kind));
    }

    /// Waits until one has.
    pub async fn wait(&self) {
        self.rung.notified().await;
    }

    /// Those that have since this was last asked.
    pub fn take(&self) -> impl Iterator<Item = Kind> + use<> {
        let kinds = self.kinds.swap(0, Ordering::Relaxed);
        Kind::ALL
            .into_iter()
            .filter(move |&kind| kinds & bit(kind) != 0)
    }
}

fn bit(kind: Kind) -> u8 {
    1 << kind as u8
}
