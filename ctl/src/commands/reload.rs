//! `nexusctl reload`.

use super::Context;
use crate::{exit::Error, output::safe};
use serde::Serialize;

pub(crate) async fn run(context: &Context) -> Result<(), Error> {
    let nexus = context.connect().await?;
    let report = nexus.daemon().reload().await?;
    if context.output.json {
        return context.output.value(&ReportJson {
            added: &report.added,
            removed: &report.removed,
            changed: &report.changed,
            unchanged: &report.unchanged,
            warnings: &report.warnings,
        });
    }
    for warning in &report.warnings {
        context.output.warn(warning);
    }
    let changes = [
        ("added", &report.added),
        ("removed", &report.removed),
        ("changed", &report.changed),
    ];
    let mut text = String::new();
    for (name, servers) in changes.into_iter().filter(|(_, s)| !s.is_empty()) {
        text += &format!("{name}: {}\n", safe::line(&servers.join(", ")));
    }
    if text.is_empty() {
        text = "nothing has changed\n".to_owned();
    }
    context.output.data(&text)
}

#[derive(Serialize)]
struct ReportJson<'a> {
    added: &'a [String],
    removed: &'a [String],
    changed: &'a [String],
    unchanged: &'a [String],
    warnings: &'a [String],
}
