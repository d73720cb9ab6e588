//! `nexusctl subscribe`.

use super::{Context, read, servers::verbatim};
use crate::{
    cli::Subscribe,
    exit::Error,
    output::{safe, style, time},
};
use nexus_client::{ReadResult, ResourceEvent};
use serde::Serialize;
use serde_json::value::RawValue;
use std::time::SystemTime;

pub(crate) async fn run(context: &Context, args: Subscribe) -> Result<(), Error> {
    let nexus = context.connect().await?;
    let (server, uri) = (args.address.server(), args.address.uri.as_str());
    let mut events = nexus.resources().subscribe_on(server, uri).await?;
    // Which server it is, once that is known.
    let mut server = server.to_owned();
    let (mut before, mut changes) = (false, 0);
    while let Some(event) = events.next().await {
        match event? {
            ResourceEvent::Subscribed { server: name } => {
                let again = if before { " again" } else { "" };
                before = true;
                let place = safe::line(&name);
                let note = format!("subscribed{again} to {} on {place}", safe::line(uri));
                context.output.note(&note);
                server = name;
            }
            ResourceEvent::Updated { uri, maybe } => {
                changes += 1;
                let held = match args.read {
                    true => Some(nexus.resources().read_from(&server, &uri).await?),
                    false => None,
                };
                tell(context, &uri, maybe, held.as_ref())?;
            }
            _ => {}
        }
        if args.count.is_some_and(|count| changes >= count) {
            break;
        }
    }
    Ok(())
}

fn tell(context: &Context, uri: &str, maybe: bool, held: Option<&ReadResult>) -> Result<(), Error> {
    let output = &context.output;
    let at = time::rfc3339(SystemTime::now());
    if output.json {
        let result = held.and_then(|held| verbatim(held.raw()));
        return output.value_line(&ChangeJson {
            at,
            uri,
            maybe,
            result,
        });
    }
    let what = if maybe { "may have changed" } else { "changed" };
    let at = output.paint(&at, style::DIM);
    output.line(&format!("{at} {} {what}", safe::line(uri)))?;
    match held {
        None => Ok(()),
        Some(held) if output.to_terminal() => read::print(output, held),
        // The next change is told in a line of its own.
        Some(held) => {
            let mut bytes = read::bytes(&held.contents());
            if !bytes.ends_with(b"\n") {
                bytes.push(b'\n');
            }
            output.bytes(&bytes)
        }
    }
}

#[derive(Serialize)]
struct ChangeJson<'a> {
    at: String,
    uri: &'a str,
    maybe: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
}
