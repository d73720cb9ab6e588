//! Files with lines `NAME=value`. Pure.

/// The variables of such a file, or the number of the line that is none. The line itself may be a secret.
pub fn parse(text: &str) -> Result<Vec<(String, String)>, usize> {
    let mut variables = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, value) = line.split_once('=').ok_or(index + 1)?;
        let name = name.trim();
        let is_good = !name.is_empty() && !name.contains(char::is_whitespace);
        variables.push((
            is_good.then_some(name).ok_or(index + 1)?.to_owned(),
            unquote(value.trim()),
        ));
    }
    Ok(variables)
}

fn unquote(value: &str) -> String {
    let inside = |quote: char| {
        value
            .strip_prefix(quote)
            .and_then(|rest| rest.split_once(quote))
    };
    if let Some((inner, _)) = inside('\'') {
        return inner.to_owned();
    }
    if let Some(rest) = value.strip_prefix('"') {
        let mut out = String::new();
        let mut chars = rest.chars();
        while let Some(c) = chars.next() {
            match c {
                '"' => break,
                '\\' => match chars.next() {
                    Some('n') => out.push('\n'),
                    Some('t') => out.push('\t'),
                    Some(other) => out.push(other),
                    None => {}
                },
                c => out.push(c),
            }
        }
        return out;
    }
    // A comment begins after a space: `#` alone may be part of a password.
    let end = value.find(" #").unwrap_or(value.len());
    value[..end].trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_others_read_them() {
        let text = "# a\n\nA=1\nexport B = two words # why\nC='x # y'\nD=\"a\\nb\"\nE=\nF=a#b=c\n";
        let expected = [
            ("A", "1"),
            ("B", "two words"),
            ("C", "x # y"),
            ("D", "a\nb"),
            ("E", ""),
            ("F", "a#b=c"),
        ];
        let expected: Vec<_> = expected.map(|(k, v)| (k.to_owned(), v.to_owned())).to_vec();
        assert_eq!(parse(text), Ok(expected));
    }

    #[test]
    fn a_line_that_is_none_is_told_by_its_number() {
        assert_eq!(parse("A=1\nnonsense"), Err(2));
        assert_eq!(parse("=1"), Err(1));
    }
}
