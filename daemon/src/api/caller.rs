//! Who is asking: the connection that a request came over, and what it says of itself.

use super::Context;
use crate::{
    agent::{Agent, folder},
    pool::{
        Chosen, Sight,
        key::{Caller, Credential},
    },
};
use std::{path::Path, sync::Arc};
use tonic::Request;

/// The folder that an agent works in: an absolute path.
const PROJECT: &str = "nexus-project-bin";

/// Whoever sends it is an agent, and calls itself so.
const AGENT: &str = "nexus-agent-bin";

/// What an agent shows to servers that have a process for each credential.
const CREDENTIAL: &str = "authorization";

/// Whoever sent this request.
pub(super) fn of<T>(context: &Context, request: &Request<T>) -> Caller {
    let mut caller = told(request);
    let standing = context
        .policy
        .standing(&caller.agent, caller.project.as_deref());
    if let Some(name) = &standing.profile {
        let config = Arc::clone(&context.config.read());
        let profile = Chosen::of(&config.profiles, Some(name), "", None, None);
        caller.sight = Arc::new(Sight::default().with_profile(profile));
    }
    caller.standing = standing;
    caller
}

/// What a request says of its sender.
fn told<T>(request: &Request<T>) -> Caller {
    // The door adds it to every request; whoever came in another way is alone.
    let agent = request.extensions().get::<Arc<Agent>>();
    let agent = agent.cloned().unwrap_or_default();
    let metadata = request.metadata();
    let credential = metadata.get(CREDENTIAL);
    if let Some(name) = metadata
        .get_bin(AGENT)
        .and_then(|name| name.to_bytes().ok())
    {
        agent.is_agent_called(&String::from_utf8_lossy(&name));
    }
    Caller {
        project: metadata
            .get_bin(PROJECT)
            .and_then(|value| value.to_bytes().ok())
            .and_then(|path| folder(Path::new(str::from_utf8(&path).ok()?)))
            .map(|said| agent.works_in(said)),
        credential: credential
            .filter(|shown| !shown.is_empty())
            .map(|shown| Credential::new(shown.as_bytes())),
        ..Caller::of(agent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use tonic::metadata::MetadataValue;

    #[test]
    fn what_a_request_says_of_its_sender_is_read() {
        let agent = Arc::new(Agent::default());
        let mut request = Request::new(());
        request.extensions_mut().insert(Arc::clone(&agent));
        let path = if cfg!(windows) {
            "C:\\caf\u{e9}"
        } else {
            "/caf\u{e9}"
        };
        let value = MetadataValue::from_bytes(path.as_bytes());
        request.metadata_mut().insert_bin(PROJECT, value);
        request
            .metadata_mut()
            .insert(CREDENTIAL, "Bearer x".parse().unwrap());
        let caller = told(&request);
        assert_eq!(caller.agent.id(), agent.id());
        assert_eq!(caller.project, Some(PathBuf::from(path)));
        assert_eq!(caller.credential, Some(Credential::new(b"Bearer x")));
    }

    #[test]
    fn a_relative_folder_is_none() {
        let mut request = Request::new(());
        let value = MetadataValue::from_bytes(b"some/where");
        request.metadata_mut().insert_bin(PROJECT, value);
        assert_eq!(told(&request).project, None);
    }
}
