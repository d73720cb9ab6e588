//! `nexus.resources()`.

use crate::{
    ReadResult, ResourceEvents, ResourceList, Result, TemplateList,
    rpc::{Repeat, request},
    transport::Transport,
};
use nexus_proto::v1;

/// What the servers let agents read; made by [`Nexus::resources`](crate::Nexus::resources).
///
/// A resource is addressed by its server and its URI. Where only one server lists a URI, the name of
/// the server may be left out.
#[derive(Debug, Clone, Copy)]
pub struct Resources<'a> {
    pub(crate) transport: &'a Transport,
}

impl Resources<'_> {
    /// The resources of all servers; a server whose resources are not known is in
    /// [`ResourceList::missing`].
    ///
    /// # Errors
    /// When the daemon does not answer.
    pub async fn list(&self) -> Result<ResourceList> {
        self.list_named("").await
    }

    /// The resources of one server.
    ///
    /// # Errors
    /// When there is no server of that name.
    pub async fn list_of(&self, server: &str) -> Result<ResourceList> {
        self.list_named(server).await
    }

    async fn list_named(&self, server: &str) -> Result<ResourceList> {
        let ask = |transport: Transport| async move {
            let server = server.to_owned();
            let message = v1::ResourcesListRequest { server };
            transport.resources().list(request(message, None)).await
        };
        let answer = self.transport.ask(Repeat::Freely, ask).await?;
        ResourceList::from_wire(answer)
    }

    /// The resource templates of all servers: families of resources that are not listed one by one.
    ///
    /// # Errors
    /// When the daemon does not answer.
    pub async fn templates(&self) -> Result<TemplateList> {
        self.templates_named("").await
    }

    /// The resource templates of one server.
    ///
    /// # Errors
    /// When there is no server of that name.
    pub async fn templates_of(&self, server: &str) -> Result<TemplateList> {
        self.templates_named(server).await
    }

    async fn templates_named(&self, server: &str) -> Result<TemplateList> {
        let ask = |transport: Transport| async move {
            let server = server.to_owned();
            let message = request(v1::ResourcesListTemplatesRequest { server }, None);
            transport.resources().list_templates(message).await
        };
        let answer = self.transport.ask(Repeat::Freely, ask).await?;
        TemplateList::from_wire(answer)
    }

    /// What a resource holds, where only one server lists it.
    ///
    /// ```no_run
    /// # async fn f(nexus: nexus_client::Nexus) -> Result<(), nexus_client::Error> {
    /// let notes = nexus.resources().read("file:///notes.txt").await?;
    /// println!("{} says: {}", notes.server(), notes.text());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Reason::ResourceNotFound`](crate::Reason::ResourceNotFound) when no server lists it,
    /// [`Reason::AmbiguousName`](crate::Reason::AmbiguousName) when several do.
    pub async fn read(&self, uri: &str) -> Result<ReadResult> {
        self.read_from("", uri).await
    }

    /// What a resource of that server holds, listed or not.
    ///
    /// # Errors
    /// When the server does not have it.
    pub async fn read_from(&self, server: &str, uri: &str) -> Result<ReadResult> {
        let ask = |transport: Transport| async move {
            let message = v1::ResourcesReadRequest {
                server: server.to_owned(),
                uri: uri.to_owned(),
            };
            transport.resources().read(request(message, None)).await
        };
        let answer = self.transport.ask(Repeat::Freely, ask).await?;
        ReadResult::from_wire(answer)
    }

    /// Tells when a resource changes, where only one server lists it.
    ///
    /// ```no_run
    /// # async fn f(nexus: nexus_client::Nexus) -> Result<(), nexus_client::Error> {
    /// use nexus_client::ResourceEvent;
    ///
    /// let mut events = nexus.resources().subscribe("file:///notes.txt").await?;
    /// while let Some(event) = events.next().await {
    ///     if let ResourceEvent::Updated { uri, .. } = event? {
    ///         println!("{}", nexus.resources().read(&uri).await?.text());
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Resources::read`], and [`Reason::NotSupported`](crate::Reason::NotSupported) when the
    /// server does not tell of changes.
    pub async fn subscribe(&self, uri: &str) -> Result<ResourceEvents> {
        self.subscribe_on("", uri).await
    }

    /// Tells when a resource of that server changes.
    ///
    /// # Errors
    /// When the server does not have it, or does not tell of changes.
    pub async fn subscribe_on(&self, server: &str, uri: &str) -> Result<ResourceEvents> {
        let ask = |transport: Transport| async move {
            let message = v1::ResourcesSubscribeRequest {
                server: server.to_owned(),
                uri: uri.to_owned(),
            };
            transport
                .resources()
                .subscribe(request(message, None))
                .await
        };
        let events = self.transport.ask(Repeat::Freely, ask).await?;
        Ok(ResourceEvents::new(self.transport.clone(), events))
    }
}
