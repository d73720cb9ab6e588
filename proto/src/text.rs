//! Text of strangers, without what nobody sees and somebody acts on. Pure.
//!
//! A model reads what is hidden from people: characters of no width, tags, marks that turn the order of letters
//! round. A terminal acts on what is not text at all. None of it has a place in a name, a description or an error.

use std::{borrow::Cow, iter::Peekable, str::Chars};

/// What joins several emoji into one.
const JOINER: char = '\u{200d}';

/// The text without anything hostile; line breaks and tabs stay. What is clean is not copied.
///
/// What emoji are made of stays where it is part of one: a joiner between two, and one selector behind one. What a
/// terminal is told goes as a whole, with what is told: a colour, a title, a link.
pub fn clean(text: &str) -> Cow<'_, str> {
    without(text, is_hostile)
}

/// The text without anything that a terminal would act on, or that shows it in another order; all else stays, because
/// it is somebody's own: what a tool returns may be in a language that needs joiners.
pub fn for_terminal(text: &str) -> Cow<'_, str> {
    without(text, is_acted_on)
}

/// The text with everything hostile spelt out, so that people see what was there.
pub fn reveal(text: &str) -> Cow<'_, str> {
    if is_clean(text) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    walk(text, is_hostile, |c, is_good| {
        if is_good {
            shown.push(c);
        } else {
            shown.extend(c.escape_unicode());
        }
    });
    Cow::Owned(shown)
}

/// Whether nothing in it is hostile.
pub fn is_clean(text: &str) -> bool {
    has_none(text, is_hostile)
}

fn without(text: &str, is_bad: fn(char) -> bool) -> Cow<'_, str> {
    if has_none(text, is_bad) {
        return Cow::Borrowed(text);
    }
    let mut spoken = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\x1b' => skip_sequence(&mut chars),
            // The same as `ESC [`, in one character.
            '\u{9b}' => skip_control_sequence(&mut chars),
            c => spoken.push(c),
        }
    }
    let mut kept = String::with_capacity(spoken.len());
    walk(&spoken, is_bad, |c, is_good| {
        if is_good {
            kept.push(c);
        }
    });
    Cow::Owned(kept)
}

fn has_none(text: &str, is_bad: fn(char) -> bool) -> bool {
    // So ordinary that no closer look is needed.
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
    if text.bytes().all(is_plain) {
        return true;
    }
    let mut none = true;
    walk(text, is_bad, |_, is_good| none &= is_good);
    none
}

/// Every character, and whether it may stay.
fn walk(text: &str, is_bad: fn(char) -> bool, mut tell: impl FnMut(char, bool)) {
    let mut chars = text.chars().peekable();
    // The last that may stay, as only that is seen before what follows.
    let mut before = None;
    let mut has_selector = false;
    while let Some(c) = chars.next() {
        let is_selector = matches!(c, '\u{fe0e}' | '\u{fe0f}');
        let is_good = !is_bad(c)
            || match c {
                // Half of the line breaks of Windows.
                '\r' => chars.peek() == Some(&'\n'),
                JOINER => {
                    before.is_some_and(is_pictorial)
                        && chars.peek().copied().is_some_and(is_pictorial)
                }
                _ => is_selector && before.is_some_and(takes_selector) && !has_selector,
            };
        tell(c, is_good);
        if is_good {
            // A selector belongs to what it follows.
            if !is_selector {
                before = Some(c).filter(|c| *c != JOINER);
            }
            has_selector = is_selector;
        }
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
            chars.next_if(|c| !is_acted_on(*c) && *c != '\n');
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

fn is_acted_on(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        // Overrides, isolates and marks change the order in which text is shown.
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}' => {
            true
        }
        // Letters that nobody sees, and that are copied with the others.
        '\u{e0000}'..='\u{e007f}' => true,
        c => c.is_control(),
    }
}

fn is_hostile(c: char) -> bool {
    match c {
        // Of no width.
        '\u{200b}'..='\u{200f}' | '\u{feff}' => true,
        // Separators that break lines where nobody expects it.
        '\u{2028}' | '\u{2029}' => true,
        // Joiners, operators nobody sees, isolates.
        '\u{2060}'..='\u{206f}' | '\u{180e}' | '\u{fff9}'..='\u{fffb}' => true,
        // Selectors of a glyph: a run of them can spell anything.
        '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => true,
        c => is_acted_on(c),
    }
}

/// What emoji are made of, broadly: nothing that is a letter.
fn is_pictorial(c: char) -> bool {
    matches!(c,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2190}'..='\u{21ff}'
        | '\u{2300}'..='\u{23ff}' | '\u{24c2}' | '\u{25a0}'..='\u{27bf}' | '\u{2900}'..='\u{297f}'
        | '\u{2b00}'..='\u{2bff}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}'
        | '\u{1f000}'..='\u{1faff}')
}

/// A key of a telephone can be an emoji too.
fn takes_selector(c: char) -> bool {
    is_pictorial(c) || matches!(c, '0'..='9' | '#' | '*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ordinary_text_is_not_even_copied() {
        for text in [
            "Adds two numbers.\n\tBoth, indeed.",
            "Grüße, 数据, عربي, हिन्दी",
            "👩‍💻 ❤️ 1️⃣ 🏳️‍🌈 👩🏽‍🚀 ☎︎ 👨‍👩‍👧",
            "one\r\ntwo",
        ] {
            assert!(
                matches!(clean(text), Cow::Borrowed(same) if same == text),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_hostile_is_gone_and_can_be_shown() {
        for (hostile, left, shown) in [
            ("\x1b[31mred", "red", "\\u{1b}[31mred"),
            ("\x1b]52;c;aGk=\x07x", "x", "\\u{1b}]52;c;aGk=\\u{7}x"),
            ("\u{9b}2Jx", "x", "\\u{9b}2Jx"),
            ("a\rb\x08\x7f", "ab", "a\\u{d}b\\u{8}\\u{7f}"),
            ("\u{202e}gpj\u{202c}", "gpj", "\\u{202e}gpj\\u{202c}"),
            (
                "a\u{200b}b\u{2060}\u{feff}",
                "ab",
                "a\\u{200b}b\\u{2060}\\u{feff}",
            ),
            ("a\u{200d}b", "ab", "a\\u{200d}b"),
            ("a\u{fe0f}", "a", "a\\u{fe0f}"),
            ("❤\u{fe0f}\u{fe0f}", "❤\u{fe0f}", "❤\u{fe0f}\\u{fe0f}"),
            ("❤\u{fe01}\u{e0150}", "❤", "❤\\u{fe01}\\u{e0150}"),
            ("\u{e0048}\u{e0069}x", "x", "\\u{e0048}\\u{e0069}x"),
            ("❤\u{200d}", "❤", "❤\\u{200d}"),
        ] {
            assert_eq!(clean(hostile), left, "{hostile:?}");
            assert_eq!(reveal(hostile), shown, "{hostile:?}");
            assert!(!is_clean(hostile));
        }
    }

    #[test]
    fn a_terminal_acts_on_nothing_and_loses_nothing_else() {
        for (hostile, safe) in [
            ("\x1b[31mred\x1b[0m", "red"),
            ("\x1b]0;title\x07x", "x"),
            ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\u{9b}2Jx", "x"),
            ("a\rb\x08\x7fc\x00", "abc"),
            ("\u{202e}gpj.exe\u{202c}", "gpj.exe"),
            ("\u{2066}x\u{2069}\u{200f}", "x"),
            ("\x1b(0x", "x"),
            ("\x1bcx", "x"),
            ("\x1b]no end", "]no end"),
            ("\x1b", ""),
            ("\u{e0041}x", "x"),
            ("نمی\u{200c}خواهم\x07", "نمی\u{200c}خواهم"),
        ] {
            assert_eq!(for_terminal(hostile), safe, "{hostile:?}");
        }
    }

    proptest! {
        #[test]
        fn a_terminal_is_told_nothing(hostile in "(\\PC|\\pC|\x1b[\\[\\]P]?)*") {
            let text = for_terminal(&hostile);
            prop_assert!(!text.replace("\r\n", "\n").chars().any(is_acted_on));
        }

        #[test]
        fn what_was_cleaned_is_clean(hostile in "(\\PC|\\pC|[\u{200b}-\u{200f}\u{fe00}-\u{fe0f}❤👩1a])*") {
            let once = clean(&hostile).into_owned();
            prop_assert!(is_clean(&once), "{once:?}");
            prop_assert!(is_clean(&reveal(&hostile)));
        }
    }
}
