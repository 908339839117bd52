//! A writer of `results.parquet`: the columns of `results.csv` with types and compression, for large tables.

use crate::{ErrorShape, Row, Severity};
use ::parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::types::Type;
use std::io::Write;
use std::sync::Arc;

/// Rows of a row group, which is buffered in memory.
const GROUP_ROWS: usize = 1 << 16;

/// Writes rows to a Parquet file. Buffers one row group.
pub struct ParquetWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    columns: Vec<Column>,
    rows: usize,
}

/// The buffered values of a column.
struct Column {
    /// Values without nulls.
    values: Values,
    /// For each row, 1 for a value and 0 for a null: Parquet's definition levels.
    definition_levels: Vec<i16>,
}

enum Values {
    /// Unsigned integers, reinterpreted as signed.
    Unsigned(Vec<i64>),
    Signed(Vec<i64>),
    Float(Vec<f64>),
    Bool(Vec<bool>),
    Text(Vec<ByteArray>),
}

impl<W: Write + Send> ParquetWriter<W> {
    /// Creates a writer and writes the start of the file.
    ///
    /// # Errors
    /// An error of the output.
    pub fn new(output: W) -> Result<ParquetWriter<W>, ParquetError> {
        let columns = columns();
        let fields = Row::COLUMNS.iter().zip(&columns).map(|(name, column)| column.field(name));
        let fields = fields.collect::<Result<Vec<_>, _>>()?;
        let schema = Type::group_type_builder("results").with_fields(fields).build()?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let file = SerializedFileWriter::new(output, Arc::new(schema), Arc::new(properties))?;
        Ok(ParquetWriter { file, columns, rows: 0 })
    }

    /// Adds a row. Writes a row group if it is full.
    ///
    /// # Errors
    /// An error of the output.
    pub fn write(&mut self, row: &Row) -> Result<(), ParquetError> {
        let mut columns = self.columns.iter_mut();
        let mut push = |value: Value<'_>| {
            if let Some(column) = columns.next() {
                column.push(value);
            }
        };
        // In the order of `Row::COLUMNS`; a test compares the columns with those of the CSV file.
        push(Value::unsigned(Some(row.index)));
        push(Value::Text(Some(&row.site)));
        push(Value::Text(row.kernel.as_deref()));
        push(Value::unsigned(row.dispatch.map(u64::from)));
        push(Value::Text(row.label.as_deref()));
        push(Value::Text(row.workgroup.map(|workgroup| workgroup.to_string()).as_deref()));
        push(Value::unsigned(row.wave.map(u64::from)));
        push(Value::unsigned(row.lane.map(u64::from)));
        push(Value::unsigned(row.pc));
        push(Value::Text(Some(&row.opcode)));
        push(Value::Text(Some(&row.group)));
        push(Value::Text(row.line.as_deref()));
        push(Value::unsigned(row.occurrence));
        push(Value::Text(Some(&row.place)));
        push(Value::unsigned(Some(row.mask)));
        push(Value::unsigned(Some(row.before)));
        push(Value::unsigned(Some(row.after)));
        push(Value::unsigned(Some(row.words)));
        push(Value::Text(row.stratum.as_deref()));
        push(Value::Float(Some(row.weight)));
        push(Value::Text(Some(row.outcome.name())));
        push(Value::Text(row.cause.as_deref()));
        push(Value::Text(row.severity.map(Severity::name)));
        push(Value::unsigned(row.elements_wrong));
        push(Value::Float(row.max_abs_error));
        push(Value::Float(row.max_rel_error));
        push(Value::Text(row.shape.map(ErrorShape::name)));
        push(Value::unsigned(row.nan));
        push(Value::unsigned(row.inf));
        push(Value::Text(row.measures.as_deref()));
        push(Value::Integer(row.instructions));
        push(Value::Bool(row.timing_changed));
        self.rows += 1;
        if self.rows == GROUP_ROWS { self.write_group() } else { Ok(()) }
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.file.next_row_group()?;
        for column in &mut self.columns {
            column.write(&mut group)?;
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }

    /// Writes the last row group and the end of the file.
    ///
    /// # Errors
    /// An error of the output.
    pub fn finish(mut self) -> Result<W, ParquetError> {
        if self.rows > 0 {
            self.write_group()?;
        }
        self.file.into_inner()
    }
}

/// A value of a row, or a null.
enum Value<'a> {
    Integer(Option<i64>),
    Float(Option<f64>),
    Bool(Option<bool>),
    Text(Option<&'a str>),
}

impl<'a> Value<'a> {
    fn unsigned(value: Option<u64>) -> Value<'a> {
        Value::Integer(value.map(u64::cast_signed))
    }
}

/// Empty columns in the order of `Row::COLUMNS`.
fn columns() -> Vec<Column> {
    let values = |name: &&str| match *name {
        "index" | "dispatch" | "wave" | "lane" | "pc" | "occurrence" | "mask" | "before"
        | "after" | "words" | "elements_wrong" | "nan" | "inf" => Values::Unsigned(Vec::new()),
        "instructions" => Values::Signed(Vec::new()),
        "weight" | "max_abs_error" | "max_rel_error" => Values::Float(Vec::new()),
        "timing_changed" => Values::Bool(Vec::new()),
        _ => Values::Text(Vec::new()),
    };
    let column = |values| Column { values, definition_levels: Vec::new() };
    Row::COLUMNS.iter().map(values).map(column).collect()
}

impl Column {
    fn field(&self, name: &str) -> Result<Arc<Type>, ParquetError> {
        let integer = |is_signed| Some(LogicalType::integer(64, is_signed));
        let (physical, logical) = match self.values {
            Values::Unsigned(_) => (Physical::INT64, integer(false)),
            Values::Signed(_) => (Physical::INT64, integer(true)),
            Values::Float(_) => (Physical::DOUBLE, None),
            Values::Bool(_) => (Physical::BOOLEAN, None),
            Values::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let field = Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical);
        field.build().map(Arc::new)
    }

    fn push(&mut self, value: Value<'_>) {
        let level = match (&mut self.values, value) {
            (Values::Unsigned(values) | Values::Signed(values), Value::Integer(Some(value))) => {
                values.push(value);
                1
            }
            (Values::Float(values), Value::Float(Some(value))) => {
                values.push(value);
                1
            }
            (Values::Bool(values), Value::Bool(Some(value))) => {
                values.push(value);
                1
            }
            (Values::Text(values), Value::Text(Some(value))) => {
                values.push(ByteArray::from(value));
                1
            }
            _ => 0,
        };
        self.definition_levels.push(level);
    }

    fn write<W: Write + Send>(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        let Some(mut writer) = group.next_column()? else { return Ok(()) };
        let levels = Some(self.definition_levels.as_slice());
        match &mut self.values {
            Values::Unsigned(values) | Values::Signed(values) => {
                writer.typed::<Int64Type>().write_batch(values, levels, None)?;
                values.clear();
            }
            Values::Float(values) => {
                writer.typed::<DoubleType>().write_batch(values, levels, None)?;
                values.clear();
            }
            Values::Bool(values) => {
                writer.typed::<BoolType>().write_batch(values, levels, None)?;
                values.clear();
            }
            Values::Text(values) => {
                writer.typed::<ByteArrayType>().write_batch(values, levels, None)?;
                values.clear();
            }
        }
        self.definition_levels.clear();
        writer.close()
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
            shape: None,
            nan: None,
            inf: None,
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
        let rows: Vec<Row> = (0..count).map(|index| Row { index, ..template.clone() }).collect();
        let reader = written(&rows);
        assert_eq!(reader.num_row_groups(), 2);
        let first = |row: Result<::parquet::record::Row, _>| {
            ::parquet::record::RowAccessor::get_ulong(&row.expect("a row"), 0).expect("an index")
        };
        assert!(reader.get_row_iter(None).expect("rows").map(first).eq(0..count));
        assert_eq!(written(&[]).get_row_iter(None).expect("rows").count(), 0);
    }
}
