//! A writer of `results.parquet`: the columns of `results.csv` with types and compression, for large tables.

use crate::{ErrorShape, Row, Severity};
use ::parquet::basic::Compression;
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::record::RecordWriter;
use ::parquet::schema::types::Type;
use parquet_derive::ParquetRecordWriter;
use std::io::Write;
use std::sync::Arc;

/// Rows of a row group, which is buffered in memory.
const GROUP_ROWS: usize = 1 << 16;

/// Writes rows to a Parquet file. Buffers one row group.
pub struct ParquetWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    group: Vec<Record>,
}

impl<W: Write + Send> ParquetWriter<W> {
    /// Creates a writer and writes the start of the file.
    ///
    /// # Errors
    /// An error of the output.
    pub fn new(output: W) -> Result<ParquetWriter<W>, ParquetError> {
        let columns = [].as_slice() as &[Record];
        let fields = columns.schema()?.get_fields().to_vec();
        let schema = Type::group_type_builder("results").with_fields(fields).build()?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let file = SerializedFileWriter::new(output, Arc::new(schema), Arc::new(properties))?;
        Ok(ParquetWriter { file, group: Vec::new() })
    }

    /// Adds a row. Writes a row group if it is full.
    ///
    /// # Errors
    /// An error of the output.
    pub fn write(&mut self, row: &Row) -> Result<(), ParquetError> {
        self.group.push(Record::from(row));
        if self.group.len() == GROUP_ROWS { self.write_group() } else { Ok(()) }
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.file.next_row_group()?;
        self.group.as_slice().write_to_row_group(&mut group)?;
        group.close()?;
        self.group.clear();
        Ok(())
    }

    /// Writes the last row group and the end of the file.
    ///
    /// # Errors
    /// An error of the output.
    pub fn finish(mut self) -> Result<W, ParquetError> {
        if !self.group.is_empty() {
            self.write_group()?;
        }
        self.file.into_inner()
    }
}

/// A row of the file. The fields are the columns, in this order. All columns are optional, so that a later
/// version can omit values.
#[derive(ParquetRecordWriter)]
struct Record {
    injection: Option<u64>,
    site: Option<String>,
    kernel: Option<String>,
    dispatch: Option<u64>,
    label: Option<String>,
    workgroup: Option<String>,
    wave: Option<u64>,
    lane: Option<u64>,
    pc: Option<u64>,
    opcode: Option<String>,
    group: Option<String>,
    line: Option<String>,
    occurrence: Option<u64>,
    location: Option<String>,
    flip_mask: Option<u64>,
    before: Option<u64>,
    after: Option<u64>,
    words: Option<u64>,
    stratum: Option<String>,
    weight: Option<f64>,
    outcome: Option<&'static str>,
    cause: Option<String>,
    severity: Option<&'static str>,
    elements_wrong: Option<u64>,
    max_abs_error: Option<f64>,
    max_rel_error: Option<f64>,
    error_pattern: Option<&'static str>,
    nan_elements: Option<u64>,
    inf_elements: Option<u64>,
    measures: Option<String>,
    // With the annotation of a signed integer of 64 bits, which `i64` lacks.
    instructions: Option<isize>,
    timing_changed: Option<bool>,
}

impl From<&Row> for Record {
    fn from(row: &Row) -> Record {
        Record {
            injection: Some(row.injection),
            site: Some(row.site.clone()),
            kernel: row.kernel.clone(),
            dispatch: row.dispatch.map(u64::from),
            label: row.label.clone(),
            workgroup: row.workgroup.map(|workgroup| workgroup.to_string()),
            wave: row.wave.map(u64::from),
            lane: row.lane.map(u64::from),
            pc: row.pc,
            opcode: Some(row.opcode.clone()),
            group: Some(row.group.clone()),
            line: row.line.clone(),
            occurrence: row.occurrence,
            location: Some(row.location.clone()),
            flip_mask: Some(row.flip_mask),
            before: Some(row.before),
            after: Some(row.after),
            words: Some(row.words),
            stratum: row.stratum.clone(),
            weight: Some(row.weight),
            outcome: Some(row.outcome.name()),
            cause: row.cause.clone(),
            severity: row.severity.map(Severity::name),
            elements_wrong: row.elements_wrong,
            max_abs_error: row.max_abs_error,
            max_rel_error: row.max_rel_error,
            error_pattern: row.error_pattern.map(ErrorShape::name),
            nan_elements: row.nan_elements,
            inf_elements: row.inf_elements,
            measures: row.measures.clone(),
            instructions: row.instructions.map(|count| count as isize),
            timing_changed: row.timing_changed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Outcome;
    use crate::row::tests::row;
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use bytes::Bytes;

    fn written(rows: &[Row]) -> SerializedFileReader<Bytes> {
        let mut writer = ParquetWriter::new(Vec::new()).expect("a table");
        rows.iter().for_each(|row| writer.write(row).expect("a row"));
        let bytes = writer.finish().expect("an end");
        SerializedFileReader::new(bytes.into()).expect("a table")
    }

    #[test]
    fn parquet_and_csv_have_equal_columns_and_values() {
        let due = Row {
            kernel: None,
            lane: None,
            pc: None,
            line: None,
            before: u64::MAX,
            elements_wrong: None,
            max_abs_error: None,
            max_rel_error: None,
            error_pattern: None,
            nan_elements: None,
            inf_elements: None,
            instructions: None,
            timing_changed: Some(true),
            stratum: Some("valu".to_owned()),
            ..row("salu", Outcome::Due, Some("watchdog"))
        };
        let rows = [row("valu", Outcome::Sdc, None), due];
        let reader = written(&rows);
        let schema = reader.metadata().file_metadata().schema().get_fields().iter();
        let names: Vec<String> = schema.map(|field| field.name().to_owned()).collect();
        assert_eq!(names, Row::COLUMNS);
        for (read, row) in reader.get_row_iter(None).expect("rows").zip(&rows) {
            let read = read.expect("a row");
            let mut csv = csv::Writer::from_writer(Vec::new());
            csv.serialize(row).expect("a row");
            let text = String::from_utf8(csv.into_inner().expect("text")).expect("text");
            let mut csv = csv::Reader::from_reader(text.as_bytes());
            let record = csv.records().next().expect("a row").expect("a row");
            for ((name, field), text) in read.get_column_iter().zip(&record) {
                let expected = match text.strip_prefix("0x") {
                    Some(digits) => u64::from_str_radix(digits, 16).expect("a number").to_string(),
                    None => text.to_owned(),
                };
                let found = field.to_string().trim_matches('"').to_owned();
                let found = if found == "null" { String::new() } else { found };
                let is_equal_number =
                    || found.parse::<f64>().is_ok_and(|number| text.parse() == Ok(number));
                assert!(found == expected || is_equal_number(), "{name}: {found}, CSV {text}");
            }
        }
    }

    #[test]
    fn several_row_groups_keep_all_rows_in_order() {
        let count = GROUP_ROWS as u64 + 10;
        let template = row("valu", Outcome::Masked, Some("dead"));
        let rows: Vec<Row> =
            (0..count).map(|index| Row { injection: index, ..template.clone() }).collect();
        let reader = written(&rows);
        assert_eq!(reader.num_row_groups(), 2);
        let first = |row: Result<::parquet::record::Row, _>| {
            ::parquet::record::RowAccessor::get_ulong(&row.expect("a row"), 0).expect("an index")
        };
        assert!(reader.get_row_iter(None).expect("rows").map(first).eq(0..count));
        assert_eq!(written(&[]).get_row_iter(None).expect("rows").count(), 0);
    }
}
