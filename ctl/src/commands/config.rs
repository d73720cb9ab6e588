//! `nexusctl config`.

pub(super) mod check;
mod path;
mod show;

use super::Context;
use crate::{
    cli::{Config, config::ConfigVerb},
    exit::Error,
};
use nexus_config::{Loaded, layers::Places, load::Request};
use std::path::Path;

pub(crate) async fn run(context: &Context, args: Config) -> Result<(), Error> {
    match args.verb {
        None => show::run(context, false, false).await,
        Some(ConfigVerb::Show(args)) => show::run(context, args.origin, args.offline).await,
        Some(ConfigVerb::Path(_)) => path::run(context),
        Some(ConfigVerb::Check(args)) => check::run(context, &args.files),
    }
}

/// What a daemon would read that is started here.
pub(super) fn load(asked: Option<&Path>) -> (Places, Loaded) {
    let places = Places::ours();
    let folder = std::env::current_dir().ok();
    let named = std::env::var_os("NEXUS_CONFIG").filter(|path| !path.is_empty());
    let loaded = nexus_config::load(Request {
        asked: asked.or(named.as_deref().map(Path::new)),
        places: &places,
        folder: folder.as_deref(),
    });
    (places, loaded)
}
