//! Windows: the events of a console, and the service manager.

pub mod service;

use super::Wish;
use futures_util::{Stream, stream};
use nexus_proto::endpoint::{BindError, Endpoint, Listener, user};
use std::{io, path::Path, time::Duration};
use tokio::{signal::windows, time::sleep};

/// There is no such limit here.
pub fn raise_file_limit() {}

/// Takes the endpoint; for a service also for the user whom it serves.
pub fn bind(endpoint: &Endpoint) -> Result<Listener, BindError> {
    let Some(client) = service::client() else {
        return endpoint.bind();
    };
    let sid = user::sid_of_account(client).map_err(|source| BindError::Io {
        attempt: "find the account that may use",
        path: endpoint.path().to_owned(),
        source,
    })?;
    endpoint.bind_for(&sid)
}

/// Who owns a file, if it is neither we nor somebody who could make us do anything anyway.
pub fn foreign_owner(path: &Path) -> io::Result<Option<String>> {
    let owner = user::owner_of_file(path)?;
    let is_known = [user::SYSTEM, user::ADMINISTRATORS].contains(&&*owner);
    Ok((!is_known && owner != user::current_sid()?).then_some(owner))
}

/// After these Windows ends us in five seconds: those who do not finish by themselves are ended before.
const HURRY: Duration = Duration::from_millis(2500);

/// What the events that arrive ask for.
pub fn signals() -> io::Result<impl Stream<Item = Wish> + Unpin> {
    let events = Events {
        interrupt: windows::ctrl_c()?,
        pause: windows::ctrl_break()?,
        close: windows::ctrl_close()?,
        logoff: windows::ctrl_logoff()?,
        shutdown: windows::ctrl_shutdown()?,
        hurry: false,
    };
    Ok(Box::pin(stream::unfold(events, |mut events| async {
        events.next().await;
        Some((Wish::Stop, events))
    })))
}

struct Events {
    interrupt: windows::CtrlC,
    pause: windows::CtrlBreak,
    close: windows::CtrlClose,
    logoff: windows::CtrlLogoff,
    shutdown: windows::CtrlShutdown,
    /// There is no time: the wish is repeated.
    hurry: bool,
}

impl Events {
    /// Waits for a reason to stop.
    async fn next(&mut self) {
        if std::mem::take(&mut self.hurry) {
            return sleep(HURRY).await;
        }
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => return,
                _ = self.pause.recv() => return,
                () = service::asked_to_stop() => return,
                _ = self.close.recv() => break,
                _ = self.shutdown.recv() => break,
                // A service hears of everybody's.
                _ = self.logoff.recv() => if !service::is_there() {
                    break;
                },
            }
        }
        self.hurry = true;
    }
}
