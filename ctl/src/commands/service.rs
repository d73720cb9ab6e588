//! `nexusctl service`: the daemon as a service of the system's own manager.

#[cfg(target_os = "linux")]
mod systemd;
#[cfg(target_os = "linux")]
mod unit;

use super::Context;
use crate::{cli::Service, exit::Error};

/// Carries it out.
#[cfg(target_os = "linux")]
pub(crate) async fn run(context: &Context, args: Service) -> Result<(), Error> {
    systemd::run(context, args).await
}

/// Nothing else is supported yet.
#[cfg(not(target_os = "linux"))]
#[allow(clippy::unused_async)]
pub(crate) async fn run(_context: &Context, _args: Service) -> Result<(), Error> {
    Err(Error::Usage {
        message: "services are managed with systemd only, in this version".to_owned(),
        hint: Some("start `nexusd` with your session in your system's own way".to_owned()),
    })
}
