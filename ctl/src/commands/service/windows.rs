//! Windows: for one user from logon on, or a true service for machines where nobody logs on.

mod logon;
mod system;

use crate::{
    cli::service::{Service, Verb},
    commands::Context,
    exit::Error,
};
use serde::Serialize;
use std::{env, path::PathBuf, time::Duration};

/// How often we look whether something has come to pass, and for how long.
const GLANCE: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(40);

#[derive(Serialize)]
struct StatusJson {
    installed: bool,
    active: bool,
    pid: Option<u32>,
    status: String,
}

pub(super) async fn run(context: &Context, args: Service) -> Result<(), Error> {
    match args.verb {
        Verb::Install(args) => match &args.which.system {
            None => logon::install(context, args.nexusd, !args.no_start).await,
            Some(user) => system::install(context, user, args.nexusd, !args.no_start).await,
        },
        Verb::Uninstall(which) if which.system.is_some() => system::uninstall(context).await,
        Verb::Uninstall(_) => logon::uninstall(context).await,
        Verb::Start(which) if which.system.is_some() => system::start(context).await,
        Verb::Start(_) => logon::start(context).await,
        Verb::Stop(which) if which.system.is_some() => system::stop(context).await,
        Verb::Stop(_) => logon::stop(context).await,
        Verb::Status(which) if which.system.is_some() => system::show(context),
        Verb::Status(_) => logon::show(context).await,
    }
}

impl StatusJson {
    fn show(&self, context: &Context) -> Result<(), Error> {
        if context.output.json {
            return context.output.value(self);
        }
        context.output.line(&self.status)
    }
}

/// A folder that Windows names with a variable.
fn folder(variable: &str) -> Result<PathBuf, Error> {
    let path = env::var_os(variable).map(PathBuf::from);
    path.filter(|path| path.is_absolute())
        .ok_or_else(|| Error::usage(format!("{variable} is not set")))
}

fn not_installed() -> Error {
    Error::Usage {
        message: "the service is not installed".to_owned(),
        hint: Some("`nexusctl service install` does that".to_owned()),
    }
}
