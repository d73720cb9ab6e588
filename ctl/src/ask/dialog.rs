//! How a question is put, from the first line to the answer. PURE.

use super::form::{Field, Form};
use crate::output::safe;
use nexus_client::{ElicitationMode, ElicitationRequest};

/// A question of a server's, and how far it has been answered.
#[derive(Debug)]
pub(super) struct Dialog {
    intro: Vec<String>,
    stage: Stage,
    /// Only for a form.
    form: Option<Form>,
    /// Name and JSON text of what was filled in.
    filled: Vec<(String, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Consent,
    Field(usize),
}

/// What comes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// A form, as a JSON object.
    Filled(String),
    /// To go to a page.
    Agreed,
    Declined,
    Cancelled,
}

/// What is to be shown, and what stands before the answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) lines: Vec<String>,
    pub(super) prompt: String,
}

/// What a typed line leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    Next,
    /// Why not; the question stands.
    Wrong(String),
    Done(Answer),
}

impl Dialog {
    /// Why not, where it cannot be put.
    pub(super) fn new(request: &ElicitationRequest) -> Result<Self, &'static str> {
        let server = safe::line(&request.server);
        let (mut intro, form) = match request.mode() {
            ElicitationMode::Form => {
                let schema = request.requested_schema().unwrap_or_default();
                (vec![format!("{server} asks:")], Some(Form::new(&schema)))
            }
            ElicitationMode::Url => {
                let url = request.url().ok_or("there is no page to go to")?;
                let head = format!("{server} asks you to go to a page:");
                // A URL has no spaces: what looks like one is shown for what it is.
                let url = safe::line(&url.replace(char::is_whitespace, "%20"));
                let mut intro = vec![head, format!("  {url}")];
                // What stands before it in the URL may look like another one.
                intro.extend(host(&url).map(|host| format!("It is a page of {host}.")));
                (intro, None)
            }
            _ => return Err("this is no question that can be put to anybody here"),
        };
        // Indented, so that nothing of it can be taken for ours.
        let message = request.message();
        let lines = safe::text(message.trim()).lines().map(indented).collect();
        let lines: Vec<String> = lines;
        intro.splice(1..1, lines);
        if let Some(form) = form.as_ref().filter(|form| !form.fields.is_empty()) {
            let names: Vec<_> = form.fields.iter().map(Field::label).collect();
            intro.push(format!("It wants to know: {}", names.join(", ")));
        }
        Ok(Self {
            intro,
            stage: Stage::Consent,
            form,
            filled: Vec::new(),
        })
    }

    /// What is said once, at the start.
    pub(super) fn intro(&self) -> Vec<String> {
        self.intro.clone()
    }

    /// What is asked now.
    pub(super) fn question(&self) -> Question {
        match self.field() {
            Some(field) => Question {
                lines: field.lines(),
                prompt: field.prompt(),
            },
            None => Question {
                lines: match self.form {
                    Some(_) => Vec::new(),
                    None => vec!["It is not opened for you.".to_owned()],
                },
                prompt: "[accept/decline/cancel]".to_owned(),
            },
        }
    }

    /// Takes in what was typed; `None` is the end of input.
    pub(super) fn hear(&mut self, line: Option<&str>) -> Heard {
        let Some(line) = line.map(str::trim) else {
            return Heard::Done(Answer::Cancelled);
        };
        let Some(field) = self.field() else {
            return self.consent(line);
        };
        match field.read(line) {
            Err(why) => return Heard::Wrong(why),
            Ok(None) => {}
            Ok(Some(json)) => {
                let name = field.name.clone();
                self.filled.push((name, json));
            }
        }
        self.advance()
    }

    fn consent(&mut self, line: &str) -> Heard {
        match line.to_ascii_lowercase().as_str() {
            "accept" | "a" | "yes" | "y" => match self.form {
                Some(_) => self.advance(),
                None => Heard::Done(Answer::Agreed),
            },
            "decline" | "d" | "no" | "n" => Heard::Done(Answer::Declined),
            "cancel" | "c" => Heard::Done(Answer::Cancelled),
            // Not even Enter is taken for a yes.
            _ => Heard::Wrong("Type accept, decline or cancel.".to_owned()),
        }
    }

    fn advance(&mut self) -> Heard {
        self.stage = match self.stage {
            Stage::Consent => Stage::Field(0),
            Stage::Field(at) => Stage::Field(at + 1),
        };
        if self.field().is_some() {
            return Heard::Next;
        }
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let fields = self.filled.iter();
        let fields = fields.map(|(name, json)| format!("{}:{json}", quoted(name)));
        let fields: Vec<_> = fields.collect();
        Heard::Done(Answer::Filled(format!("{{{}}}", fields.join(","))))
    }

    fn field(&self) -> Option<&Field> {
        match self.stage {
            Stage::Consent => None,
            Stage::Field(at) => self.form.as_ref()?.fields.get(at),
        }
    }
}

/// Who answers there.
fn host(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let host = rest[..end].rsplit('@').next()?;
    (!host.is_empty()).then_some(host)
}

fn indented(line: &str) -> String {
    format!("  {line}")
}

#[cfg(test)]
mod tests;
