//! `nexusctl read`.

use super::Context;
use crate::{
    ask::Screen,
    cli::Read,
    exit::Error,
    output::{Output, safe, style, time},
};
use nexus_client::{ReadResult, ResourceContents, ResourceData};
use std::{fs, sync::Arc};

pub(crate) async fn run(context: &Context, args: Read) -> Result<(), Error> {
    let screen = Arc::new(Screen::new(context.output.clone()));
    let nexus = context.connect_asking(args.asking, &screen).await?;
    let (server, uri) = (args.address.server(), args.address.uri.as_str());
    let result = nexus.resources().read_from(server, uri).await?;
    let Some(path) = args.output else {
        return print(&context.output, &result);
    };
    let bytes = bytes(&result.contents());
    fs::write(&path, &bytes).map_err(|source| Error::Io {
        attempt: format!("cannot write {}", path.display()),
        source,
    })?;
    let size = time::bytes(bytes.len() as u64);
    context.output.note(&format!("{}: {size}", path.display()));
    Ok(())
}

/// As it is into a pipe; a terminal gets text, and nothing that it would act on.
pub(super) fn print(output: &Output, result: &ReadResult) -> Result<(), Error> {
    if output.json {
        return output.raw_json(result.raw().as_str());
    }
    let contents = result.contents();
    if !output.to_terminal() {
        return output.bytes(&bytes(&contents));
    }
    if let Some(blob) = contents.iter().find(|contents| contents.blob().is_some()) {
        return Err(not_for_terminals(blob));
    }
    for piece in &contents {
        if contents.len() > 1 {
            let uri = safe::line(&piece.uri);
            output.line(&output.paint(&uri, style::BOLD))?;
        }
        output.foreign(&String::from_utf8_lossy(data(piece)))?;
    }
    Ok(())
}

/// All contents, one after the other; what is text begins at the start of a line.
pub(super) fn bytes(contents: &[ResourceContents]) -> Vec<u8> {
    let mut bytes: Vec<u8> = Vec::new();
    let mut after_text = false;
    for contents in contents {
        let is_text = contents.blob().is_none();
        if after_text && is_text && !bytes.ends_with(b"\n") {
            bytes.push(b'\n');
        }
        bytes.extend_from_slice(data(contents));
        after_text = is_text;
    }
    bytes
}

fn data(contents: &ResourceContents) -> &[u8] {
    match &contents.data {
        ResourceData::Text(text) => text.as_bytes(),
        ResourceData::Blob(bytes) => bytes,
        ResourceData::Other(json) => json.as_bytes(),
        _ => &[],
    }
}

fn not_for_terminals(blob: &ResourceContents) -> Error {
    let kind = blob.mime_type.as_deref().unwrap_or("not text");
    let size = time::bytes(blob.blob().map_or(0, <[u8]>::len) as u64);
    Error::Usage {
        message: format!("{} is nothing for a terminal: {kind}, {size}", blob.uri),
        hint: Some("write it to a file with --output FILE, or pipe it somewhere".to_owned()),
    }
}
