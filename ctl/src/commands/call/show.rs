//! The result of a call, for people and for pipes.

use crate::{
    exit::Error,
    output::{Output, content::describe, style},
};
use nexus_client::ToolResult;

pub(super) fn result(output: &Output, tool: &str, result: &ToolResult) -> Result<(), Error> {
    if output.json {
        output.raw_json(result.raw().as_str())?;
    } else if result.is_error() {
        let mark = output.paint_stderr("error:", style::ERROR);
        let text = text(result);
        output.stderr_line(&format!("{mark} {tool} failed"));
        output.stderr_line(output.safe_stderr(&text).trim_end());
    } else {
        output.foreign(&text(result))?;
    }
    if result.is_error() {
        return Err(Error::ToolFailed);
    }
    Ok(())
}

/// All contents, each from the start of a line.
fn text(result: &ToolResult) -> String {
    let contents = result.content();
    if contents.is_empty() {
        let structured = result.structured_raw();
        return structured.map(|json| json.to_string()).unwrap_or_default();
    }
    let contents: Vec<_> = contents.into_iter().map(describe).collect();
    contents.join("\n")
}
