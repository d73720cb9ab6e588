//! `nexusctl complete`.

use super::Context;
use crate::{
    cli::{Complete, Completing},
    exit::Error,
};

pub(crate) async fn run(context: &Context, args: Complete) -> Result<(), Error> {
    let what = args.what().map_err(Error::usage)?;
    let nexus = context.connect().await?;
    let completions = nexus.completions();
    let mut request = match what {
        Completing::Prompt {
            name,
            argument,
            value,
        } => completions.complete_prompt(name, argument, value),
        Completing::Template {
            server,
            template,
            variable,
            value,
        } => completions.complete_template(server, template, variable, value),
    };
    for (name, value) in &args.args {
        request = request.context(name, value);
    }
    let found = request.await?;
    let output = &context.output;
    if output.json {
        return output.raw_json(found.raw.as_str());
    }
    for value in &found.values {
        output.line(&output.safe(value))?;
    }
    let shown = found.values.len() as u64;
    match found.total.filter(|total| *total > shown) {
        Some(total) => output.note(&format!("{shown} of {total}")),
        None if found.has_more => output.note("there are more"),
        None if shown == 0 => output.note("no suggestions"),
        None => {}
    }
    Ok(())
}
