//! Whose answer a line was meant to be that cannot be read, or was too long to keep. Pure.
//!
//! Only what is plainly a response is believed: an object from its first byte on, whose payload is in sight, with
//! nothing of a request before it, and an id among its own members. What a server logs to the wrong place may have
//! all of these words in it too, and must settle nobody's call.

use super::envelope::own_id;

/// The id of a response that came whole and cannot be read.
pub fn id_of_spoiled(line: &[u8]) -> Option<u64> {
    let mut rest = open(line)?;
    let before = seek_payload(&mut rest)?;
    // What comes after a payload counts only if that has an end.
    let behind = match skip_value(rest) {
        Some(rest) => id_behind(rest)?,
        None => None,
    };
    match (before, behind) {
        (Some(_), Some(_)) => None,
        (before, behind) => before.or(behind),
    }
}

/// The id of a response of which only the two ends are left.
pub fn id_of_oversized(head: &[u8], tail: &[u8]) -> Option<u64> {
    let mut rest = open(head)?;
    match seek_payload(&mut rest)? {
        Some(id) => Some(id),
        // A payload is an object, and nothing that comes after it is one: it ends with the last brace but one.
        None => {
            let message = tail.trim_ascii_end().strip_suffix(b"}")?;
            id_behind(&tail[memchr::memrchr(b'}', message)? + 1..])?
        }
    }
}

/// What stands after the brace that a message begins with.
fn open(message: &[u8]) -> Option<&[u8]> {
    message.trim_ascii_start().strip_prefix(b"{")
}

/// Goes to the payload of a response. Returns the id, if it stood before it.
fn seek_payload(rest: &mut &[u8]) -> Option<Option<u64>> {
    let mut id = None;
    loop {
        let (key, value) = member(rest)?;
        match key {
            b"result" | b"error" => {
                *rest = value;
                return Some(id);
            }
            b"id" if id.is_none() => id = Some(number(value)?),
            // Somebody's question, or nothing that could be told.
            b"id" | b"method" | b"params" => return None,
            _ => {}
        }
        *rest = skip_value(value)?.trim_ascii_start().strip_prefix(b",")?;
    }
}

/// The id among the members that follow a payload, if they are whole; nothing at all if this is no response.
fn id_behind(mut rest: &[u8]) -> Option<Option<u64>> {
    let mut id = None;
    loop {
        rest = rest.trim_ascii_start();
        if rest.first() == Some(&b'}') {
            return Some(id);
        }
        let Some((key, value)) = rest.strip_prefix(b",").and_then(member) else {
            return Some(None);
        };
        match key {
            b"id" if id.is_none() => id = Some(number(value)?),
            b"id" | b"method" | b"params" => return None,
            _ => {}
        }
        match skip_value(value) {
            Some(more) => rest = more,
            None => return Some(None),
        }
    }
}

/// The key of a member, and what follows its colon. A key with escapes is not looked into.
fn member(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_start().strip_prefix(b"\"")?;
    let end = memchr::memchr2(b'"', b'\\', text)?;
    let (key, rest) = text.split_at(end);
    let rest = rest.strip_prefix(b"\"")?.trim_ascii_start();
    Some((key, rest.strip_prefix(b":")?.trim_ascii_start()))
}

/// A number as we write ids.
fn number(text: &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at(digits);
    let ends = rest.trim_ascii_start().first();
    let ends = ends.is_none_or(|end| matches!(end, b',' | b'}'));
    ends.then(|| own_id(std::str::from_utf8(digits).ok()?))?
}

/// What follows a value, if it has an end.
fn skip_value(text: &[u8]) -> Option<&[u8]> {
    let text = text.trim_ascii_start();
    match text.first()? {
        b'"' => skip_string(&text[1..]),
        b'{' | b'[' => {
            let mut depth = 0;
            let mut rest = text;
            loop {
                let (first, more) = rest.split_first()?;
                rest = more;
                match first {
                    b'"' => rest = skip_string(rest)?,
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => depth -= 1,
                    _ => {}
                }
                if depth == 0 {
                    return Some(rest);
                }
            }
        }
        _ => Some(&text[memchr::memchr3(b',', b'}', b']', text)?..]),
    }
}

/// What follows a string whose first quote is gone.
fn skip_string(mut text: &[u8]) -> Option<&[u8]> {
    loop {
        let at = memchr::memchr2(b'"', b'\\', text)?;
        if text[at] == b'"' {
            return Some(&text[at + 1..]);
        }
        text = text.get(at + 2..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_id_of_a_lost_line_is_found_at_either_end_but_not_in_the_payload() {
        for (head, tail, id) in [
            (r#"{"jsonrpc":"2.0","id":42,"result":{"#, r#"}}"#, Some(42)),
            (r#"{"result":{"id":1,"#, r#""x":2},"id": 43}"#, Some(43)),
            (
                r#"{"error":{"id":1,"#,
                r#""x":2} , "jsonrpc":"2.0","id": 44 } "#,
                Some(44),
            ),
            (r#"{"result":{"id":1,"#, r#""id":2}}"#, None),
            (r#"{"jsonrpc":"2.0","x":"#, r#"},"id":2}"#, None),
        ] {
            let found = id_of_oversized(head.as_bytes(), tail.as_bytes());
            assert_eq!(found, id, "{head}");
        }
    }

    #[test]
    fn the_id_of_a_spoiled_line_is_found_where_it_is_its_own() {
        for (line, id) in [
            (&b"{\"id\":4,\"result\":\"\xff\"}"[..], Some(4)),
            (br#"{"id" : 4 , "result":{"a":"#, Some(4)),
            (br#"{"x":{"id":3},"id":4,"result":{"a":"#, Some(4)),
            (br#"{"result":{"a":{"b":1}},"id":5,"result":1}"#, Some(5)),
            (b"{\"result\":{\"a\":\"\xff}\\\"\"},\"id\":5}", Some(5)),
            // within the payload, whose end has not come
            (br#"{"result":{"a":{"b":1},"id":6}"#, None),
            (br#"{"x":{"id":3},"result":{"#, None),
            (br#"{"id":4,"id":5,"result":{}}"#, None),
            (br#"{"id":4,"result":{},"id":5}"#, None),
            (br#"{"id":4,"result":{},"id":5,"id":6}"#, None),
            (br#"{"id":4,"result":{},"method":"x","result":{}}"#, None),
            (br#"{"id":4.5,"result":{"#, None),
            (br#"{"id":"4","result":{"#, None),
            (br#"{"\u0069d":4,"result":{"#, None),
            // no payload in sight
            (br#"{"jsonrpc":"2.0","id":4,"res"#, None),
        ] {
            let shown = String::from_utf8_lossy(line);
            assert_eq!(id_of_spoiled(line), id, "{shown}");
        }
    }

    /// A server that logs what it sends to the wrong place, before it sends it.
    #[test]
    fn what_is_logged_settles_nothing() {
        for line in [
            r#"DEBUG sent {"jsonrpc":"2.0","id":3,"result":{}}"#,
            r#"{"level":"info","id":3,"msg":"hello"}"#,
            r#"{"jsonrpc":"2.0","id":5,"method":"sampling/createMessage","params":{"result":1"#,
            r#"{"method":"notifications/message","params":{"id":7,"result":"#,
            r#"{"sent":{"id":3},"result":"#,
        ] {
            assert_eq!(id_of_spoiled(line.as_bytes()), None, "{line}");
            assert_eq!(id_of_oversized(line.as_bytes(), b"}}"), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_line_makes_it_panic(line in "[{}\\[\\]\",:\\\\0-9 a-z]{0,80}") {
            let _ = id_of_spoiled(line.as_bytes());
            let _ = id_of_oversized(line.as_bytes(), line.as_bytes());
        }
    }
}
