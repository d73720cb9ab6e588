//! `nexusctl doctor`.

use super::{
    Context,
    config::{self, check},
};
use crate::{
    agents,
    exit::Error,
    output::{safe, style, time},
};
use nexus_client::{Error as ClientError, Nexus, ServerState};
use nexus_config::{
    Diagnosis, Server, Transport,
    remedy::{self, Remedy},
    resolve::{Resolved, resolve},
    secret::How,
    write::is_same,
};
use serde_json::{Value, json};
use std::{
    env, fs,
    path::{Path, PathBuf},
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Good,
    Care,
    Bad,
}

/// One thing that was looked at.
struct Finding {
    about: String,
    verdict: Verdict,
    text: String,
    fixes: Vec<String>,
}

pub(crate) async fn run(context: &Context) -> Result<(), Error> {
    let mut findings = Vec::new();
    let (places, loaded) = config::load(None);
    files(&mut findings, &loaded.files, &check::all(&places, &loaded));
    for server in loaded.enabled() {
        program(
            &mut findings,
            server,
            resolve(server, &places, How::Look).0.as_ref(),
        );
    }
    match context.connect().await {
        Ok(nexus) => daemon(&mut findings, &nexus).await?,
        Err(Error::Client(
            error @ (ClientError::Unreachable { .. } | ClientError::Endpoint(_)),
        )) => findings.push(Finding {
            about: "daemon".to_owned(),
            verdict: Verdict::Bad,
            text: error.to_string(),
            fixes: vec![
                "start it with `nexusd`, or for good with `nexusctl service install`".to_owned(),
            ],
        }),
        Err(error) => return Err(error),
    }
    let ours: Vec<&Server> = loaded.seen_from(None).filter(|s| s.enabled).collect();
    agents(&mut findings, &ours);
    report(context, &findings)
}

fn files(
    findings: &mut Vec<Finding>,
    files: &[std::sync::Arc<nexus_config::Source>],
    diagnoses: &[Diagnosis],
) {
    for file in files {
        let is_about = |diagnosis: &&Diagnosis| {
            diagnosis
                .source
                .as_ref()
                .is_some_and(|source| source.path == file.path)
        };
        if !diagnoses.iter().any(|diagnosis| is_about(&diagnosis)) {
            findings.push(good(
                "config",
                format!("{} ({})", file.path.display(), file.layer),
            ));
        }
    }
    if files.is_empty() && diagnoses.is_empty() {
        findings.push(Finding {
            about: "config".to_owned(),
            verdict: Verdict::Care,
            text: "nothing is configured: the demo is served".to_owned(),
            fixes: vec!["`nexusctl import` shows which servers your agents have".to_owned()],
        });
    }
    for diagnosis in diagnoses {
        findings.push(Finding {
            about: "config".to_owned(),
            verdict: if diagnosis.is_error() {
                Verdict::Bad
            } else {
                Verdict::Care
            },
            text: diagnosis.to_string(),
            fixes: diagnosis.fixes.clone(),
        });
    }
}

/// Whether the program of a server can be found. The PATH of the daemon may be another than ours.
fn program(findings: &mut Vec<Finding>, server: &Server, resolved: Option<&Resolved>) {
    let (
        Some(Transport::Stdio(_)),
        Some(Resolved::Stdio {
            command, cwd, env, ..
        }),
    ) = (&server.transport, resolved)
    else {
        return;
    };
    let path = env
        .get("PATH")
        .map(Into::into)
        .or_else(|| env::var_os("PATH"))
        .unwrap_or_default();
    let about = format!("server {}", safe::line(&server.name));
    let is_path = command.contains(['/', '\\']);
    let candidates: Vec<PathBuf> = if is_path {
        vec![cwd.clone().unwrap_or_default().join(command)]
    } else {
        env::split_paths(&path)
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join(command))
            .collect()
    };
    let found = candidates
        .iter()
        .flat_map(|path| spellings(path))
        .find(|path| path.is_file());
    let trouble = |text: String, remedy: Remedy| Finding {
        about: about.clone(),
        verdict: Verdict::Bad,
        text,
        fixes: remedy.fixes,
    };
    findings.push(match found {
        Some(path) if !is_executable(&path) => trouble(
            format!("{} is not executable", path.display()),
            remedy::not_executable(&path.display().to_string()),
        ),
        Some(path) => good(&about, format!("{command} is {}", path.display())),
        None if is_path => trouble(
            format!("{command} does not exist"),
            remedy::no_such_file(command),
        ),
        None => trouble(
            format!("{command} is not on the PATH ({})", path.to_string_lossy()),
            remedy::not_on_path(command, cfg!(windows)),
        ),
    });
}

fn spellings(path: &Path) -> Vec<PathBuf> {
    let mut all = vec![path.to_owned()];
    if cfg!(windows) {
        for ending in ["exe", "cmd", "bat", "com"] {
            let mut name = path.as_os_str().to_owned();
            name.push(format!(".{ending}"));
            all.push(name.into());
        }
    }
    all
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok()
}

async fn daemon(findings: &mut Vec<Finding>, nexus: &Nexus) -> Result<(), Error> {
    let status = nexus.daemon().status().await?;
    let ours = env!("CARGO_PKG_VERSION");
    findings.push(good(
        "daemon",
        format!(
            "{} at {}, pid {}",
            status.version, status.endpoint, status.pid
        ),
    ));
    if status.version != ours {
        findings.push(Finding {
            about: "daemon".to_owned(),
            verdict: Verdict::Care,
            text: format!("the daemon is {}, nexusctl is {ours}", status.version),
            fixes: vec!["restart the daemon to have the new one".to_owned()],
        });
    }
    let servers = nexus.servers().list().await?;
    let looked = servers.iter().map(|server| handshake(nexus, server));
    findings.extend(futures_util::future::join_all(looked).await);
    Ok(())
}

/// Whether a server answers. One that rests is started for that.
async fn handshake(nexus: &Nexus, server: &nexus_client::Server) -> Finding {
    let about = format!("server {}", safe::line(&server.name));
    let finding = |verdict, text, fixes| Finding {
        about: about.clone(),
        verdict,
        text,
        fixes,
    };
    let name = server.name.as_str();
    match server.state {
        ServerState::CrashLoop | ServerState::Failed => {
            let state = server.state.as_str();
            match &server.last_failure {
                Some(failure) => {
                    let text = format!("{state}: {}", failure.message);
                    return finding(Verdict::Bad, text, failure.fixes.clone());
                }
                None => {
                    let fix = format!("`nexusctl servers {}` tells more", server.slug);
                    return finding(Verdict::Bad, state.to_owned(), vec![fix]);
                }
            }
        }
        ServerState::Stopped => {
            let fix = format!("`nexusctl start {}` starts it", server.slug);
            return finding(Verdict::Care, "stopped by you".to_owned(), vec![fix]);
        }
        _ => {}
    }
    let answered = nexus.servers().ping(name).await;
    let now = nexus.servers().get(name).await;
    let now = now.unwrap_or_else(|_| server.clone());
    let (state, tools) = (now.state, now.tools);
    match answered {
        Ok(after) => {
            let plural = if tools == 1 { "" } else { "s" };
            let after = time::short(after);
            let text = format!("answers after {after}, {tools} tool{plural}");
            match &*now.warnings {
                [] => finding(Verdict::Good, text, Vec::new()),
                [first, rest @ ..] => {
                    let text = match rest.len() {
                        0 => format!("{text}, but {first}"),
                        more => format!("{text}, but {first}; and {more} more like this"),
                    };
                    let fix = format!("`nexusctl servers {}` shows all of it", server.slug);
                    finding(Verdict::Care, text, vec![fix])
                }
            }
        }
        Err(_) if state == ServerState::Starting => {
            let text = "takes long to start: it has not answered yet".to_owned();
            let fix = format!("`nexusctl logs {}` shows what it does", server.slug);
            finding(Verdict::Care, text, vec![fix])
        }
        Err(error) => {
            let details = error.failure().map(|failure| &failure.details);
            let fixes = details.map(|details| details.hint.iter().chain(&details.fixes));
            let fixes = fixes.into_iter().flatten().cloned().collect();
            finding(Verdict::Bad, error.to_string(), fixes)
        }
    }
}

fn agents(findings: &mut Vec<Finding>, ours: &[&Server]) {
    for agent in agents::ALL {
        let Some(found) = agent
            .file()
            .and_then(|path| agent.read(&path).ok().flatten())
        else {
            continue;
        };
        let servers = &found.document.servers;
        let doubles: Vec<&str> = servers
            .iter()
            .filter(|server| ours.iter().any(|other| is_same(server, other)))
            .map(|server| server.name.as_str())
            .collect();
        let about = format!("agent {}", agent.id);
        if let Some(broken) = found
            .document
            .diagnoses
            .iter()
            .find(|diagnosis| diagnosis.code == "config::syntax")
        {
            findings.push(Finding {
                about,
                verdict: Verdict::Care,
                text: broken.to_string(),
                fixes: broken.fixes.clone(),
            });
        } else if !doubles.is_empty() {
            findings.push(Finding {
                about,
                verdict: Verdict::Care,
                text: format!(
                    "starts its own copies of {}",
                    safe::line(&doubles.join(", "))
                ),
                fixes: vec![format!(
                    "`nexusctl connect {}` makes it use Nexus instead",
                    agent.id
                )],
            });
        } else if servers.iter().any(agents::is_nexus) {
            findings.push(good(&about, "uses Nexus".to_owned()));
        }
    }
}

fn good(about: &str, text: String) -> Finding {
    Finding {
        about: about.to_owned(),
        verdict: Verdict::Good,
        text,
        fixes: Vec::new(),
    }
}

fn report(context: &Context, findings: &[Finding]) -> Result<(), Error> {
    let output = &context.output;
    let bad = findings
        .iter()
        .filter(|finding| finding.verdict == Verdict::Bad)
        .count();
    let word = |verdict| match verdict {
        Verdict::Good => ("ok", style::GOOD),
        Verdict::Care => ("care", style::CARE),
        Verdict::Bad => ("bad", style::BAD),
    };
    if output.json {
        let row = |finding: &Finding| -> Value {
            json!({ "about": finding.about, "verdict": word(finding.verdict).0, "text": finding.text, "fixes": finding.fixes })
        };
        output.value(
            &json!({ "ok": bad == 0, "findings": findings.iter().map(row).collect::<Vec<_>>() }),
        )?;
    } else {
        for finding in findings {
            let (word, look) = word(finding.verdict);
            let mark = output.paint(&format!("{word:<4}"), look);
            output.line(&format!(
                "{mark}  {}: {}",
                finding.about,
                output.safe(&finding.text)
            ))?;
            for fix in &finding.fixes {
                output.line(&format!(
                    "      {} {}",
                    output.paint("hint:", style::HINT),
                    output.safe(fix)
                ))?;
            }
        }
        let summary = match bad {
            0 => "all is well".to_owned(),
            1 => "one thing does not work".to_owned(),
            n => format!("{n} things do not work"),
        };
        output.line(&format!("\n{summary}"))?;
    }
    if bad == 0 { Ok(()) } else { Err(Error::Told) }
}
