//! The service `Daemon`.

use super::{
    Context, broken, caller,
    convert::{number, timestamp},
};
use crate::{platform, supervisor::status::Readiness};
use nexus_proto::v1::{self, daemon_server};
use std::sync::Arc;
use tonic::{Request, Response, Status};

pub(super) struct Daemon(pub(super) Arc<Context>);

#[tonic::async_trait]
impl daemon_server::Daemon for Daemon {
    async fn status(
        &self,
        request: Request<v1::DaemonStatusRequest>,
    ) -> Result<Response<v1::DaemonStatusResponse>, Status> {
        let config = Arc::clone(&self.0.config.read());
        let caller = caller::of(&self.0, &request);
        let servers = self.0.pool.servers();
        let servers: Vec<_> = servers.values().filter(|s| caller.oversees(s)).collect();
        let is_operator = caller.standing.is_operator();
        let ready = servers.iter().filter(|server| match is_operator {
            true => server.is_ready(),
            false => matches!(server.readiness_for(&caller), Readiness::Ready(_)),
        });
        // What others do is for the operator to know.
        let (in_flight, calls) = match is_operator {
            true => (number(self.0.router.in_flight()), self.0.router.calls()),
            false => caller.agent.counts(),
        };
        Ok(Response::new(v1::DaemonStatusResponse {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            started_at: Some(timestamp(self.0.started_at)),
            endpoint: self.0.endpoint.to_string(),
            config_files: config
                .files
                .iter()
                .filter(|_| is_operator)
                .map(|file| file.display().to_string())
                .collect(),
            demo: config.demo,
            servers: number(servers.len()),
            servers_ready: number(ready.count()),
            connections: number(self.0.connections()),
            calls_in_flight: in_flight,
            calls,
            memory_bytes: platform::memory_bytes(),
            stopping: self.0.router.is_closed(),
            http: self
                .0
                .http
                .as_ref()
                .filter(|_| is_operator)
                .map(|door| v1::HttpDoor {
                    address: door.address.to_string(),
                    token_file: door.token_file.display().to_string(),
                }),
        }))
    }

    async fn reload(
        &self,
        request: Request<v1::DaemonReloadRequest>,
    ) -> Result<Response<v1::DaemonReloadResponse>, Status> {
        caller::of(&self.0, &request).check_control()?;
        self.0.router.check_open()?;
        // Carried out to its end, also when whoever asked for it has gone.
        let context = Arc::clone(&self.0);
        let reloaded = tokio::spawn(async move { context.reload().await }).await;
        let (report, diagnoses) = reloaded
            .map_err(|_| broken())?
            .map_err(|error| error.failure())?;
        Ok(Response::new(v1::DaemonReloadResponse {
            added: report.added,
            removed: report.removed,
            changed: report.changed,
            unchanged: report.unchanged,
            warnings: diagnoses.iter().map(ToString::to_string).collect(),
        }))
    }

    async fn shutdown(
        &self,
        request: Request<v1::DaemonShutdownRequest>,
    ) -> Result<Response<v1::DaemonShutdownResponse>, Status> {
        caller::of(&self.0, &request).check_control()?;
        self.0.shutdown.ask();
        if request.into_inner().now {
            self.0.shutdown.ask();
        }
        Ok(Response::new(v1::DaemonShutdownResponse {}))
    }

    async fn effective_config(
        &self,
        request: Request<v1::DaemonEffectiveConfigRequest>,
    ) -> Result<Response<v1::DaemonEffectiveConfigResponse>, Status> {
        caller::of(&self.0, &request).check_control()?;
        let config = self.0.config.read().redacted();
        Ok(Response::new(v1::DaemonEffectiveConfigResponse {
            config: config.to_string().into(),
        }))
    }
}
