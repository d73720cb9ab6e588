//! A form, as MCP lets servers ask for it: an object of simple values. PURE.

use crate::output::safe;
use serde_json::{Value, value::RawValue};

/// What is to be filled in, in the order of the schema.
#[derive(Debug)]
pub(super) struct Form {
    pub(super) fields: Vec<Field>,
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: String,
    title: Option<String>,
    about: Option<String>,
    kind: Kind,
    required: bool,
    default: Option<Value>,
}

#[derive(Debug)]
enum Kind {
    Text {
        least: Option<u64>,
        most: Option<u64>,
        format: Option<String>,
    },
    Number {
        whole: bool,
        least: Option<f64>,
        most: Option<f64>,
    },
    Boolean,
    Choice(Vec<Choice>),
    Several {
        choices: Vec<Choice>,
        least: Option<u64>,
        most: Option<u64>,
    },
    /// Nothing that MCP allows: whoever fills it in has to write JSON.
    Other,
}

#[derive(Debug)]
struct Choice {
    value: Value,
    title: String,
}

impl Form {
    /// The fields of a schema. One that is no schema has none.
    pub(super) fn new(schema: &Value) -> Self {
        let required = schema.get("required").and_then(Value::as_array);
        let is_required =
            |name: &str| required.is_some_and(|names| names.iter().any(|other| other == name));
        let properties = schema.get("properties").and_then(Value::as_object);
        let fields = properties.into_iter().flatten();
        let fields = fields.map(|(name, schema)| Field::new(name, schema, is_required(name)));
        Self {
            fields: fields.collect(),
        }
    }
}

impl Field {
    fn new(name: &str, schema: &Value, required: bool) -> Self {
        let text = |key: &str| schema.get(key).and_then(Value::as_str).map(str::to_owned);
        Self {
            name: name.to_owned(),
            title: text("title"),
            about: text("description"),
            kind: Kind::new(schema),
            required,
            default: schema.get("default").filter(|it| !it.is_null()).cloned(),
        }
    }

    /// What it is called, for people.
    pub(super) fn label(&self) -> String {
        let label = safe::line(self.title.as_deref().unwrap_or(&self.name));
        match self.required {
            true => label,
            false => label + " (optional)",
        }
    }

    /// What stands above the place where it is filled in.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![String::new(), self.label()];
        if let Some(about) = &self.about {
            let about = safe::text(about.trim()).into_owned();
            lines.extend(about.lines().map(|line| format!("  {line}")));
        }
        if let Kind::Choice(choices) | Kind::Several { choices, .. } = &self.kind {
            let choices = choices.iter().enumerate();
            lines.extend(choices.map(|(at, choice)| format!("  {}) {}", at + 1, choice.title)));
        }
        lines
    }

    /// What is to be typed.
    pub(super) fn prompt(&self) -> String {
        let mut prompt = match &self.kind {
            Kind::Text { format, .. } => match format {
                Some(format) => safe::line(format),
                None => "text".to_owned(),
            },
            Kind::Number { whole: true, .. } => "whole number".to_owned(),
            Kind::Number { whole: false, .. } => "number".to_owned(),
            Kind::Boolean => "yes or no".to_owned(),
            Kind::Choice(choices) => format!("1-{}", choices.len()),
            Kind::Several { choices, .. } => format!("some of 1-{}, as in 1,2", choices.len()),
            Kind::Other => "JSON".to_owned(),
        };
        if let Some(default) = &self.default {
            prompt += &format!(", or Enter for {}", self.kind.show(default));
        } else if !self.required {
            prompt += ", or Enter to skip";
        }
        prompt + ":"
    }

    /// What was typed, as JSON text; `None` for a field that is skipped.
    pub(super) fn read(&self, line: &str) -> Result<Option<String>, String> {
        if !line.is_empty() {
            return self.kind.read(line).map(Some);
        }
        match (&self.default, self.required) {
            (Some(default), _) => Ok(Some(default.to_string())),
            (None, false) => Ok(None),
            (None, true) => Err("This must be given; Ctrl-D cancels.".to_owned()),
        }
    }
}

impl Kind {
    fn new(schema: &Value) -> Self {
        let kind = schema.get("type").and_then(Value::as_str);
        let count = |key: &str| schema.get(key).and_then(Value::as_u64);
        if let Some(choices) = choices(schema) {
            return Self::Choice(choices);
        }
        match kind {
            Some("string") => Self::Text {
                least: count("minLength"),
                most: count("maxLength"),
                format: schema.get("format").and_then(Value::as_str).map(Into::into),
            },
            Some("number" | "integer") => Self::Number {
                whole: kind == Some("integer"),
                least: schema.get("minimum").and_then(Value::as_f64),
                most: schema.get("maximum").and_then(Value::as_f64),
            },
            Some("boolean") => Self::Boolean,
            Some("array") => match schema.get("items").and_then(choices) {
                Some(choices) => Self::Several {
                    choices,
                    least: count("minItems"),
                    most: count("maxItems"),
                },
                None => Self::Other,
            },
            _ => Self::Other,
        }
    }

    /// A value of this kind, as JSON text.
    fn read(&self, line: &str) -> Result<String, String> {
        match self {
            Self::Text {
                least,
                most,
                format,
            } => {
                between(line.chars().count(), *least, *most, "characters")?;
                check_format(line, format.as_deref())?;
                Ok(Value::from(line).to_string())
            }
            Self::Number { whole, least, most } => number(line, *whole, *least, *most),
            Self::Boolean => match line.to_ascii_lowercase().as_str() {
                "y" | "yes" | "true" => Ok("true".to_owned()),
                "n" | "no" | "false" => Ok("false".to_owned()),
                _ => Err("Type yes or no.".to_owned()),
            },
            Self::Choice(choices) => choose(choices, line).map(Value::to_string),
            Self::Several {
                choices,
                least,
                most,
            } => {
                let words = line
                    .split(',')
                    .map(str::trim)
                    .filter(|word| !word.is_empty());
                let mut chosen: Vec<&Value> = Vec::new();
                for word in words {
                    let value = choose(choices, word)?;
                    if !chosen.contains(&value) {
                        chosen.push(value);
                    }
                }
                between(chosen.len(), *least, *most, "of them")?;
                let chosen: Vec<_> = chosen.into_iter().map(Value::to_string).collect();
                Ok(format!("[{}]", chosen.join(",")))
            }
            Self::Other => match serde_json::from_str::<&RawValue>(line) {
                Ok(raw) => Ok(raw.get().to_owned()),
                Err(_) => Err("That is not JSON.".to_owned()),
            },
        }
    }

    /// A value of this kind, for people.
    fn show(&self, value: &Value) -> String {
        let one = |choices: &[Choice], value: &Value| {
            let choice = choices.iter().find(|choice| choice.value == *value);
            choice.map_or_else(|| plain(value), |choice| choice.title.clone())
        };
        match (self, value) {
            (Self::Boolean, Value::Bool(yes)) => if *yes { "yes" } else { "no" }.to_owned(),
            (Self::Choice(choices), value) => one(choices, value),
            (Self::Several { choices, .. }, Value::Array(values)) => {
                let values: Vec<_> = values.iter().map(|value| one(choices, value)).collect();
                values.join(", ")
            }
            (_, value) => plain(value),
        }
    }
}

/// `enum` with or without `enumNames`, or `oneOf`/`anyOf` of titled constants.
fn choices(schema: &Value) -> Option<Vec<Choice>> {
    let list = |key: &str| schema.get(key).and_then(Value::as_array);
    let found: Vec<Choice> = if let Some(values) = list("enum") {
        let names = list("enumNames");
        let name = |at: usize| {
            names
                .and_then(|names| names.get(at))
                .and_then(Value::as_str)
        };
        let values = values.iter().enumerate();
        let choice = |(at, value): (usize, &Value)| Choice {
            title: name(at).map_or_else(|| plain(value), safe::line),
            value: value.clone(),
        };
        values.map(choice).collect()
    } else {
        let parts = list("oneOf").or_else(|| list("anyOf"))?;
        let choice = |part: &Value| {
            let value = part.get("const")?.clone();
            let title = part.get("title").and_then(Value::as_str);
            let title = title.map_or_else(|| plain(&value), safe::line);
            Some(Choice { value, title })
        };
        parts.iter().map(choice).collect::<Option<_>>()?
    };
    (!found.is_empty()).then_some(found)
}

/// By its number, or by its name.
fn choose<'a>(choices: &'a [Choice], word: &str) -> Result<&'a Value, String> {
    let named = |choice: &&Choice| plain(&choice.value) == word || choice.title == word;
    let by_number = || {
        let at = word.parse::<usize>().ok()?.checked_sub(1)?;
        choices.get(at)
    };
    // What is shown is a number; a name that is another one gives way.
    let choice = by_number().or_else(|| choices.iter().find(named));
    choice
        .map(|choice| &choice.value)
        .ok_or_else(|| format!("Type a number from 1 to {}.", choices.len()))
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => safe::line(text),
        other => other.to_string(),
    }
}

/// The number as it was written: no digit of it is lost.
fn number(
    line: &str,
    whole: bool,
    least: Option<f64>,
    most: Option<f64>,
) -> Result<String, String> {
    let wrong = || match whole {
        true => "That is not a whole number.".to_owned(),
        false => "That is not a number.".to_owned(),
    };
    let raw: &RawValue = serde_json::from_str(line).map_err(|_| wrong())?;
    let text = raw.get();
    let is_number = text.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    let value: f64 = text.parse().map_err(|_| wrong())?;
    if !is_number || (whole && value.fract() != 0.0) {
        return Err(wrong());
    }
    match (least, most) {
        (Some(least), _) if value < least => Err(format!("It must be {least} or more.")),
        (_, Some(most)) if value > most => Err(format!("It must be {most} or less.")),
        _ => Ok(text.to_owned()),
    }
}

fn between(count: usize, least: Option<u64>, most: Option<u64>, what: &str) -> Result<(), String> {
    let count = count as u64;
    match (least, most) {
        (Some(least), _) if count < least => Err(format!("It must be {least} {what} or more.")),
        (_, Some(most)) if count > most => Err(format!("It must be {most} {what} or less.")),
        _ => Ok(()),
    }
}

/// Only what is plainly wrong: the server knows better.
fn check_format(line: &str, format: Option<&str>) -> Result<(), String> {
    let digits = |from: usize, to: usize| {
        let part = line.get(from..to);
        part.is_some_and(|part| part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let at = |place: usize, c: u8| line.as_bytes().get(place) == Some(&c);
    let is_date = || digits(0, 4) && at(4, b'-') && digits(5, 7) && at(7, b'-') && digits(8, 10);
    let (fits, like) = match format {
        Some("email") => {
            let parts = line.split_once('@');
            let fits = parts.is_some_and(|(name, host)| !name.is_empty() && !host.is_empty());
            (fits, "me@example.org")
        }
        Some("uri") => {
            let fits = line.split_once(':').is_some_and(|(scheme, rest)| {
                let rests = !rest.is_empty() && !line.contains(char::is_whitespace);
                rests && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            });
            (fits, "https://example.org/")
        }
        Some("date") => (line.len() == 10 && is_date(), "2026-07-28"),
        Some("date-time") => {
            let fits = is_date() && (at(10, b'T') || at(10, b't'));
            (fits, "2026-07-28T09:05:00Z")
        }
        _ => return Ok(()),
    };
    match fits {
        true => Ok(()),
        false => Err(format!("Write it as in {like}.")),
    }
}

#[cfg(test)]
mod tests;
