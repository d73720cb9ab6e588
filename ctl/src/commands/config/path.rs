//! `nexusctl config path`.

use super::{Context, load};
use crate::{
    exit::Error,
    output::{style, table::Cell, table::Table},
};
use nexus_config::Layer;
use serde_json::json;

pub(crate) fn run(context: &Context) -> Result<(), Error> {
    let (places, loaded) = load(None);
    let store = places.trust_file();
    let mut rows = Vec::new();
    for (path, content) in &loaded.watched {
        if Some(path) == store.as_ref() {
            continue;
        }
        let used = loaded.files.iter().find(|file| file.path == *path);
        let refused = loaded
            .diagnoses
            .iter()
            .any(|d| d.source.as_ref().is_some_and(|file| file.path == *path));
        let state = match (used, content) {
            (Some(_), _) => "used",
            (None, None) if !refused => "absent",
            (None, _) => "left out",
        };
        let known = places
            .files()
            .into_iter()
            .find(|(_, file)| file == path)
            .map(|(layer, _)| layer);
        let layer = used
            .map(|file| file.layer)
            .or(known)
            .unwrap_or(Layer::Project);
        rows.push((layer, path.clone(), state));
    }
    for diagnosis in loaded
        .diagnoses
        .iter()
        .filter(|d| d.code == "trust::needed")
    {
        if let Some(file) = &diagnosis.source
            && !rows.iter().any(|(_, path, _)| *path == file.path)
        {
            rows.push((Layer::Project, file.path.clone(), "not trusted"));
        }
    }
    if context.output.json {
        let row = |(layer, path, state): &(Layer, std::path::PathBuf, &str)| json!({ "layer": layer.as_str(), "path": path, "state": state });
        return context
            .output
            .value(&rows.iter().map(row).collect::<Vec<_>>());
    }
    let mut table = Table::new(&["LAYER", "STATE", "PATH"]);
    for (layer, path, state) in rows {
        let look = match state {
            "used" => style::GOOD,
            "absent" => style::DIM,
            _ => style::CARE,
        };
        table.row([
            layer.as_str().into(),
            Cell::styled(state, look),
            path.display().to_string().into(),
        ]);
    }
    context.output.table(&table)
}
