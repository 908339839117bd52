//! Formats tables as CSV.

use super::{Cells, DispatchColumns, Tool};

/// Selects whether a header line with the column names is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// Written if there are any rows.
    Written,
    /// Not written.
    Omitted,
}

/// Formats the CSV lines of one dispatch: its rows, then those for instructions that could not be counted.
///
/// # Errors
/// If a row is not a flat list of cells.
pub fn csv_lines<T: Tool>(
    columns: DispatchColumns<'_>,
    rows: &[T::Row],
    not_counted: &[Cells],
    header: Header,
) -> Result<Vec<u8>, csv::Error> {
    let sink = flipwave_host::output::FormulaEscaper::new(Vec::new());
    let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(sink);
    let has_rows = !(rows.is_empty() && not_counted.is_empty());
    if header == Header::Written && has_rows {
        writer.write_record(["dispatch", "kernel"].iter().chain(T::COLUMNS))?;
    }
    for row in rows {
        writer.serialize((columns, row))?;
    }
    let dispatch = columns.dispatch.to_string();
    for cells in not_counted {
        let first = [dispatch.as_str(), columns.kernel];
        writer.write_record(first.into_iter().chain(cells.iter().map(String::as_str)))?;
    }
    let sink = writer.into_inner().map_err(|error| csv::Error::from(error.into_error()))?;
    Ok(sink.into_inner())
}
