//! Answers of the modern era that are questions: `input_required`, and the request that follows. Pure.

use bytes::Bytes;
use memchr::memmem::Finder;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{borrow::Cow, collections::BTreeMap, sync::LazyLock};

/// How many times a server may come back with questions before it gives an answer.
pub const MAX_ROUNDS: usize = 16;

/// What every answer has in it that is a question.
static INPUT_REQUIRED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("input_required"));

/// How many things a server may ask at once.
const MAX_QUESTIONS: usize = 16;

/// What a server wants to know before it answers.
#[derive(Debug, PartialEq)]
pub struct InputRequired {
    /// Under the server's own keys.
    pub questions: Vec<Asked>,
    /// To be given back byte for byte: JSON text, empty for none.
    pub state: Bytes,
}

/// One question.
#[derive(Debug, PartialEq)]
pub struct Asked {
    /// The server's own key.
    pub key: String,
    /// What it asks for.
    pub method: String,
    /// The details: JSON text, empty for none.
    pub params: Bytes,
}

/// Why an answer that is a question cannot be answered.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RoundError {
    /// Not as the schema has it.
    #[error("it asks for input in a form that is not MCP")]
    Malformed,
    /// Neither questions nor a state.
    #[error("it asks for input without saying for which")]
    Empty,
    /// More than anybody would answer.
    #[error("it asks for more than {MAX_QUESTIONS} things at once")]
    TooMany,
}

/// Reads a result of a modern server: `None` when it is an answer.
pub fn read(result: &Bytes) -> Option<Result<InputRequired, RoundError>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Kind<'a> {
        #[serde(borrow, default)]
        result_type: Option<Cow<'a, str>>,
    }
    // Nearly every result is an answer: this looks at each byte once, and keeps nothing.
    INPUT_REQUIRED.find(result)?;
    let kind: Kind<'_> = serde_json::from_slice(result).ok()?;
    (kind.result_type.as_deref() == Some("input_required")).then(|| read_questions(result))
}

fn read_questions(result: &Bytes) -> Result<InputRequired, RoundError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Body<'a> {
        #[serde(borrow, default)]
        input_requests: BTreeMap<String, Request<'a>>,
        #[serde(borrow, default)]
        request_state: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Request<'a> {
        method: String,
        #[serde(borrow, default)]
        params: Option<&'a RawValue>,
    }
    let body: Body<'_> = serde_json::from_slice(result).map_err(|_| RoundError::Malformed)?;
    if body.input_requests.is_empty() && body.request_state.is_none() {
        return Err(RoundError::Empty);
    }
    if body.input_requests.len() > MAX_QUESTIONS {
        return Err(RoundError::TooMany);
    }
    let slice = |raw: Option<&RawValue>| {
        raw.map_or_else(Bytes::new, |raw| result.slice_ref(raw.get().as_bytes()))
    };
    let questions = body.input_requests.into_iter().map(|(key, request)| Asked {
        key,
        method: request.method,
        params: slice(request.params),
    });
    Ok(InputRequired {
        questions: questions.collect(),
        state: slice(body.request_state),
    })
}

/// The answers as the server wants them: a JSON object of them under its own keys. Empty for none.
pub fn responses(answers: &[(String, Bytes)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (key, answer) in answers {
        out.push(if out.is_empty() { b'{' } else { b',' });
        // Writing a string to memory cannot fail.
        let _ = serde_json::to_writer(&mut out, key);
        out.push(b':');
        out.extend_from_slice(answer);
    }
    if !out.is_empty() {
        out.push(b'}');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<Result<InputRequired, RoundError>> {
        read(&Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn an_answer_is_no_question_whatever_it_says() {
        assert_eq!(of(r#"{"content":[]}"#), None);
        assert_eq!(
            of(r#"{"resultType":"complete","content":[{"text":"input_required"}]}"#),
            None
        );
    }

    #[test]
    fn questions_and_state_are_kept_as_they_are() {
        let odd = r#""a \"b\" \\ \u00fc""#;
        let text = format!(
            r#"{{"resultType":"input_required","inputRequests":{{"k 1":{{"method":"roots/list"}},
                "k2":{{"method":"elicitation/create","params":{{ "x":1 }}}}}},"requestState":{odd}}}"#
        );
        let round = of(&text).unwrap().unwrap();
        assert_eq!(round.state, odd.as_bytes());
        assert_eq!(round.questions.len(), 2);
        assert_eq!(round.questions[1].params, &br#"{ "x":1 }"#[..]);
        assert!(round.questions[0].params.is_empty());
    }

    #[test]
    fn what_asks_for_nothing_is_refused() {
        let empty = of(r#"{"resultType":"input_required"}"#).unwrap();
        assert_eq!(empty, Err(RoundError::Empty));
        let wrong = of(r#"{"resultType":"input_required","inputRequests":[1]}"#).unwrap();
        assert_eq!(wrong, Err(RoundError::Malformed));
        let state = of(r#"{"resultType":"input_required","requestState":"s"}"#).unwrap();
        assert!(state.unwrap().questions.is_empty());
    }

    #[test]
    fn answers_go_back_under_the_servers_keys() {
        assert!(responses(&[]).is_empty());
        let answers = [
            ("a\"b".to_owned(), Bytes::from_static(b"{ }")),
            ("c".to_owned(), Bytes::from_static(b"{\"x\":1}")),
        ];
        assert_eq!(responses(&answers), br#"{"a\"b":{ },"c":{"x":1}}"#);
    }
}
