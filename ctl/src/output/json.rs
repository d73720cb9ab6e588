//! JSON, set out for people without changing a digit of it. PURE.

use super::safe;
use std::fmt::Write as _;

/// The same JSON with line breaks and indents. What is not JSON comes out odd, but comes out.
pub(crate) fn pretty(json: &str) -> String {
    let mut text = String::with_capacity(json.len() * 2);
    let mut depth = 0_usize;
    let mut chars = json.chars().filter_outside_strings();
    while let Some((c, inside)) = chars.next() {
        match c {
            // The same character to a program, and nothing to a terminal.
            _ if inside && safe::text(c.encode_utf8(&mut [0; 4])).is_empty() => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(text, "\\u{unit:04x}");
                }
            }
            _ if inside => text.push(c),
            '{' | '[' => {
                text.push(c);
                if let Some(close) = chars.close_follows() {
                    text.push(close);
                } else {
                    depth += 1;
                    line_break(&mut text, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line_break(&mut text, depth);
                text.push(c);
            }
            ',' => {
                text.push(c);
                line_break(&mut text, depth);
            }
            ':' => text.push_str(": "),
            c => text.push(c),
        }
    }
    text
}

fn line_break(text: &mut String, depth: usize) {
    text.push('\n');
    text.extend(std::iter::repeat_n("  ", depth));
}

/// Characters, whether each is part of a string, and no space outside of strings.
struct Scan<I: Iterator<Item = char>> {
    chars: std::iter::Peekable<I>,
    inside: bool,
    escaped: bool,
}

trait ScanExt: Iterator<Item = char> + Sized {
    fn filter_outside_strings(self) -> Scan<Self> {
        Scan {
            chars: self.peekable(),
            inside: false,
            escaped: false,
        }
    }
}

impl<I: Iterator<Item = char>> ScanExt for I {}

impl<I: Iterator<Item = char>> Scan<I> {
    fn skip_space(&mut self) {
        let space = |c: &char| matches!(c, ' ' | '\n' | '\r' | '\t');
        while self.chars.next_if(space).is_some() {}
    }

    /// Takes the bracket that closes an empty array or object.
    fn close_follows(&mut self) -> Option<char> {
        self.skip_space();
        self.chars.next_if(|c| matches!(c, '}' | ']'))
    }
}

impl<I: Iterator<Item = char>> Iterator for Scan<I> {
    type Item = (char, bool);

    fn next(&mut self) -> Option<Self::Item> {
        if !self.inside {
            self.skip_space();
        }
        let c = self.chars.next()?;
        let was_inside = self.inside;
        match c {
            _ if self.escaped => self.escaped = false,
            '\\' if self.inside => self.escaped = true,
            '"' => self.inside = !self.inside,
            _ => {}
        }
        Some((c, was_inside || c == '"'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    #[test]
    fn numbers_and_the_order_of_keys_stay() {
        let json = r#"{"b":123456789012345678901234567890,"a":[1e400, {} ,[ ]],"s":"{[,: \"\\"}"#;
        assert_eq!(
            pretty(json),
            "{\n  \"b\": 123456789012345678901234567890,\n  \"a\": [\n    1e400,\n    {},\n    []\n  ],\n  \"s\": \"{[,: \\\"\\\\\"\n}"
        );
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".*".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 30, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::hash_map(".*", inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn it_is_as_serde_json_sets_it_out(value in any_json()) {
            let expected = serde_json::to_string_pretty(&value).unwrap();
            let set_out = pretty(&value.to_string());
            prop_assert_eq!(&pretty(&expected), &set_out);
            prop_assert_eq!(serde_json::from_str::<Value>(&set_out).unwrap(), value);
            // What a terminal would act on is spelt out.
            prop_assert_eq!(safe::text(&set_out), set_out.as_str());
            if safe::text(&expected) == expected {
                prop_assert_eq!(set_out, expected);
            }
        }
    }
}
