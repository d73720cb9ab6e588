//! `nexusctl config`.

use super::Context;
use crate::exit::Error;

pub(crate) async fn run(context: &Context) -> Result<(), Error> {
    let nexus = context.connect().await?;
    let config = nexus.daemon().effective_config().await?;
    context.output.raw_json(config.as_str())
}
