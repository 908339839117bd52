//! Tables for the terminal.

use flipwave_host::output::printable;
use std::fmt::Write as _;

/// Formats a table whose first row is the heading. Columns that contain only numbers are aligned to the
/// right.
pub fn table(rows: &[Vec<String>]) -> String {
    let escaped = |row: &Vec<String>| row.iter().map(|cell| printable(cell).into_owned()).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(escaped).collect();
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let is_number = |column: usize| {
        let cells = rows.iter().skip(1).filter_map(|row| row.get(column));
        cells.into_iter().all(|cell| cell.parse::<f64>().is_ok())
    };
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate().take(columns) {
            let width = width(column);
            // Writing to a string cannot fail.
            let _ = if is_number(column) {
                write!(line, "{cell:>width$}  ")
            } else {
                write!(line, "{cell:<width$}  ")
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Copies the cells of a row.
pub fn row(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|cell| (*cell).to_owned()).collect()
}
