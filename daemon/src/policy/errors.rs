//! What an agent is told of a failure: what it needs to go on, and nothing of the inside. Pure.

use nexus_proto::reason::{Failure, Reason};

/// The same failure without paths, commands, addresses, and what a server wrote for whoever runs it.
#[must_use]
pub fn for_agent(mut failure: Failure) -> Failure {
    let details = &mut failure.details;
    details.stderr.clear();
    details.source = None;
    details.causes.clear();
    details.fixes.clear();
    let what = match failure.reason {
        Reason::CommandNotFound | Reason::SpawnFailed | Reason::ConfigInvalid => {
            "cannot be started"
        }
        Reason::HandshakeFailed => "was started, and did not come up",
        Reason::CrashLoop => "keeps ending",
        Reason::Unreachable => "cannot be reached",
        Reason::HttpError => "does not answer as it should",
        _ => return failure,
    };
    let name = match &details.server {
        Some(server) => format!("the server {server:?}"),
        None => "the server".to_owned(),
    };
    failure.message = format!("{name} {what}");
    let look = match &details.server {
        Some(server) => format!("`nexusctl servers {server}`"),
        None => "`nexusctl servers`".to_owned(),
    };
    if !details.maybe_executed {
        details.hint = Some(format!("{look} tells whoever runs Nexus why"));
    }
    failure
}

/// What whoever is not the operator is told, with what to do instead.
pub fn not_operator(hint: &str) -> Failure {
    let message = "only the operator may do this: `nexusctl`, run by a person";
    Failure::new(Reason::NotOperator, message).with(|details| details.hint = Some(hint.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_told_what_it_needs_and_nothing_of_the_inside() {
        for reason in Reason::ALL {
            let failure = Failure::new(*reason, "x").with(|details| {
                details.server = Some("mail".into());
                details.stderr = vec!["/home/ann/.secrets: no such file".into()];
                details.source = Some("/home/ann/.config/nexus/mcp.json:3".into());
                details.causes = vec!["/usr/bin is not on the PATH".into()];
                details.fixes = vec!["export TOKEN=hunter2".into()];
                details.exit = Some("exit code 7".into());
            });
            let told = for_agent(failure.clone());
            assert_eq!((told.reason, told.code()), (failure.reason, failure.code()));
            assert_eq!(told.details.exit.as_deref(), Some("exit code 7"));
            let text = format!("{told:?}");
            for inside in ["/home/ann", "/usr/bin", "hunter2"] {
                assert!(!text.contains(inside), "{text}");
            }
        }
        let failure = Failure::new(Reason::CommandNotFound, "cannot run /opt/x: not found")
            .with(|details| details.server = Some("mail".into()));
        let told = for_agent(failure);
        assert_eq!(told.message, "the server \"mail\" cannot be started");
    }
}
