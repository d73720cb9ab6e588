//! What holds for every file, whatever is in it. `fuzz/` looks for bytes for which it does not.

use nexus_config::{
    Diagnosis, Layer, Server, Source, Transport, env_file,
    expand::{Surroundings, embrace, expand},
    mask::mask,
    model::Text,
    read::{Dialect, Document, read},
    render::{Look, render},
    show, write,
};
use serde_json::json;
use std::path::Path;

/// Showing hundreds of mistakes takes long, and shows nothing new.
const SHOWN: usize = 4;

/// Reads anything in every format, shows what is wrong with it, and writes what it says again.
pub(crate) fn check(data: &[u8]) {
    for name in ["/x/nexus.json", "/x/a.yaml", "/x/nexus.toml"] {
        let source = match Source::of_bytes(Path::new(name), Layer::User, data) {
            Ok(source) => source,
            Err(diagnosis) => {
                shown(&diagnosis);
                continue;
            }
        };
        masked(&source.text);
        let _ = env_file::parse(&source.text);
        for dialect in [Dialect::default(), of_others()] {
            let document = read(&source, dialect);
            document.diagnoses.iter().take(SHOWN).for_each(shown);
            document.servers.iter().for_each(server);
        }
    }
}

fn of_others() -> Dialect {
    Dialect {
        milliseconds: true,
        bare_variables: true,
        lenient: true,
    }
}

/// Everything that is told has a message, and points at what is there.
fn shown(diagnosis: &Diagnosis) {
    assert!(!diagnosis.message.is_empty() && !diagnosis.code.is_empty());
    for look in [
        Look::Plain,
        Look::Fancy {
            color: false,
            width: 80,
        },
    ] {
        assert!(!render(diagnosis, look).trim().is_empty());
    }
    assert!(diagnosis.to_json().is_object() && !diagnosis.to_string().is_empty());
    if let Some(source) = &diagnosis.source {
        for label in &diagnosis.labels {
            assert!(label.span.start <= source.text.len(), "{diagnosis:?}");
        }
    }
}

/// Whoever points at a place in a text points at the same place in what is shown of it.
fn masked(text: &str) {
    let masked = mask(text);
    assert_eq!(masked.len(), text.len());
    let breaks =
        |text: &str| -> Vec<usize> { text.match_indices('\n').map(|(at, _)| at).collect() };
    assert_eq!(breaks(&masked), breaks(text));
}

fn server(server: &Server) {
    assert!(!server.name.trim().is_empty());
    assert!(server.transport.is_some() || !server.enabled);
    let _ = show::server(server, true).to_string();
    for text in texts(server) {
        fill_in(&text.raw);
    }
    // What we write of it, we read as the same.
    let entry = write::entry(server);
    let text = json!({ "mcpServers": { &server.name: entry } }).to_string();
    let source = Source::new("/again/mcp.json", Layer::User, text);
    let Document {
        servers, diagnoses, ..
    } = read(&source, Dialect::default());
    let errors: Vec<_> = diagnoses.iter().filter(|d| d.is_error()).collect();
    assert!(errors.is_empty(), "{errors:?}\n{}", source.text);
    assert_eq!(servers.len(), 1, "{}", source.text);
    assert_eq!(write::entry(&servers[0]), entry);
    assert!(write::is_same(&servers[0], server) || server.transport.is_none());
}

fn texts(server: &Server) -> Vec<&Text> {
    match &server.transport {
        Some(Transport::Stdio(stdio)) => {
            let mut texts = vec![&stdio.command];
            texts.extend(stdio.args.iter().chain(&stdio.env_files).chain(&stdio.cwd));
            texts
        }
        Some(Transport::Http(http)) => vec![&http.url],
        None => Vec::new(),
    }
}

fn fill_in(text: &str) {
    let surroundings = Surroundings {
        variable: &|name| (name.len() % 2 == 0).then(|| "value".to_owned()),
        home: Some(Path::new("/home/u")),
        workspace: None,
        fetch: &|_| Err("nobody is asked".to_owned()),
    };
    if let Err(problem) = expand(text, true, &surroundings) {
        assert!(!problem.to_string().is_empty() && !problem.fixes().is_empty());
    }
    let _ = embrace(text);
}
