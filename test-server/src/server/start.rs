//! How a client begins: `initialize`, `server/discover` and `subscriptions/listen`.

use std::sync::atomic::Ordering;

use super::{Request, Server};
use crate::definitions::{CAPABILITIES, INSTRUCTIONS, INTERACTIVE_CAPABILITIES};
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
        let requested = request.params.protocol_version.as_deref();
        let version = match self.plan.has(Fault::BadVersion) {
            true => eras::BAD,
            false => self.spoken.negotiated(requested),
        };
        request.session.set_revision(version);
        let declared = request.params.capabilities;
        let declared = declared.and_then(|raw| serde_json::from_str(raw.get()).ok());
        request
            .session
            .set_capabilities(declared.unwrap_or_default());
        if let Some(wire) = &self.wire {
            wire.note(&format!("negotiated {version}"));
        }
        self.listeners.add_legacy(request.session, request.out);
        let capabilities = self.capabilities();
        let instructions = self.instructions();
        Outcome::complete(format!(
            r#""protocolVersion":"{version}","capabilities":{capabilities},"serverInfo":{SERVER_INFO},"instructions":{instructions}"#
        ))
    }

    pub(super) fn discover(&self) -> Outcome {
        let (versions, instructions) = (self.spoken.supported(), self.instructions());
        let capabilities = self.capabilities();
        Outcome::cacheable(format!(
            r#""supportedVersions":{versions},"capabilities":{capabilities},"instructions":{instructions}"#
        ))
    }

    /// JSON text.
    fn instructions(&self) -> String {
        let written = self.catalog.in_file("instructions");
        written.map_or_else(|| quoted(INSTRUCTIONS), |text| text.to_string())
    }

    fn capabilities(&self) -> &'static str {
        match self.catalog.can_grow() {
            true => INTERACTIVE_CAPABILITIES,
            false => CAPABILITIES,
        }
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
            .filter(|uri| resources::exists(uri, &self.catalog))
            .map(|uri| quoted(uri))
            .collect();
        // The other lists do not change unless a tool can have them do so.
        let can_grow = self.catalog.can_grow();
        let mut honoured = Vec::new();
        for (name, asked) in [
            ("toolsListChanged", wanted.tools_list_changed),
            (
                "promptsListChanged",
                wanted.prompts_list_changed && can_grow,
            ),
            (
                "resourcesListChanged",
                wanted.resources_list_changed && can_grow,
            ),
        ] {
            if asked {
                honoured.push(format!(r#""{name}":true"#));
            }
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
            .add_modern(session, out, id, wanted.clone(), welcome);
    }
}
