//! Questions about a topic: how they are put in either era, and what is made of the answers.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::sync::mpsc::Receiver;

use serde_json::{Map, Value, json};

use super::super::ask::{Ask, Needs, bad_state, questions};
use super::super::call::Ticket;
use super::super::session::Answer;
use crate::conformance::Topic;
use crate::message::Params;
use crate::reply::{Outcome, Reply, RpcError, quoted};

/// Answers by the keys of their questions.
type Answers = Map<String, Value>;

/// Questions, round after round.
pub(super) struct Inquiry {
    rounds: Vec<Vec<Ask>>,
    /// A modern client is given a state to bring back, which belongs to this.
    state: Option<&'static str>,
    /// What the client cannot be asked is left out, if anything is left then.
    is_modest: bool,
    conclude: Box<dyn Fn(&Answers) -> Outcome + Send>,
}

impl Inquiry {
    pub(super) fn about(topic: &Topic) -> Inquiry {
        let rounds = rounds(topic);
        let state = match topic {
            Topic::Confirmation(name) => Some(*name),
            Topic::Several => Some("multiple_inputs"),
            Topic::Steps => Some("multi_round"),
            _ => None,
        };
        let topic = topic.clone();
        Inquiry {
            rounds,
            state,
            is_modest: topic == Topic::Capabilities,
            conclude: Box::new(move |answers| conclude(&topic, answers)),
        }
    }

    /// The same without what the client cannot be asked; what it lacks, if that is not possible.
    pub(super) fn of_what_can_be_asked(mut self, declared: &Value) -> Result<Inquiry, Vec<Needs>> {
        let can = |ask: &Ask| ask.needs.met_by(declared);
        if self.is_modest && self.rounds.iter().flatten().any(can) {
            self.rounds.iter_mut().for_each(|round| round.retain(can));
        }
        let needs = self.rounds.iter().flatten().filter(|ask| !can(ask));
        let lacks: Vec<Needs> = needs.map(|ask| ask.needs).collect();
        match lacks.is_empty() {
            true => Ok(self),
            false => Err(lacks),
        }
    }

    /// Modern: one round. All that is known of those before comes with the call.
    pub(super) fn step(&self, params: &Params<'_>) -> Reply {
        let mut told = match (self.state, params.request_state.as_deref()) {
            (Some(name), Some(state)) => opened(name, state).ok_or_else(bad_state)?,
            _ => Answers::new(),
        };
        let responses = match params.input_responses {
            // Without the state nobody can tell what was asked.
            Some(raw) if self.state.is_none() || params.request_state.is_some() => {
                serde_json::from_str(raw.get())
                    .map_err(|_| RpcError::invalid_params("inputResponses must be an object"))?
            }
            _ => Answers::new(),
        };
        for ask in self.round_after(&told).into_iter().flatten() {
            if let Some(answer) = responses.get(ask.key) {
                check(ask, answer)?;
                told.insert(ask.key.to_owned(), answer.clone());
            }
        }
        let Some(round) = self.round_after(&told) else {
            return Ok((self.conclude)(&told));
        };
        // What is known already is not asked again.
        let open = round.iter().filter(|ask| !told.contains_key(ask.key));
        let state = self.state.map(|name| sealed(name, &told));
        Ok(questions(open, state.as_deref()))
    }

    /// Legacy: asks by requests of our own; the call may be cancelled meanwhile.
    pub(super) fn put(&self, ticket: &Ticket, inbox: &Receiver<Answer>) {
        let mut told = Answers::new();
        for round in &self.rounds {
            let numbers: Vec<u64> = round.iter().map(|ask| ask.send(ticket)).collect();
            for _ in round {
                let Ok(answer) = inbox.recv() else { return };
                let asked = numbers.iter().position(|number| *number == answer.question);
                let Some(ask) = asked.and_then(|index| round.get(index)) else {
                    return;
                };
                let mut whole: Value = serde_json::from_str(&answer.text).unwrap_or_default();
                let result = whole["result"].take();
                if check(ask, &result).is_err() {
                    let why = format!("{} was not answered: {}", ask.method, answer.text);
                    return ticket.finish(Outcome::text(&why, r#""isError":true"#));
                }
                told.insert(ask.key.to_owned(), result);
            }
        }
        ticket.finish((self.conclude)(&told));
    }

    /// The first round that is not answered.
    fn round_after(&self, told: &Answers) -> Option<&Vec<Ask>> {
        let is_open = |round: &&Vec<Ask>| round.iter().any(|ask| !told.contains_key(ask.key));
        self.rounds.iter().find(is_open)
    }
}

/// Checks that an answer is one to such a question.
fn check(ask: &Ask, answer: &Value) -> Result<(), RpcError> {
    let has = |member| answer.get(member).is_some_and(|value| !value.is_null());
    let fits = match ask.method {
        "elicitation/create" => answer["action"].is_string(),
        "roots/list" => answer["roots"].is_array(),
        _ => has("content") && has("role"),
    };
    match fits {
        true => Ok(()),
        false => Err(RpcError::invalid_params(format!(
            "the answer to {} is none to {}",
            ask.key, ask.method
        ))),
    }
}

/// What was told so far, with a seal by which a change of it is seen.
fn sealed(name: &str, told: &Answers) -> String {
    let told = Value::Object(told.clone()).to_string();
    format!("{:016x}.{told}", seal(name, &told))
}

fn opened(name: &str, state: &str) -> Option<Answers> {
    let (digits, told) = state.split_once('.')?;
    let is_whole = u64::from_str_radix(digits, 16) == Ok(seal(name, told));
    is_whole.then(|| serde_json::from_str(told).ok()).flatten()
}

/// The same in every process: a client may bring a state to another one.
fn seal(name: &str, told: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    ("nexus-test-server", name, told).hash(&mut hasher);
    hasher.finish()
}

fn rounds(topic: &Topic) -> Vec<Vec<Ask>> {
    let name = r#"{"name":{"type":"string"}}"#;
    match topic {
        Topic::Sampling(prompt) => vec![vec![sampling("sampling", prompt, 100)]],
        Topic::Elicitation(message) => vec![vec![form(
            "elicitation",
            message,
            r#"{"username":{"type":"string","description":"User's response"},"email":{"type":"string","description":"User's email address"}}"#,
            &["username", "email"],
        )]],
        Topic::Defaults => vec![vec![form(
            "elicitation",
            "Please look at the defaults",
            DEFAULTS,
            &[],
        )]],
        Topic::Choices => vec![vec![form("elicitation", "Please choose", CHOICES, &[])]],
        Topic::Streaming => vec![vec![form(
            "user_name",
            "What is your name?",
            name,
            &["name"],
        )]],
        Topic::Name => vec![vec![form(
            "user_name",
            "What is your name?",
            name,
            &["name"],
        )]],
        Topic::Capital => vec![vec![sampling(
            "capital_question",
            "What is the capital of France?",
            100,
        )]],
        Topic::Roots => vec![vec![roots()]],
        Topic::Confirmation(_) => vec![vec![form(
            "confirm",
            "Please confirm",
            r#"{"ok":{"type":"boolean"}}"#,
            &["ok"],
        )]],
        Topic::Several => vec![vec![
            form("user_name", "What is your name?", name, &["name"]),
            sampling("greeting", "Generate a greeting", 50),
            roots(),
        ]],
        Topic::Steps => vec![
            vec![form("step1", "Step 1: What is your name?", name, &["name"])],
            vec![form(
                "step2",
                "Step 2: What is your favorite color?",
                r#"{"color":{"type":"string"}}"#,
                &["color"],
            )],
        ],
        Topic::Capabilities => vec![vec![
            form("user_name", "What is your name?", name, &["name"]),
            sampling("greeting", "Generate a greeting", 50),
        ]],
        Topic::Context => vec![vec![form(
            "user_context",
            "What context should the prompt use?",
            r#"{"context":{"type":"string"}}"#,
            &["context"],
        )]],
    }
}

const DEFAULTS: &str = r#"{"name":{"type":"string","description":"User name","default":"John Doe"},"age":{"type":"integer","description":"User age","default":30},"score":{"type":"number","description":"User score","default":95.5},"status":{"type":"string","description":"User status","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","description":"Verification status","default":true}}"#;

const CHOICES: &str = r#"{"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},"untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},"titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First Choice"},{"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}}"#;

fn form(key: &'static str, message: &str, properties: &str, required: &[&str]) -> Ask {
    let (message, required) = (quoted(message), json!(required));
    let schema = format!(r#"{{"type":"object","properties":{properties},"required":{required}}}"#);
    let params = format!(r#"{{"message":{message},"requestedSchema":{schema}}}"#);
    Ask {
        key,
        method: "elicitation/create",
        needs: Needs::Form,
        params: params.into(),
    }
}

fn sampling(key: &'static str, text: &str, tokens: u32) -> Ask {
    let text = quoted(text);
    let message = format!(r#"{{"role":"user","content":{{"type":"text","text":{text}}}}}"#);
    let params = format!(r#"{{"messages":[{message}],"maxTokens":{tokens}}}"#);
    Ask {
        key,
        method: "sampling/createMessage",
        needs: Needs::Sampling,
        params: params.into(),
    }
}

fn roots() -> Ask {
    Ask {
        key: "client_roots",
        method: "roots/list",
        needs: Needs::Roots,
        params: "{}".into(),
    }
}

fn conclude(topic: &Topic, answers: &Answers) -> Outcome {
    let of = |key: &str| answers.get(key).cloned().unwrap_or_default();
    let user = |key: &str, field: &str| {
        let value = of(key);
        match (value["action"].as_str(), value["content"][field].as_str()) {
            (Some("accept"), Some(text)) => text.to_owned(),
            _ => "stranger".to_owned(),
        }
    };
    let model = |key: &str| {
        let value = of(key);
        let text = value["content"]["text"].as_str();
        text.map_or_else(|| value["content"].to_string(), str::to_owned)
    };
    let filled = |key: &str| {
        let value = of(key);
        let action = value["action"].as_str().unwrap_or_default().to_owned();
        (action, value["content"].to_string())
    };
    let text = match topic {
        Topic::Sampling(_) => format!("LLM response: {}", model("sampling")),
        Topic::Elicitation(_) => {
            let (action, content) = filled("elicitation");
            format!("User response: action: {action}, content: {content}")
        }
        Topic::Defaults | Topic::Choices => {
            let (action, content) = filled("elicitation");
            format!("Elicitation completed: action={action}, content={content}")
        }
        Topic::Streaming | Topic::Name => format!("Hello, {}!", user("user_name", "name")),
        Topic::Capital => model("capital_question"),
        Topic::Roots => format!("The folders: {}", of("client_roots")["roots"]),
        Topic::Confirmation(_) => format!("state-ok: {}", of("confirm")["content"]["ok"]),
        Topic::Several => format!(
            "{}: {} ({})",
            user("user_name", "name"),
            model("greeting"),
            of("client_roots")["roots"]
        ),
        Topic::Steps => format!(
            "{} likes {}.",
            user("step1", "name"),
            user("step2", "color")
        ),
        Topic::Capabilities => format!("Told: {}", Value::Object(answers.clone())),
        Topic::Context => {
            let about = quoted(&format!(
                "Please talk about: {}",
                user("user_context", "context")
            ));
            return Outcome::complete(format!(
                r#""messages":[{{"role":"user","content":{{"type":"text","text":{about}}}}}]"#
            ));
        }
    };
    Outcome::text(&text, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(topic: &Topic, params: &Value) -> Result<Value, i32> {
        let text = params.to_string();
        let raw = serde_json::value::RawValue::from_string(text).unwrap();
        let params = crate::message::params(Some(&raw)).unwrap();
        let outcome = Inquiry::about(topic)
            .step(&params)
            .map_err(|error| error.code)?;
        let members = String::from_utf8(outcome.members).unwrap();
        let mut value: Value = serde_json::from_str(&format!("{{{members}}}")).unwrap();
        value["kind"] = outcome.kind.into();
        Ok(value)
    }

    fn accept(content: &Value) -> Value {
        json!({"action": "accept", "content": content})
    }

    #[test]
    fn what_is_answered_is_not_asked_and_what_is_not_is_asked_again() {
        let asked = step(&Topic::Name, &json!({})).unwrap();
        assert_eq!(asked["kind"], "input_required");
        assert!(asked.get("requestState").is_none());
        let wrong = json!({"inputResponses": {"wrong": accept(&json!({}))}});
        assert_eq!(step(&Topic::Name, &wrong).unwrap(), asked);
        let extra =
            json!({"inputResponses": {"user_name": accept(&json!({"name": "Ann"})), "x": 1}});
        let done = step(&Topic::Name, &extra).unwrap();
        assert_eq!(done["content"][0]["text"], "Hello, Ann!");
        let none = json!({"inputResponses": {"user_name": 12345}});
        assert_eq!(step(&Topic::Name, &none), Err(-32602));
    }

    #[test]
    fn a_state_leads_from_round_to_round_unless_it_was_changed() {
        let first = step(&Topic::Steps, &json!({})).unwrap();
        let state = first["requestState"].as_str().unwrap();
        let told = json!({"step1": accept(&json!({"name": "Ann"}))});
        let again = json!({"requestState": state, "inputResponses": told});
        let second = step(&Topic::Steps, &again).unwrap();
        assert!(second["inputRequests"]["step2"].is_object(), "{second}");
        assert_ne!(second["requestState"], first["requestState"]);
        let told = json!({"step2": accept(&json!({"color": "blue"}))});
        let last = json!({"requestState": second["requestState"], "inputResponses": told});
        let done = step(&Topic::Steps, &last).unwrap();
        assert_eq!(done["content"][0]["text"], "Ann likes blue.");
        let changed = json!({"requestState": format!("{state}-TAMPERED"), "inputResponses": told});
        assert_eq!(step(&Topic::Steps, &changed), Err(-32602));
        // Nor is it good for anything else.
        let moved = json!({"requestState": state, "inputResponses": told});
        assert_eq!(step(&Topic::Several, &moved), Err(-32602));
    }

    #[test]
    fn only_what_a_client_can_be_asked_is_asked() {
        let inquiry = |topic, declared| Inquiry::about(topic).of_what_can_be_asked(&declared);
        let modest = inquiry(&Topic::Capabilities, json!({"sampling": {}}));
        let keys: Vec<_> = modest.ok().unwrap().rounds[0]
            .iter()
            .map(|ask| ask.key)
            .collect();
        assert_eq!(keys, ["greeting"]);
        assert!(inquiry(&Topic::Capabilities, json!({})).is_err());
        assert!(inquiry(&Topic::Name, json!({"sampling": {}})).is_err());
        assert!(inquiry(&Topic::Name, json!({"elicitation": {}})).is_ok());
    }
}
