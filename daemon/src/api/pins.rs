//! Tools that are not what was approved of.

use super::{Context, broken};
use crate::pool::{Server, key::Caller};
use nexus_proto::{
    reason::{Failure, Reason},
    v1,
};
use std::sync::Arc;
use tracing::error;

/// What waits for approval.
pub(super) fn list_changes(
    context: &Context,
    caller: &Caller,
    request: &v1::PolicyListChangesRequest,
) -> Result<v1::PolicyListChangesResponse, Failure> {
    let servers: Vec<Arc<Server>> = match request.server.as_str() {
        "" => context.pool.servers().values().cloned().collect(),
        name => vec![context.pool.get(name, caller)?],
    };
    let changes = servers.iter().flat_map(|server| {
        let (changes, held) = server.changes();
        let name = server.config().name.clone();
        changes.into_iter().map(move |change| v1::ToolChange {
            server: name.clone(),
            tool: change.tool,
            approved: change.approved.unwrap_or_default(),
            now: change.now,
            other_command: change.other_command,
            held,
        })
    });
    Ok(v1::PolicyListChangesResponse {
        changes: changes.collect(),
    })
}

/// Approves of what was looked at.
pub(super) async fn approve(
    context: &Context,
    caller: &Caller,
    request: v1::PolicyApproveRequest,
) -> Result<v1::PolicyApproveResponse, Failure> {
    let v1::PolicyApproveRequest {
        server,
        tool,
        definition,
    } = request;
    if tool.is_empty() && !definition.is_empty() {
        let message = "a definition is that of one tool: say of which";
        return Err(Failure::new(Reason::InvalidRequest, message));
    }
    let server = context.pool.get(&server, caller)?;
    let (changes, _) = server.changes();
    let of_tool = || {
        changes
            .iter()
            .filter(|change| tool.is_empty() || change.tool == tool)
    };
    if !definition.is_empty() && !of_tool().any(|change| change.now == definition) {
        let name = server.config().name.clone();
        let message = format!("{name}.{tool} is not, or no longer, what you have looked at");
        return Err(Failure::new(Reason::Changed, message).with(|details| {
            details.server = Some(name);
            details.tool = Some(tool.clone());
            details.hint = Some("`nexusctl approve` shows what waits now".to_owned());
        }));
    }
    let lists = server.tool_lists();
    let is_there = || {
        lists
            .iter()
            .flat_map(|list| &list.entries)
            .any(|entry| entry.key == tool)
    };
    if !tool.is_empty() && of_tool().next().is_none() && !is_there() {
        let name = server.config().name.clone();
        let message = format!("the server {name:?} has no tool {tool:?}");
        return Err(
            Failure::new(Reason::ToolNotFound, message).with(|details| details.server = Some(name))
        );
    }
    let approved = context.pool.approve(&server, |change| {
        (tool.is_empty() || change.tool == tool)
            && (definition.is_empty() || change.now == definition)
    });
    let approved = approved.await.map_err(|error| {
        error!(%error, "what was approved of cannot be kept: it holds until the daemon ends");
        broken()
    })?;
    Ok(v1::PolicyApproveResponse {
        approved: u32::try_from(approved).unwrap_or(u32::MAX),
    })
}
