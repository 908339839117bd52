//! Formats tables as CSV.

use super::{DispatchColumns, Row};

/// Formats the line with the names of columns.
///
/// # Errors
/// If the line cannot be formatted.
pub fn csv_header(columns: &[String]) -> Result<Vec<u8>, csv::Error> {
    let mut writer = csv::WriterBuilder::new().from_writer(escaper());
    writer.write_record(
        ["dispatch", "kernel"].into_iter().chain(columns.iter().map(String::as_str)),
    )?;
    finish(writer)
}

/// Formats the lines of rows of one dispatch.
///
/// # Errors
/// If a line cannot be formatted.
pub fn csv_lines(dispatch: DispatchColumns<'_>, rows: &[Row]) -> Result<Vec<u8>, csv::Error> {
    let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(escaper());
    for row in rows {
        writer.serialize((dispatch, row))?;
    }
    finish(writer)
}

type Escaper = flipwave_host::output::FormulaEscaper<Vec<u8>>;

fn escaper() -> Escaper {
    flipwave_host::output::FormulaEscaper::new(Vec::new())
}

fn finish(writer: csv::Writer<Escaper>) -> Result<Vec<u8>, csv::Error> {
    let sink = writer.into_inner().map_err(|error| csv::Error::from(error.into_error()))?;
    Ok(sink.into_inner())
}
