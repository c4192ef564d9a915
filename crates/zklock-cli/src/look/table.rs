//! Rows under a heading, in columns.

use std::io::{IsTerminal, stdout};

use rustix::termios::tcgetwinsize;

use crate::output::show;
use crate::text::cut;

const BETWEEN: usize = 2;
/// Columns are not made narrower.
const NARROW: usize = 8;

/// Shows rows; on a terminal, no wider than that.
pub fn print(heading: &[&str], rows: &[Vec<String>]) {
    show(format_args!("{}", lay_out(heading, rows, width())));
}

/// That of the terminal; elsewhere, and on one that does not know it, there is no limit.
pub fn width() -> usize {
    let size = if stdout().is_terminal() { tcgetwinsize(stdout()).ok() } else { None };
    size.map(|size| usize::from(size.ws_col)).filter(|width| *width > 0).unwrap_or(usize::MAX)
}

/// Each column as wide as its widest cell, as long as there is room; the last is not filled up.
fn lay_out(heading: &[&str], rows: &[Vec<String>], room: usize) -> String {
    let mut widths: Vec<usize> = heading.iter().map(|cell| cell.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    while widths.iter().sum::<usize>() + BETWEEN * (widths.len() - 1) > room {
        match widths.iter_mut().max() {
            Some(widest) if *widest > NARROW => *widest -= 1,
            _ => break,
        }
    }
    let line = |cells: Vec<&str>| {
        let cells = cells.iter().zip(&widths);
        let line: Vec<String> =
            cells.map(|(cell, width)| format!("{:<width$}", cut(cell, *width))).collect();
        format!("{}\n", line.join(&" ".repeat(BETWEEN)).trim_end())
    };
    let head = line(heading.to_vec());
    rows.iter().fold(head, |text, row| text + &line(row.iter().map(String::as_str).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_have_to_be() {
        let rows = [vec!["abc".to_owned(), "1".to_owned()], vec!["d".to_owned(), String::new()]];
        assert_eq!(lay_out(&["A", "LONG"], &rows, 80), "A    LONG\nabc  1\nd\n");
    }

    #[test]
    fn the_widest_columns_are_cut_where_there_is_no_room() {
        let rows = [vec!["/locks/nightly-report".to_owned(), "12345678901".to_owned()]];
        let text = lay_out(&["PATH", "HOLDER"], &rows, 24);
        assert_eq!(text, "PATH         HOLDER\n…tly-report  12345678901\n");
    }
}
