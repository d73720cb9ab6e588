//! The way to the daemon; and where there is none, one is started.

use crate::{commands::Context, exit::Error};
use nexus_client::{Builder, Error as ClientError, RawStream};
use std::{env, path::PathBuf, process::Stdio, time::Duration};
use tokio::{
    process::Command,
    time::{Instant, sleep},
};

/// How long a daemon that was started may take to listen.
const START: Duration = Duration::from_secs(10);

/// Connects. With `start`, starts a daemon if none runs.
pub(super) async fn connect(context: &Context, start: bool) -> Result<RawStream, Error> {
    let builder = || -> Builder { context.builder() };
    let error = match builder().connect_raw().await {
        Ok(stream) => return Ok(stream),
        Err(error) => error,
    };
    if !start || !matches!(error, ClientError::Unreachable { .. }) {
        return Err(error.into());
    }
    let mut daemon = Command::new(nexusd());
    daemon
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Some(socket) = &context.socket {
        daemon.arg("--socket").arg(socket);
    }
    // It is not the client's: a Ctrl-C that is meant for the client does not end it.
    #[cfg(unix)]
    daemon.process_group(0);
    #[cfg(windows)]
    {
        const DETACHED_PROCESS: u32 = 0x0000_0008;
        const CREATE_NEW_PROCESS_GROUP: u32 = 0x0000_0200;
        daemon.creation_flags(DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP);
    }
    // Several bridges may do so at once: all but one of the daemons find another, and leave.
    let _child = daemon.spawn().map_err(|source| Error::Io {
        attempt: format!(
            "no daemon runs, and {} cannot be started",
            nexusd().display()
        ),
        source,
    })?;
    let began = Instant::now();
    loop {
        match builder().connect_raw().await {
            Ok(stream) => return Ok(stream),
            Err(error) if began.elapsed() > START => return Err(error.into()),
            Err(_) => {}
        }
        sleep(Duration::from_millis(20)).await;
    }
}

/// The daemon beside this program, or the one on the path.
fn nexusd() -> PathBuf {
    let name = format!("nexusd{}", env::consts::EXE_SUFFIX);
    let beside = env::current_exe().ok().map(|own| own.with_file_name(&name));
    beside
        .filter(|path| path.is_file())
        .unwrap_or_else(|| name.into())
}
