//! `nexusctl resources` and `nexusctl templates`.

use super::{
    Context,
    servers::verbatim,
    tools::{MissingJson, nothing, warn_of},
};
use crate::{
    cli::Resources,
    exit::Error,
    output::{safe, table::Table, time},
};
use nexus_client::{Resource, ResourceTemplate};
use serde::Serialize;
use serde_json::value::RawValue;

pub(crate) async fn run(context: &Context, args: Resources) -> Result<(), Error> {
    let nexus = context.connect().await?;
    let list = match args.server() {
        Some(server) => nexus.resources().list_of(server).await?,
        None => nexus.resources().list().await?,
    };
    if context.output.json {
        return context.output.value(&ResourcesJson {
            resources: list.resources.iter().map(ResourceJson::new).collect(),
            missing: MissingJson::list(&list.missing),
        });
    }
    warn_of(context, &list.missing);
    if list.resources.is_empty() {
        return nothing(context, &nexus, "no resources").await;
    }
    context.output.table(&table(&list.resources))
}

pub(crate) async fn templates(context: &Context, args: Resources) -> Result<(), Error> {
    let nexus = context.connect().await?;
    let list = match args.server() {
        Some(server) => nexus.resources().templates_of(server).await?,
        None => nexus.resources().templates().await?,
    };
    if context.output.json {
        return context.output.value(&TemplatesJson {
            templates: list.templates.iter().map(TemplateJson::new).collect(),
            missing: MissingJson::list(&list.missing),
        });
    }
    warn_of(context, &list.missing);
    if list.templates.is_empty() {
        return nothing(context, &nexus, "no templates").await;
    }
    context.output.table(&template_table(&list.templates))
}

fn table(resources: &[Resource]) -> Table {
    let mut table = Table::new(&["SERVER", "URI", "NAME", "TYPE", ">SIZE", "DESCRIPTION"]);
    for resource in resources {
        let about = resource.description().or_else(|| resource.title());
        table.row([
            safe::line(&resource.server).into(),
            safe::line(&resource.uri).into(),
            shown(resource.name()).into(),
            shown(resource.mime_type()).into(),
            resource.size().map_or("-".to_owned(), time::bytes).into(),
            about
                .map(|about| safe::line(&about))
                .unwrap_or_default()
                .into(),
        ]);
    }
    table
}

fn template_table(templates: &[ResourceTemplate]) -> Table {
    let mut table = Table::new(&["SERVER", "TEMPLATE", "NAME", "TYPE", "DESCRIPTION"]);
    for template in templates {
        let about = template.description().or_else(|| template.title());
        table.row([
            safe::line(&template.server).into(),
            safe::line(&template.uri_template).into(),
            shown(template.name()).into(),
            shown(template.mime_type()).into(),
            about
                .map(|about| safe::line(&about))
                .unwrap_or_default()
                .into(),
        ]);
    }
    table
}

fn shown(known: Option<String>) -> String {
    known.map_or("-".to_owned(), |known| safe::line(&known))
}

#[derive(Serialize)]
struct ResourcesJson<'a> {
    resources: Vec<ResourceJson<'a>>,
    missing: Vec<MissingJson<'a>>,
}

#[derive(Serialize)]
struct ResourceJson<'a> {
    server: &'a str,
    uri: &'a str,
    definition: Option<&'a RawValue>,
}

impl<'a> ResourceJson<'a> {
    fn new(resource: &'a Resource) -> Self {
        Self {
            server: &resource.server,
            uri: &resource.uri,
            definition: verbatim(&resource.definition),
        }
    }
}

#[derive(Serialize)]
struct TemplatesJson<'a> {
    templates: Vec<TemplateJson<'a>>,
    missing: Vec<MissingJson<'a>>,
}

#[derive(Serialize)]
struct TemplateJson<'a> {
    server: &'a str,
    uri_template: &'a str,
    definition: Option<&'a RawValue>,
}

impl<'a> TemplateJson<'a> {
    fn new(template: &'a ResourceTemplate) -> Self {
        Self {
            server: &template.server,
            uri_template: &template.uri_template,
            definition: verbatim(&template.definition),
        }
    }
}
