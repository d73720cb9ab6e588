//! Text of strangers, made safe for a terminal. PURE.
//!
//! A tool's result or a server's last words could move the cursor, set the title, or show text in
//! another order than it has. None of that reaches a terminal.

pub(crate) use nexus_client::text::for_terminal as text;

/// The same in one line.
pub(crate) fn line(line: &str) -> String {
    let safe = text(line);
    let words: Vec<_> = safe.split_whitespace().collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    #[test]
    fn ordinary_text_is_not_even_copied() {
        let ordinary = "Grüße,\n\t数据 🎉 عربي";
        assert!(matches!(text(ordinary), Cow::Borrowed(same) if same == ordinary));
    }

    #[test]
    fn a_line_is_one_line() {
        assert_eq!(line(" a\n\tb  \x1b[1mc\r\n"), "a b c");
    }
}
