//! Who is asking: the connection that a request came over, and what it says of itself.

use crate::{
    agent::{Agent, folder},
    pool::key::{Caller, Credential},
};
use std::{path::Path, sync::Arc};
use tonic::Request;

/// The folder that an agent works in: an absolute path.
const PROJECT: &str = "nexus-project-bin";

/// What an agent shows to servers that have a process for each credential.
const CREDENTIAL: &str = "authorization";

/// Whoever sent this request.
pub(super) fn of<T>(request: &Request<T>) -> Caller {
    // The door adds it to every request; whoever came in another way is alone.
    let agent = request.extensions().get::<Arc<Agent>>();
    let agent = agent.cloned().unwrap_or_default();
    let metadata = request.metadata();
    let credential = metadata.get(CREDENTIAL);
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
        let caller = of(&request);
        assert_eq!(caller.agent.id(), agent.id());
        assert_eq!(caller.project, Some(PathBuf::from(path)));
        assert_eq!(caller.credential, Some(Credential::new(b"Bearer x")));
    }

    #[test]
    fn a_relative_folder_is_none() {
        let mut request = Request::new(());
        let value = MetadataValue::from_bytes(b"some/where");
        request.metadata_mut().insert_bin(PROJECT, value);
        assert_eq!(of(&request).project, None);
    }
}
