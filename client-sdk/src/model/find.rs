//! Which tool of a list is meant by a name. PURE.

use super::{Tool, ToolList};
use crate::{Error, Failure, Reason, Result};

/// How alike two names must be for one to be suggested for the other.
const ALIKE: f64 = 0.5;

/// The tool that `name` means. `tool` is its name on the server, if `list` is of that one server
/// only, and `name` otherwise.
pub(crate) fn find(list: ToolList, name: &str, tool: &str) -> Result<Tool> {
    let bare = name == tool;
    let exact = |found: &Tool| found.name == name || found.tool == tool;
    let mut found: Vec<_> = list.tools.iter().filter(|found| exact(found)).collect();
    // A full name outranks the bare name of another server's tool.
    if let Some(at) = found.iter().position(|found| found.name == name) {
        found.swap(0, at);
        found.truncate(1);
    }
    match found[..] {
        [found] => return Ok(found.clone()),
        [] => {}
        [..] => {
            let names: Vec<_> = found.iter().map(|found| found.dotted()).collect();
            let message = format!("`{name}` is a tool of {} servers", names.len());
            let hint = format!("say which one: {}", names.join(", "));
            let failure = Failure::new(Reason::AmbiguousName, message);
            return Err(failure.with(|details| details.hint = Some(hint)).into());
        }
    }
    if let (false, Some(missing)) = (bare, list.missing.first()) {
        let reason = missing.reason.unwrap_or(Reason::Internal);
        let failure = Failure::new(reason, missing.message.clone());
        return Err(failure
            .with(|details| details.server = Some(missing.server.clone()))
            .into());
    }
    Err(not_found(&list, name, tool))
}

fn not_found(list: &ToolList, name: &str, tool: &str) -> Error {
    let alike = |found: &Tool| strsim::normalized_damerau_levenshtein(&found.tool, tool);
    let nearest = list
        .tools
        .iter()
        .map(|found| (alike(found), found))
        .filter(|(alike, _)| *alike >= ALIKE)
        .max_by(|(a, _), (b, _)| a.total_cmp(b));
    let failure = Failure::new(Reason::ToolNotFound, format!("there is no tool `{name}`"));
    failure
        .with(|details| {
            details.tool = Some(tool.to_owned());
            details.suggestion = nearest.map(|(_, found)| found.dotted());
        })
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nexus_proto::v1;

    fn list(names: &[(&str, &str)]) -> ToolList {
        ToolList::from_wire(v1::ToolsListResponse {
            tools: names
                .iter()
                .map(|(server, tool)| v1::Tool {
                    name: format!("{server}__{tool}"),
                    server: (*server).to_owned(),
                    tool: (*tool).to_owned(),
                    definition: "{}".into(),
                })
                .collect(),
            missing: vec![],
        })
        .unwrap()
    }

    #[test]
    fn a_tool_is_found_by_its_name_on_the_server_or_towards_agents() {
        let tools = || list(&[("demo", "add"), ("demo", "echo")]);
        assert_eq!(find(tools(), "Demo.add", "add").unwrap().tool, "add");
        assert_eq!(find(tools(), "demo__echo", "?").unwrap().tool, "echo");
        assert_eq!(find(tools(), "echo", "echo").unwrap().tool, "echo");
    }

    #[test]
    fn a_bare_name_that_two_servers_have_is_ambiguous() {
        let tools = list(&[("a", "add"), ("b", "add")]);
        let error = find(tools, "add", "add").unwrap_err();
        assert_eq!(error.reason(), Some(Reason::AmbiguousName));
        assert_eq!(error.hint(), Some("say which one: a.add, b.add"));
    }

    #[test]
    fn a_name_that_is_not_there_comes_with_the_nearest() {
        let tools = list(&[("demo", "add"), ("demo", "slow_operation")]);
        let error = find(tools, "demo.slow_operatoin", "slow_operatoin").unwrap_err();
        assert_eq!(error.reason(), Some(Reason::ToolNotFound));
        let suggestion = &error.failure().unwrap().details.suggestion;
        assert_eq!(suggestion.as_deref(), Some("demo.slow_operation"));
    }

    #[test]
    fn a_server_without_a_list_says_why() {
        let mut tools = list(&[]);
        let missing = v1::MissingServer {
            server: "demo".into(),
            reason: "CRASH_LOOP".into(),
            message: "demo keeps ending".into(),
        };
        tools.missing.push(missing.into());
        let error = find(tools, "demo.add", "add").unwrap_err();
        assert_eq!(error.reason(), Some(Reason::CrashLoop));
    }
}
