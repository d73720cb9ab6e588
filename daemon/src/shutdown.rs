//! How the daemon is asked to stop, and when its doors close.

use std::sync::Arc;
use tokio::sync::watch;

/// How far the end has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Phase {
    #[default]
    Running,
    /// Somebody asked.
    Asked,
    /// Somebody asked again: there is no time left.
    Now,
}

/// A wish to stop, which anybody can have and everybody can wait for.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    phase: Arc<watch::Sender<Phase>>,
    api: Arc<watch::Sender<bool>>,
}

impl Shutdown {
    /// Asks for the end. Asking again means now.
    pub fn ask(&self) {
        self.phase.send_modify(|phase| {
            *phase = match phase {
                Phase::Running => Phase::Asked,
                Phase::Asked | Phase::Now => Phase::Now,
            }
        });
    }

    /// Waits until somebody asks.
    pub async fn asked(&self) {
        self.reached(Phase::Asked).await;
    }

    /// Waits until somebody asks again.
    pub async fn asked_again(&self) {
        self.reached(Phase::Now).await;
    }

    /// Closes the doors: clients are sent away politely.
    pub fn close_api(&self) {
        self.api.send_replace(true);
    }

    /// Waits until the doors close.
    pub async fn api_closes(&self) {
        let _ = self.api.subscribe().wait_for(|closed| *closed).await;
    }

    async fn reached(&self, wanted: Phase) {
        let _ = self
            .phase
            .subscribe()
            .wait_for(|phase| *phase >= wanted)
            .await;
    }
}
