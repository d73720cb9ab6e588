//! Columns that line up, whatever alphabet is in them. PURE.

use super::style::{self, BOLD, PLAIN};
use anstyle::Style;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

const GAP: &str = "  ";
/// A column is not cut below this: a few letters help nobody.
const LEAST: usize = 20;

/// A table with a head. The last column takes what room is left.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

#[derive(Debug)]
struct Column {
    head: &'static str,
    right: bool,
}

/// What stands in one place.
#[derive(Debug)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self {
            text: text.into(),
            style: PLAIN,
        }
    }
}

impl Cell {
    pub(crate) fn styled(text: impl Into<String>, style: Style) -> Self {
        Self {
            text: text.into(),
            style,
        }
    }
}

impl Table {
    /// Heads of columns; one that begins with `>` stands to the right.
    pub(crate) fn new(heads: &[&'static str]) -> Self {
        let column = |head: &&'static str| Column {
            head: head.trim_start_matches('>'),
            right: head.starts_with('>'),
        };
        Self {
            columns: heads.iter().map(column).collect(),
            rows: Vec::new(),
        }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The table as text. Where there is a `width`, the last column is cut to fit into it.
    pub(crate) fn render(&self, color: bool, width: Option<usize>) -> String {
        let heads = self.columns.iter().map(|column| column.head.width());
        let mut widths: Vec<usize> = heads.collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.text.width());
            }
        }
        let room = width.map(|width| {
            let before = &widths[..widths.len().saturating_sub(1)];
            let taken: usize = before.iter().map(|width| width + GAP.len()).sum();
            width.saturating_sub(taken).max(LEAST)
        });
        let mut text = String::new();
        let head = self.columns.iter().map(|column| (column.head, BOLD));
        self.line(&mut text, head, &widths, room, color);
        for row in &self.rows {
            let cells = row.iter().map(|cell| (cell.text.as_str(), cell.style));
            self.line(&mut text, cells, &widths, room, color);
        }
        text
    }

    fn line<'a>(
        &self,
        text: &mut String,
        cells: impl Iterator<Item = (&'a str, Style)>,
        widths: &[usize],
        room: Option<usize>,
        color: bool,
    ) {
        let start = text.len();
        for (at, (cell, style)) in cells.enumerate() {
            let last = at + 1 == self.columns.len();
            let cut;
            let cell = match room.filter(|_| last) {
                Some(room) => {
                    cut = clip(cell, room);
                    &cut
                }
                None => cell,
            };
            let padding = " ".repeat(widths[at].saturating_sub(cell.width()));
            let painted = style::paint(cell, style, color);
            match (self.columns[at].right, last) {
                (true, _) => *text += &(padding + &painted),
                (false, false) => *text += &(painted + &padding),
                (false, true) => *text += &painted,
            }
            if !last {
                *text += GAP;
            }
        }
        text.truncate(text.trim_end_matches(' ').len().max(start));
        text.push('\n');
    }
}

/// The text, or as much of it as there is room for.
pub(crate) fn clip(text: &str, room: usize) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let mut used = 1; // for the mark
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= room
    };
    let mut kept: String = text.chars().take_while(fits).collect();
    kept.truncate(kept.trim_end().len());
    kept + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["NAME", ">TOOLS", "DESCRIPTION"]);
        let row = |name: &str, tools: &str, text: &str| [name.into(), tools.into(), text.into()];
        table.row(row(
            "demo",
            "4",
            "A small server that shows what can be done",
        ));
        table.row(row("数据", "12", ""));
        table
    }

    #[test]
    fn columns_line_up_in_every_alphabet() {
        assert_eq!(
            table().render(false, None),
            "NAME  TOOLS  DESCRIPTION\n\
             demo      4  A small server that shows what can be done\n\
             数据     12\n"
        );
    }

    #[test]
    fn the_last_column_is_cut_to_the_width_and_never_without_one() {
        let text = table().render(false, Some(40));
        assert_eq!(
            text.lines().nth(1),
            Some("demo      4  A small server that shows…")
        );
        assert!(text.lines().all(|line| line.width() <= 40));
    }

    #[test]
    fn colours_do_not_count_as_width() {
        let mut table = Table::new(&["A", "B"]);
        table.row([Cell::styled("x", style::GOOD), "y".into()]);
        table.row(["longer".into(), "z".into()]);
        let text = table.render(true, None);
        assert!(text.contains("\x1b[32mx\x1b[0m       y"), "{text:?}");
    }

    #[test]
    fn wide_letters_are_not_cut_in_half() {
        assert_eq!(clip("数据数据", 6), "数据…");
        assert_eq!(clip("数据数据", 8), "数据数据");
        assert_eq!(clip("abc", 1), "…");
    }
}
