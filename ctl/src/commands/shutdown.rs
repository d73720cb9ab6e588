//! `nexusctl shutdown`.

use super::Context;
use crate::{cli::Shutdown, exit::Error};
use nexus_client::Error as ClientError;
use std::time::Duration;

/// How often a daemon that is on its way out is looked for.
const GLANCE: Duration = Duration::from_millis(20);

pub(crate) async fn run(context: &Context, args: Shutdown) -> Result<(), Error> {
    let nexus = context.connect().await?;
    nexus.daemon().shutdown(args.now).await?;
    // Our own connection must not be what it waits for.
    drop(nexus);
    if args.no_wait {
        context.output.note("nexusd is stopping");
        return Ok(());
    }
    // The socket goes last: when it is gone, a new daemon can take its place.
    loop {
        match context.builder().connect().await {
            Err(ClientError::Unreachable { .. }) => break,
            _ => tokio::time::sleep(GLANCE).await,
        }
    }
    context.output.note("nexusd has stopped");
    Ok(())
}
