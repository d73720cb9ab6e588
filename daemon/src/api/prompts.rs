//! The service `Prompts`.

use super::{Context, caller, deadline, lists};
use crate::{
    catalog::{Item as _, Prompt},
    pool::Server,
    router::GetPrompt,
};
use nexus_proto::v1::{self, prompts_server};
use std::sync::Arc;
use tonic::{Request, Response, Status};

pub(super) struct Prompts(pub(super) Arc<Context>);

#[tonic::async_trait]
impl prompts_server::Prompts for Prompts {
    async fn list(
        &self,
        request: Request<v1::PromptsListRequest>,
    ) -> Result<Response<v1::PromptsListResponse>, Status> {
        let caller = caller::of(&self.0, &request);
        let servers = lists::servers(&self.0, &request.into_inner().server, &caller)?;
        let prompts = |server: &Arc<Server>| {
            let names = self.0.catalog.of::<Prompt>(server, &caller)?;
            Some(names.list.iter().map(|prompt| wire(prompt)).collect())
        };
        let (prompts, missing) = lists::gather(&servers, &caller, Prompt::KIND, prompts).await;
        Ok(Response::new(v1::PromptsListResponse { prompts, missing }))
    }

    async fn get(
        &self,
        request: Request<v1::PromptsGetRequest>,
    ) -> Result<Response<v1::PromptsGetResponse>, Status> {
        let deadline = deadline::of(request.metadata());
        let caller = caller::of(&self.0, &request);
        let v1::PromptsGetRequest { name, arguments } = request.into_inner();
        let get = GetPrompt {
            caller: &caller,
            name: &name,
            arguments,
            deadline,
            round: None,
        };
        let result = self.0.router.prompt(get).await?;
        Ok(Response::new(v1::PromptsGetResponse { result }))
    }
}

fn wire(prompt: &Prompt) -> v1::Prompt {
    v1::Prompt {
        name: prompt.name.clone(),
        server: prompt.server.clone(),
        prompt: prompt.prompt.clone(),
        definition: prompt.definition.clone(),
    }
}
