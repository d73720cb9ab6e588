//! Text of strangers, made safe for a terminal. PURE.
//!
//! A tool's result or a server's last words could move the cursor, set the title, or show text in
//! another order than it has. None of that reaches a terminal.

use std::{borrow::Cow, iter::Peekable, str::Chars};

/// The text without anything that a terminal would act on; line breaks and tabs stay.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut kept = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\x1b' => skip_sequence(&mut chars),
            // The same as `ESC [`, in one character.
            '\u{9b}' => skip_control_sequence(&mut chars),
            c if is_harmful(c) => {}
            c => kept.push(c),
        }
    }
    Cow::Owned(kept)
}

/// The same in one line.
pub(crate) fn line(line: &str) -> String {
    let safe = text(line);
    let words: Vec<_> = safe.split_whitespace().collect();
    words.join(" ")
}

fn is_harmful(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        // Overrides and isolates change the order in which text is shown.
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        c => c.is_control(),
    }
}

/// What follows `ESC`.
fn skip_sequence(chars: &mut Peekable<Chars<'_>>) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            skip_control_sequence(chars);
        }
        // Titles, links and the like: up to a bell or `ESC \`. One without an end hides nothing.
        Some(']' | 'P' | 'X' | '^' | '_') => {
            let mut ahead = chars.clone();
            while let Some(c) = ahead.next() {
                let ends = match c {
                    '\x07' | '\u{9c}' => true,
                    '\x1b' => ahead.next_if_eq(&'\\').is_some(),
                    _ => false,
                };
                if ends {
                    *chars = ahead;
                    return;
                }
            }
        }
        // A character set or a mode: one more character.
        Some(' '..='/') => {
            chars.next();
            chars.next_if(|c| !is_harmful(*c) && *c != '\n');
        }
        Some('0'..='~') => {
            chars.next();
        }
        _ => {}
    }
}

/// Parameters, then one final character.
fn skip_control_sequence(chars: &mut Peekable<Chars<'_>>) {
    while chars.next_if(|c| matches!(c, ' '..='?')).is_some() {}
    chars.next_if(|c| matches!(c, '@'..='~'));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ordinary_text_is_not_even_copied() {
        let ordinary = "Grüße,\n\t数据 🎉 عربي";
        assert!(matches!(text(ordinary), Cow::Borrowed(same) if same == ordinary));
    }

    #[test]
    fn what_a_terminal_would_act_on_is_gone() {
        for (hostile, safe) in [
            ("\x1b[31mred\x1b[0m", "red"),
            ("\x1b]0;title\x07x", "x"),
            ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\u{9b}2Jx", "x"),
            ("a\rb\x08\x7fc\x00", "abc"),
            ("\u{202e}gpj.exe\u{202c}", "gpj.exe"),
            ("\u{2066}x\u{2069}", "x"),
            ("\x1b(0x", "x"),
            ("\x1bcx", "x"),
            ("one\r\ntwo", "one\ntwo"),
            ("\x1b]no end", "]no end"),
            ("\x1b", ""),
        ] {
            assert_eq!(text(hostile), safe, "{hostile:?}");
        }
    }

    #[test]
    fn a_line_is_one_line() {
        assert_eq!(line(" a\n\tb  \x1b[1mc\n"), "a b c");
    }

    proptest! {
        #[test]
        fn nothing_harmful_is_left(hostile in "(\\PC|\\pC|\x1b[\\[\\]P]?)*") {
            prop_assert!(!text(&hostile).chars().any(is_harmful));
        }
    }
}
