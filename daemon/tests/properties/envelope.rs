//! The envelope: nothing makes it panic, and payloads are the very bytes that came.

use bytes::Bytes;
use nexusd::mcp::{
    envelope::{self, Incoming},
    lists::{self, Kind},
    offers::Offers,
    revision::Revision,
    rounds, salvage,
};
use serde_json::value::RawValue;
use std::collections::HashMap;

/// Reads anything as everything that a server may send.
pub fn check(data: &[u8]) {
    let line = Bytes::copy_from_slice(data);
    message(&line);
    for message_of_batch in envelope::batch(&line).unwrap_or_default() {
        assert_payload(&line, &message_of_batch);
        message(&message_of_batch);
    }
    salvage(data);
    for kind in Kind::ALL {
        page(kind, &line);
    }
    round(&line);
    for revision in Revision::ALL {
        let _ = Offers::read(data, revision);
    }
}

fn message(line: &Bytes) {
    let Ok(message) = envelope::parse(line) else {
        return;
    };
    // Whoever reads the whole finds the same.
    let members: HashMap<String, Option<&RawValue>> = serde_json::from_slice(line).unwrap();
    let is = |name: &str, payload: &Bytes| {
        let found = members.get(name).copied().flatten();
        assert_eq!(found.map_or("", RawValue::get).as_bytes(), payload);
        if !payload.is_empty() {
            assert_payload(line, payload);
        }
    };
    let method = |method: &str| {
        let found = members["method"].unwrap().get();
        assert_eq!(serde_json::from_str::<String>(found).unwrap(), method);
    };
    match message {
        Incoming::Response { id, outcome } => {
            assert_eq!(members["id"].unwrap().get(), id.to_string());
            assert!(members.get("method").copied().flatten().is_none());
            match outcome {
                Ok(result) => is("result", &result),
                Err(error) if error.data.is_empty() => {}
                Err(error) => assert_payload(line, &error.data),
            }
        }
        Incoming::Request {
            id,
            method: name,
            params,
        } => {
            is("id", &id);
            assert!(
                matches!(id[0], b'"' | b'-' | b'0'..=b'9'),
                "no id is like this: {id:?}"
            );
            method(&name);
            is("params", &params);
        }
        Incoming::Notification {
            method: name,
            params,
        } => {
            method(&name);
            is("params", &params);
        }
    }
}

/// A payload is JSON, and a part of the line itself.
fn assert_payload(line: &Bytes, payload: &Bytes) {
    let (whole, part) = (line.as_ptr_range(), payload.as_ptr_range());
    assert!(whole.start <= part.start && part.end <= whole.end);
    serde_json::from_slice::<&RawValue>(payload).unwrap();
}

/// An id that is found in what is left of a line stands there.
fn salvage(data: &[u8]) {
    let cut = data.first().map_or(0, |&at| usize::from(at));
    let (head, tail) = data.split_at(cut.min(data.len()));
    for (head, tail) in [(head, tail), (data, data), (data, &[])] {
        if let Some(id) = salvage::id_of_oversized(head, tail) {
            assert!(names(head, id) || names(tail, id), "{id}");
        }
    }
    if let Some(id) = salvage::id_of_spoiled(data) {
        assert!(names(data, id), "{id}");
    }
}

/// Whether a line has a member `id` of that value, anywhere.
pub fn names(line: &[u8], id: u64) -> bool {
    let id = id.to_string();
    let key = b"\"id\"";
    let places = line.windows(key.len()).enumerate();
    places.filter(|(_, it)| it == key).any(|(at, _)| {
        let rest = line[at + key.len()..].trim_ascii_start();
        let value = rest.strip_prefix(b":").unwrap_or_default();
        let digits = value.trim_ascii_start().strip_prefix(id.as_bytes());
        digits.is_some_and(|rest| !rest.first().is_some_and(u8::is_ascii_digit))
    })
}

fn page(kind: Kind, result: &Bytes) {
    let Ok(page) = lists::parse_page(kind, result) else {
        return;
    };
    for entry in page.entries {
        assert!(!entry.key.is_empty());
        let json = &entry.json[..];
        assert!(result.windows(json.len()).any(|part| part == json));
        serde_json::from_slice::<&RawValue>(json).unwrap();
    }
}

fn round(result: &Bytes) {
    let Some(Ok(round)) = rounds::read(result) else {
        return;
    };
    assert!(!round.questions.is_empty() || !round.state.is_empty());
    let params = round.questions.iter().map(|question| &question.params);
    for payload in params.chain([&round.state]).filter(|it| !it.is_empty()) {
        assert_payload(result, payload);
    }
    let answers: Vec<_> = round
        .questions
        .into_iter()
        .map(|question| (question.key, Bytes::from_static(b"{}")))
        .collect();
    let told = rounds::responses(&answers);
    if !answers.is_empty() {
        let told: HashMap<String, &RawValue> = serde_json::from_slice(&told).unwrap();
        assert_eq!(told.len(), answers.len());
    }
}
