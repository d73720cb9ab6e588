//! The difference between two texts, line by line. PURE.

/// Texts of more lines than this, multiplied, are not compared: all of the one has gone, all of the other come.
const MAX_WORK: usize = 4_000_000;

/// So many lines that are the same are shown around those that are not.
const CONTEXT: usize = 3;

/// A line of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    Same(&'a str),
    Gone(&'a str),
    Come(&'a str),
    /// Lines that are the same, and are not shown.
    Skipped,
}

/// What has to be done to the one to have the other.
pub(crate) fn lines<'a>(before: &'a str, now: &'a str) -> Vec<Line<'a>> {
    let before: Vec<&str> = before.lines().collect();
    let now: Vec<&str> = now.lines().collect();
    shortened(&all(&before, &now))
}

fn all<'a>(before: &[&'a str], now: &[&'a str]) -> Vec<Line<'a>> {
    let (rows, columns) = (before.len(), now.len());
    if rows.saturating_mul(columns) > MAX_WORK {
        let gone = before.iter().map(|line| Line::Gone(line));
        return gone
            .chain(now.iter().map(|line| Line::Come(line)))
            .collect();
    }
    // How many lines the rests have in common, for each pair of rests.
    let mut common = vec![vec![0_u32; columns + 1]; rows + 1];
    for row in (0..rows).rev() {
        for column in (0..columns).rev() {
            common[row][column] = if before[row] == now[column] {
                common[row + 1][column + 1] + 1
            } else {
                common[row + 1][column].max(common[row][column + 1])
            };
        }
    }
    let (mut row, mut column) = (0, 0);
    let mut lines = Vec::with_capacity(rows + columns);
    while row < rows || column < columns {
        if row < rows && column < columns && before[row] == now[column] {
            lines.push(Line::Same(before[row]));
            row += 1;
            column += 1;
        } else if row < rows
            && (column == columns || common[row + 1][column] >= common[row][column + 1])
        {
            lines.push(Line::Gone(before[row]));
            row += 1;
        } else {
            lines.push(Line::Come(now[column]));
            column += 1;
        }
    }
    lines
}

/// Without what is far from any change.
fn shortened<'a>(lines: &[Line<'a>]) -> Vec<Line<'a>> {
    let is_change = |line: &Line<'_>| !matches!(line, Line::Same(_));
    let mut shown = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let around = at.saturating_sub(CONTEXT)..(at + CONTEXT + 1).min(lines.len());
        if lines[around].iter().any(is_change) {
            shown.push(*line);
        } else if shown.last() != Some(&Line::Skipped) {
            shown.push(Line::Skipped);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_has_changed_is_shown_with_what_is_around_it() {
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n9";
        let now = "1\n2\n3\n4\nfive\n6\n7\n8\n9";
        let expected = [
            Line::Skipped,
            Line::Same("2"),
            Line::Same("3"),
            Line::Same("4"),
            Line::Gone("5"),
            Line::Come("five"),
            Line::Same("6"),
            Line::Same("7"),
            Line::Same("8"),
            Line::Skipped,
        ];
        assert_eq!(lines(before, now), expected);
        assert_eq!(lines("", "a"), [Line::Come("a")]);
    }

    proptest! {
        #[test]
        fn it_tells_both_texts(before in prop::collection::vec("[ab]", 0..12), now in prop::collection::vec("[ab]", 0..12)) {
            let (before, now): (Vec<&str>, Vec<&str>) =
                (before.iter().map(String::as_str).collect(), now.iter().map(String::as_str).collect());
            let told = all(&before, &now);
            let old = told.iter().filter_map(|line| match line {
                Line::Same(text) | Line::Gone(text) => Some(*text),
                _ => None,
            });
            prop_assert_eq!(old.collect::<Vec<_>>(), before);
            let new = told.iter().filter_map(|line| match line {
                Line::Same(text) | Line::Come(text) => Some(*text),
                _ => None,
            });
            prop_assert_eq!(new.collect::<Vec<_>>(), now);
        }
    }
}
