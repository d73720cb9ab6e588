//! How a client begins: `initialize`, `server/discover` and `subscriptions/listen`.

use std::sync::atomic::Ordering;

use super::{Request, Server};
use crate::definitions::{CAPABILITIES, INSTRUCTIONS};
use crate::eras;
use crate::fault::{self, Fault};
use crate::reply::{self, Outcome, RpcError, SERVER_INFO, quoted};
use crate::resources;

/// Whether a client begins with this method.
pub(super) fn is_start(method: &str) -> bool {
    matches!(method, "initialize" | "server/discover")
}

impl Server {
    /// Whether the fault init-hang is due; init-exit does not return.
    pub(super) fn start_fails(&self) -> bool {
        let turn = self.starts.fetch_add(1, Ordering::Relaxed) + 1;
        if self.plan.at(Fault::InitExit, turn) {
            fault::exit_at_init();
        }
        self.plan.since(Fault::InitHang, turn)
    }

    pub(super) fn initialize(&self, request: &Request<'_>) -> Outcome {
        request.session.set_initialized();
        self.listeners.add_legacy(request.session, request.out);
        let version = match self.plan.has(Fault::BadVersion) {
            true => eras::BAD,
            false => eras::negotiated(request.params.protocol_version.as_deref()),
        };
        let instructions = quoted(INSTRUCTIONS);
        Outcome::complete(format!(
            r#""protocolVersion":"{version}","capabilities":{CAPABILITIES},"serverInfo":{SERVER_INFO},"instructions":{instructions}"#
        ))
    }

    pub(super) fn discover(&self) -> Outcome {
        let (versions, instructions) = (eras::supported(self.era), quoted(INSTRUCTIONS));
        Outcome::cacheable(format!(
            r#""supportedVersions":{versions},"capabilities":{CAPABILITIES},"instructions":{instructions}"#
        ))
    }

    /// Opens a subscription, which stays until it is cancelled.
    pub(super) fn listen(&self, request: &Request<'_>) {
        let Some(wanted) = &request.params.notifications else {
            let error = RpcError::invalid_params("notifications is required");
            return self.respond(request.out, request.id, request.dialect, &Err(error));
        };
        let uris: Vec<String> = wanted
            .resource_subscriptions
            .iter()
            .filter(|uri| resources::exists(uri))
            .map(|uri| quoted(uri))
            .collect();
        let mut honoured = Vec::new();
        if wanted.tools_list_changed {
            honoured.push(r#""toolsListChanged":true"#.to_owned());
        }
        if !uris.is_empty() {
            honoured.push(format!(r#""resourceSubscriptions":[{}]"#, uris.join(",")));
        }
        let (id, honoured) = (request.id, honoured.join(","));
        let params = format!(
            r#"{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}},"notifications":{{{honoured}}}}}"#
        );
        let welcome = reply::outgoing(None, "notifications/subscriptions/acknowledged", &params);
        let (session, out) = (request.session, request.out);
        self.listeners
            .add_modern(session, out, id, wanted.tools_list_changed, welcome);
    }
}
