//! The service `Policy`.

use super::{Context, caller, pins};
use nexus_proto::v1::{self, policy_server};
use std::sync::Arc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

pub(super) struct Policy(pub(super) Arc<Context>);

#[tonic::async_trait]
impl policy_server::Policy for Policy {
    type WatchStream = ReceiverStream<Result<v1::PolicyWatchResponse, Status>>;

    async fn watch(
        &self,
        _: Request<v1::PolicyWatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        Err(Status::unimplemented("nobody is asked yet"))
    }

    async fn decide(
        &self,
        _: Request<v1::PolicyDecideRequest>,
    ) -> Result<Response<v1::PolicyDecideResponse>, Status> {
        Err(Status::unimplemented("nobody is asked yet"))
    }

    async fn forget(
        &self,
        _: Request<v1::PolicyForgetRequest>,
    ) -> Result<Response<v1::PolicyForgetResponse>, Status> {
        Err(Status::unimplemented("nobody is asked yet"))
    }

    async fn list_changes(
        &self,
        request: Request<v1::PolicyListChangesRequest>,
    ) -> Result<Response<v1::PolicyListChangesResponse>, Status> {
        let caller = caller::of(&self.0, &request);
        let changes = pins::list_changes(&self.0, &caller, request.into_inner())?;
        Ok(Response::new(changes))
    }

    async fn approve(
        &self,
        request: Request<v1::PolicyApproveRequest>,
    ) -> Result<Response<v1::PolicyApproveResponse>, Status> {
        let caller = caller::of(&self.0, &request);
        let approved = pins::approve(&self.0, &caller, request.into_inner()).await?;
        Ok(Response::new(approved))
    }
}
