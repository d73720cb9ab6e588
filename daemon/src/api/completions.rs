//! The service `Completions`.

use super::{Context, caller, deadline};
use crate::router::{Complete, Reference};
use nexus_proto::{
    reason::{Failure, Reason},
    v1::{self, completions_complete_request::Reference as Wire, completions_server},
};
use std::sync::Arc;
use tonic::{Request, Response, Status};

pub(super) struct Completions(pub(super) Arc<Context>);

#[tonic::async_trait]
impl completions_server::Completions for Completions {
    async fn complete(
        &self,
        request: Request<v1::CompletionsCompleteRequest>,
    ) -> Result<Response<v1::CompletionsCompleteResponse>, Status> {
        let deadline = deadline::of(request.metadata());
        let caller = caller::of(&self.0, &request);
        let request = request.into_inner();
        let reference = match &request.reference {
            Some(Wire::Prompt(name)) => Reference::Prompt(name),
            Some(Wire::Template(template)) => {
                Reference::Template(&template.server, &template.uri_template)
            }
            None => {
                let message = "a prompt or a template is to be named";
                return Err(Failure::new(Reason::InvalidRequest, message).into());
            }
        };
        let complete = Complete {
            caller: &caller,
            reference,
            argument: &request.argument,
            value: &request.value,
            context: &request.context,
            deadline,
        };
        let result = self.0.router.complete(complete).await?;
        Ok(Response::new(v1::CompletionsCompleteResponse { result }))
    }
}
