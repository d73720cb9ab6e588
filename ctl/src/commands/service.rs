//! `nexusctl service`: the daemon as a service of the system's own manager.

#[cfg(any(target_os = "linux", windows))]
mod program;
#[cfg(target_os = "linux")]
mod systemd;
#[cfg(target_os = "linux")]
mod unit;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
use systemd as platform;
#[cfg(windows)]
use windows as platform;

use super::Context;
use crate::{cli::Service, exit::Error};

/// Carries it out.
#[cfg(any(target_os = "linux", windows))]
pub(crate) async fn run(context: &Context, args: Service) -> Result<(), Error> {
    platform::run(context, args).await
}

/// Nothing else is supported yet.
#[cfg(not(any(target_os = "linux", windows)))]
#[allow(clippy::unused_async)]
pub(crate) async fn run(_context: &Context, _args: Service) -> Result<(), Error> {
    Err(Error::Usage {
        message: "services are managed on Linux and Windows only, in this version".to_owned(),
        hint: Some("start `nexusd` with your session in your system's own way".to_owned()),
    })
}
