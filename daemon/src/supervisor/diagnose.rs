//! What those are told who wait for a server that does not come up. Pure.

use super::{Target, instance::InstanceSpec};
use crate::process::SpawnError;
use nexus_config::remedy::{self, Remedy};
use nexus_proto::{
    name::Slug,
    reason::{Failure, Reason},
};

/// Its program could not be started.
pub(super) fn not_started(spec: &InstanceSpec, error: &SpawnError) -> Failure {
    let reason = if error.is_not_found() {
        Reason::CommandNotFound
    } else {
        Reason::SpawnFailed
    };
    let remedy = match error {
        SpawnError::NotOnPath { command, .. } => remedy::not_on_path(command, cfg!(windows)),
        SpawnError::NoSuchFile(path) => remedy::no_such_file(&path.display().to_string()),
        SpawnError::NotExecutable(path) => remedy::not_executable(&path.display().to_string()),
        _ => Remedy::default(),
    };
    about(spec, Failure::new(reason, error.to_string()), remedy)
}

/// Its process ended, or was ended.
pub(super) fn ended(
    spec: &InstanceSpec,
    failure: Failure,
    exit: &str,
    stderr: &[String],
) -> Failure {
    let slug = Slug::of(&spec.name);
    let remedy = match failure.reason {
        Reason::ServerExited => remedy::ended(exit, stderr, &spec.shown, slug.as_str()),
        Reason::HandshakeFailed => match &spec.target {
            Target::Process(_) => {
                remedy::no_handshake(&spec.shown, spec.start_timeout, stderr, slug.as_str())
            }
            Target::Http(http) => remedy::no_mcp_there(&http.url.to_string()),
        },
        Reason::Unreachable => remedy::not_reached(),
        Reason::NeedsAuth => remedy::not_let_in(),
        _ => Remedy::default(),
    };
    about(spec, failure, remedy)
}

fn about(spec: &InstanceSpec, failure: Failure, remedy: Remedy) -> Failure {
    failure.with(|details| {
        details.server = Some(spec.name.clone());
        details.source.clone_from(&spec.origin);
        details.causes = remedy.causes;
        let mut fixes = remedy.fixes.into_iter();
        if details.hint.is_none() {
            details.hint = fixes.next();
        }
        details.fixes = fixes.collect();
    })
}
