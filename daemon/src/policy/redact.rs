//! Arguments as they may be written down. Pure.

use nexus_config::mask::{looks_secret, names_secret};
use serde_json::{Map, Value};

/// What stands for a secret.
const HIDDEN: &str = "***";

/// What is shorter may be anything, and stand anywhere.
const SHORTEST: usize = 8;

/// The arguments without what may be a secret: by its name, by how it looks, or because its server was given it.
/// `None` if they are not JSON, or too long.
pub(super) fn redacted(arguments: &[u8], secrets: &[String], longest: usize) -> Option<String> {
    if arguments.len() > longest {
        return None;
    }
    let mut value: Value = serde_json::from_slice(arguments).ok()?;
    hide(&mut value, secrets);
    let text = value.to_string();
    (text.len() <= longest).then_some(text)
}

fn hide(value: &mut Value, secrets: &[String]) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) => {
            if is_secret(text, secrets) {
                HIDDEN.clone_into(text);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| hide(value, secrets)),
        Value::Object(members) => {
            let hidden = std::mem::take(members).into_iter().map(|(name, value)| {
                let mut value = value;
                match &value {
                    Value::Null | Value::Bool(_) => {}
                    _ if names_secret(&name) => value = HIDDEN.into(),
                    _ => hide(&mut value, secrets),
                }
                let name = match is_secret(&name, secrets) {
                    true => HIDDEN.to_owned(),
                    false => name,
                };
                (name, value)
            });
            *members = hidden.collect::<Map<_, _>>();
        }
    }
}

fn is_secret(text: &str, secrets: &[String]) -> bool {
    let has = |secret: &String| secret.len() >= SHORTEST && text.contains(secret.as_str());
    looks_secret(text) || secrets.iter().any(has)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_may_be_a_secret_is_not_written_down() {
        let arguments = json!({
            "to": "ann@example.org",
            "password": "x",
            "pin_token": 1234,
            "use_auth": true,
            "headers": [{"Authorization": {"a": "b"}}, "Bearer abc"],
            "note": "it is hunter2hunter2, really",
            "ghp_0123456789abcdef": 1,
        });
        let secrets = ["hunter2hunter2".to_owned(), "e".to_owned()];
        let text = redacted(arguments.to_string().as_bytes(), &secrets, 4096).unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(&text).unwrap(),
            json!({
                "to": "ann@example.org",
                "password": "***",
                "pin_token": "***",
                "use_auth": true,
                "headers": [{"Authorization": "***"}, "***"],
                "note": "***",
                "***": 1,
            })
        );
        assert_eq!(redacted(b"{", &[], 100), None);
        assert_eq!(redacted(b"{\"a\":1}", &[], 3), None);
    }
}
