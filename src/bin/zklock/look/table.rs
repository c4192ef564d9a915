//! Rows under a heading, in columns.

/// Each column as wide as its widest cell; the last is not filled up.
pub fn print(heading: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = heading.iter().map(|cell| cell.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: Vec<&str>| {
        let cells = cells.iter().zip(&widths);
        let line: Vec<String> = cells.map(|(cell, width)| format!("{cell:<width$}")).collect();
        format!("{}\n", line.join("  ").trim_end())
    };
    let head = line(heading.to_vec());
    rows.iter().fold(head, |text, row| text + &line(row.iter().map(String::as_str).collect()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn columns_are_as_wide_as_they_have_to_be() {
        let rows = [vec!["abc".to_owned(), "1".to_owned()], vec!["d".to_owned(), String::new()]];
        assert_eq!(super::print(&["A", "LONG"], &rows), "A    LONG\nabc  1\nd\n");
    }
}
