//! `nexusctl config check`.

use super::{Context, load};
use crate::exit::Error;
use nexus_config::{
    Diagnosis, Loaded,
    layers::Places,
    resolve::{self, resolve},
    secret::How,
};
use serde_json::{Value, json};
use std::path::PathBuf;

pub(crate) fn run(context: &Context, files: &[PathBuf]) -> Result<(), Error> {
    let checked: Vec<(String, usize, Vec<Diagnosis>)> = if files.is_empty() {
        let (places, loaded) = load(None);
        let names: Vec<String> = loaded
            .files
            .iter()
            .map(|file| file.path.display().to_string())
            .collect();
        let name = if names.is_empty() {
            "no configuration".to_owned()
        } else {
            names.join(", ")
        };
        vec![(name, loaded.enabled().count(), all(&places, &loaded))]
    } else {
        let check = |file: &PathBuf| {
            let (places, loaded) = load(Some(file));
            (
                file.display().to_string(),
                loaded.enabled().count(),
                all(&places, &loaded),
            )
        };
        files.iter().map(check).collect()
    };
    let output = &context.output;
    let failed = checked
        .iter()
        .any(|(_, _, found)| found.iter().any(Diagnosis::is_error));
    if output.json {
        let found: Vec<Value> = checked
            .iter()
            .flat_map(|(_, _, found)| found)
            .map(Diagnosis::to_json)
            .collect();
        output.value(&json!({ "ok": !failed, "diagnoses": found }))?;
    } else {
        for (name, servers, found) in &checked {
            found
                .iter()
                .for_each(|diagnosis| output.diagnosis(diagnosis));
            let errors = found
                .iter()
                .filter(|diagnosis| diagnosis.is_error())
                .count();
            let plural =
                |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
            let verdict = match errors {
                0 => "good".to_owned(),
                n => plural(n, "error"),
            };
            output.line(&format!(
                "{name}: {}, {verdict}",
                plural(*servers, "server")
            ))?;
        }
    }
    if failed { Err(Error::Told) } else { Ok(()) }
}

/// All that is wrong, also with what variables stand for. No program is run for that.
pub(crate) fn all(places: &Places, loaded: &Loaded) -> Vec<Diagnosis> {
    let mut found = loaded.diagnoses.clone();
    found.extend(resolve::headers(&loaded.settings, places, How::Look).1);
    for server in loaded.enabled() {
        found.extend(resolve(server, places, How::Look).1);
    }
    found
}
