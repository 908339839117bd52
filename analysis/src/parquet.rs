//! `results.parquet`: the columns of `results.csv` with their types, compressed, for tables of more rows
//! than text is good for.

use crate::{ErrorShape, Row, Severity};
use ::parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::types::Type;
use std::io::Write;
use std::sync::Arc;

/// Rows of a group: what is in memory at once.
const GROUP: usize = 1 << 16;

/// Writes rows in groups. It takes memory for one group.
pub struct ParquetWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    columns: Vec<Column>,
    rows: usize,
}

/// The values of a column in a group, those that are there, and for each row whether it has one.
struct Column {
    values: Values,
    is_there: Vec<i16>,
}

enum Values {
    /// Of 64 bits without a sign, as they are.
    Whole(Vec<i64>),
    Signed(Vec<i64>),
    Number(Vec<f64>),
    Truth(Vec<bool>),
    Text(Vec<ByteArray>),
}

impl<W: Write + Send> ParquetWriter<W> {
    /// A table without rows.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(output: W) -> Result<ParquetWriter<W>, ParquetError> {
        let columns = columns();
        let fields = Row::COLUMNS.iter().zip(&columns).map(|(name, column)| column.field(name));
        let fields = fields.collect::<Result<Vec<_>, _>>()?;
        let schema = Type::group_type_builder("results").with_fields(fields).build()?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let file = SerializedFileWriter::new(output, Arc::new(schema), Arc::new(properties))?;
        Ok(ParquetWriter { file, columns, rows: 0 })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// If a group cannot be written.
    pub fn write(&mut self, row: &Row) -> Result<(), ParquetError> {
        let mut columns = self.columns.iter_mut();
        let mut next = |value: Value<'_>| {
            if let Some(column) = columns.next() {
                column.push(value);
            }
        };
        // In the order of the columns, which a test compares with those of the other table.
        next(Value::whole(Some(row.index)));
        next(Value::text(Some(&row.site)));
        next(Value::text(row.kernel.as_deref()));
        next(Value::whole(row.dispatch.map(u64::from)));
        next(Value::text(row.label.as_deref()));
        next(Value::text(row.workgroup.map(|own| own.to_string()).as_deref()));
        next(Value::whole(row.wave.map(u64::from)));
        next(Value::whole(row.lane.map(u64::from)));
        next(Value::whole(row.pc));
        next(Value::text(Some(&row.opcode)));
        next(Value::text(Some(&row.group)));
        next(Value::text(row.line.as_deref()));
        next(Value::whole(row.occurrence));
        next(Value::text(Some(&row.place)));
        next(Value::whole(Some(row.mask)));
        next(Value::whole(Some(row.before)));
        next(Value::whole(Some(row.after)));
        next(Value::whole(Some(row.words)));
        next(Value::text(row.stratum.as_deref()));
        next(Value::Number(Some(row.weight)));
        next(Value::text(Some(&row.outcome.to_string())));
        next(Value::text(row.cause.as_deref()));
        next(Value::text(row.severity.map(Severity::name)));
        next(Value::whole(row.elements_wrong));
        next(Value::Number(row.max_abs_error));
        next(Value::Number(row.max_rel_error));
        next(Value::text(row.shape.map(ErrorShape::name)));
        next(Value::whole(row.nan));
        next(Value::whole(row.inf));
        next(Value::text(row.measures.as_deref()));
        next(Value::Whole(row.instructions));
        next(Value::Truth(row.timing_changed));
        self.rows += 1;
        if self.rows == GROUP { self.write_group() } else { Ok(()) }
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

    /// Writes what is left, and the end.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> Result<W, ParquetError> {
        if self.rows > 0 {
            self.write_group()?;
        }
        self.file.into_inner()
    }
}

/// A value of a row, if it has one.
enum Value<'a> {
    Whole(Option<i64>),
    Number(Option<f64>),
    Truth(Option<bool>),
    Text(Option<&'a str>),
}

impl<'a> Value<'a> {
    fn whole(value: Option<u64>) -> Value<'a> {
        Value::Whole(value.map(u64::cast_signed))
    }

    fn text(value: Option<&'a str>) -> Value<'a> {
        Value::Text(value)
    }
}

/// The columns, empty, in their order.
fn columns() -> Vec<Column> {
    use Values::{Number, Signed, Text, Truth, Whole};
    let own = |name: &&str| match *name {
        "index" | "dispatch" | "wave" | "lane" | "pc" | "occurrence" | "mask" | "before"
        | "after" | "words" | "elements_wrong" | "nan" | "inf" => Whole(Vec::new()),
        "instructions" => Signed(Vec::new()),
        "weight" | "max_abs_error" | "max_rel_error" => Number(Vec::new()),
        "timing_changed" => Truth(Vec::new()),
        _ => Text(Vec::new()),
    };
    Row::COLUMNS.iter().map(own).map(|values| Column { values, is_there: Vec::new() }).collect()
}

impl Column {
    fn field(&self, name: &str) -> Result<Arc<Type>, ParquetError> {
        let integer = |is_signed| Some(LogicalType::integer(64, is_signed));
        let (physical, logical) = match self.values {
            Values::Whole(_) => (Physical::INT64, integer(false)),
            Values::Signed(_) => (Physical::INT64, integer(true)),
            Values::Number(_) => (Physical::DOUBLE, None),
            Values::Truth(_) => (Physical::BOOLEAN, None),
            Values::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let field = Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical);
        field.build().map(Arc::new)
    }

    fn push(&mut self, value: Value<'_>) {
        let is_there = match (&mut self.values, value) {
            (Values::Whole(all) | Values::Signed(all), Value::Whole(Some(own))) => {
                all.push(own);
                true
            }
            (Values::Number(all), Value::Number(Some(own))) => {
                all.push(own);
                true
            }
            (Values::Truth(all), Value::Truth(Some(own))) => {
                all.push(own);
                true
            }
            (Values::Text(all), Value::Text(Some(own))) => {
                all.push(ByteArray::from(own));
                true
            }
            _ => false,
        };
        self.is_there.push(i16::from(is_there));
    }

    fn write<W: Write + Send>(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        let Some(mut writer) = group.next_column()? else { return Ok(()) };
        let is_there = Some(self.is_there.as_slice());
        match &mut self.values {
            Values::Whole(all) | Values::Signed(all) => {
                writer.typed::<Int64Type>().write_batch(all, is_there, None)?;
                all.clear();
            }
            Values::Number(all) => {
                writer.typed::<DoubleType>().write_batch(all, is_there, None)?;
                all.clear();
            }
            Values::Truth(all) => {
                writer.typed::<BoolType>().write_batch(all, is_there, None)?;
                all.clear();
            }
            Values::Text(all) => {
                writer.typed::<ByteArrayType>().write_batch(all, is_there, None)?;
                all.clear();
            }
        }
        self.is_there.clear();
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

    /// A row as JSON, by the names of the columns: as text has it, and as the other table has it.
    #[test]
    fn both_tables_have_the_same_values_in_the_same_columns() {
        let none = Row {
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
        let rows = [row("valu", Outcome::Sdc, None), none];
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
                let number = |text: &str| match text.strip_prefix("0x") {
                    Some(digits) => u64::from_str_radix(digits, 16).ok().map(|own| own.to_string()),
                    None => Some(text.to_owned()),
                };
                let found = field.to_string().trim_matches('"').to_owned();
                let found = if found == "null" { String::new() } else { found };
                let same = Some(&found) == number(text).as_ref()
                    || found.parse::<f64>().is_ok_and(|own| text.parse() == Ok(own));
                assert!(same, "{name}: {found}, and as text {text}");
            }
        }
    }

    #[test]
    fn a_table_of_several_groups_has_all_rows_in_order() {
        let count = GROUP as u64 + 10;
        let own = row("valu", Outcome::Masked, Some("dead"));
        let rows: Vec<Row> = (0..count).map(|index| Row { index, ..own.clone() }).collect();
        let reader = written(&rows);
        assert_eq!(reader.num_row_groups(), 2);
        let first = |row: Result<::parquet::record::Row, _>| {
            ::parquet::record::RowAccessor::get_ulong(&row.expect("a row"), 0).expect("an index")
        };
        assert!(reader.get_row_iter(None).expect("rows").map(first).eq(0..count));
        assert_eq!(written(&[]).get_row_iter(None).expect("rows").count(), 0);
    }
}
