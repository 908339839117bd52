//! Converts CSV tables to Parquet, with types found from the cells.

use ::parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
use ::parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::types::Type;
use std::io::{Read, Write};
use std::sync::Arc;

/// Rows of a row group, which is buffered in memory.
const GROUP_ROWS: usize = 1 << 16;

/// Errors returned by [`csv_to_parquet`].
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The CSV table cannot be read.
    #[error(transparent)]
    Csv(#[from] csv::Error),
    /// The Parquet file cannot be written.
    #[error(transparent)]
    Parquet(#[from] ParquetError),
    /// The CSV table cannot be opened.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// The type of a column. Each also permits the cells of the ones before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ColumnType {
    Signed,
    Unsigned,
    Float,
    Text,
}

impl ColumnType {
    /// The first type from this one on that permits a cell.
    fn widened(self, cell: &str) -> ColumnType {
        let permits = |kind: ColumnType| match kind {
            ColumnType::Signed => cell.parse::<i64>().is_ok(),
            ColumnType::Unsigned => cell.parse::<u64>().is_ok(),
            ColumnType::Float => cell.parse::<f64>().is_ok(),
            ColumnType::Text => true,
        };
        let mut kinds =
            [ColumnType::Signed, ColumnType::Unsigned, ColumnType::Float, ColumnType::Text]
                .into_iter();
        kinds.find(|kind| *kind >= self && permits(*kind)).unwrap_or(ColumnType::Text)
    }
}

/// Converts a CSV table. `open` opens it from its start, once to find the types of the columns and once to
/// copy the rows. Cells that are empty or equal to `unknown` become null. Numbers become integers of 64 bits or
/// floating-point numbers; a column with any other cell is text.
///
/// # Errors
/// [`TableError`].
pub fn csv_to_parquet<R: Read, W: Write + Send>(
    open: impl Fn() -> std::io::Result<R>,
    unknown: &str,
    output: W,
) -> Result<(), TableError> {
    let is_null = |cell: &str| cell.is_empty() || cell == unknown;
    let mut reader = csv::Reader::from_reader(open()?);
    let names: Vec<String> = reader.headers()?.iter().map(str::to_owned).collect();
    let mut types = vec![ColumnType::Signed; names.len()];
    for row in reader.records() {
        let row = row?;
        for (kind, cell) in types.iter_mut().zip(&row).filter(|(_, cell)| !is_null(cell)) {
            *kind = kind.widened(cell);
        }
    }
    let fields = names.iter().zip(&types).map(|(name, kind)| field(name, *kind));
    let fields = fields.collect::<Result<Vec<_>, _>>()?;
    let schema = Type::group_type_builder("table").with_fields(fields).build()?;
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut file = SerializedFileWriter::new(output, Arc::new(schema), Arc::new(properties))?;
    let mut reader = csv::Reader::from_reader(open()?);
    let mut rows = reader.records();
    loop {
        let group = rows.by_ref().take(GROUP_ROWS).collect::<Result<Vec<_>, _>>()?;
        if group.is_empty() {
            break;
        }
        let mut writer = file.next_row_group()?;
        for (index, kind) in types.iter().enumerate() {
            let cells = group.iter().map(|row| row.get(index).filter(|cell| !is_null(cell)));
            write_column(&mut writer, *kind, &cells.collect::<Vec<_>>())?;
        }
        writer.close()?;
    }
    file.close()?;
    Ok(())
}

fn field(name: &str, kind: ColumnType) -> Result<Arc<Type>, ParquetError> {
    let unsigned = LogicalType::integer(64, false);
    let (physical, logical) = match kind {
        ColumnType::Signed => (PhysicalType::INT64, None),
        ColumnType::Unsigned => (PhysicalType::INT64, Some(unsigned)),
        ColumnType::Float => (PhysicalType::DOUBLE, None),
        ColumnType::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let builder = Type::primitive_type_builder(name, physical);
    let builder = builder.with_repetition(Repetition::OPTIONAL).with_logical_type(logical);
    Ok(Arc::new(builder.build()?))
}

/// Writes a column of a row group; `None` is null.
fn write_column<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    kind: ColumnType,
    cells: &[Option<&str>],
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else { return Ok(()) };
    let levels: Vec<i16> = cells.iter().map(|cell| cell.is_some().into()).collect();
    let present = || cells.iter().copied().flatten();
    match kind {
        ColumnType::Signed | ColumnType::Unsigned => {
            let number = |cell: &str| {
                let signed = cell.parse::<i64>().ok();
                signed.or_else(|| cell.parse::<u64>().ok().map(u64::cast_signed)).unwrap_or(0)
            };
            let values: Vec<i64> = present().map(number).collect();
            column.typed::<Int64Type>().write_batch(&values, Some(&levels), None)?;
        }
        ColumnType::Float => {
            let values: Vec<f64> = present().map(|cell| cell.parse().unwrap_or(f64::NAN)).collect();
            column.typed::<DoubleType>().write_batch(&values, Some(&levels), None)?;
        }
        ColumnType::Text => {
            let values: Vec<ByteArray> = present().map(ByteArray::from).collect();
            column.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
        }
    }
    column.close()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use bytes::Bytes;

    #[test]
    fn types_follow_from_the_cells() {
        let table = "name,count,address,mean,mixed\na,1,1,1.5,1\nb,,18446744073709551615,2,x\n\
                     c,not counted,3,,2\n";
        let mut bytes = Vec::new();
        csv_to_parquet(|| Ok(table.as_bytes()), "not counted", &mut bytes).expect("a file");
        let reader = SerializedFileReader::new(Bytes::from(bytes)).expect("a Parquet file");
        let schema = reader.metadata().file_metadata().schema_descr_ptr();
        let types: Vec<_> = schema.columns().iter().map(|column| column.physical_type()).collect();
        let text = PhysicalType::BYTE_ARRAY;
        let (number, float) = (PhysicalType::INT64, PhysicalType::DOUBLE);
        assert_eq!(types, [text, number, number, float, text]);
        let rows: Vec<String> = reader
            .get_row_iter(None)
            .expect("rows")
            .map(|row| row.expect("a row").to_string())
            .collect();
        assert_eq!(rows.len(), 3);
        assert!(rows[0].contains("count: 1") && rows[1].contains("count: null"), "{rows:?}");
        assert!(rows[1].contains("address: 18446744073709551615"), "{rows:?}");
        assert!(rows[2].contains("count: null") && rows[2].contains("mixed: \"2\""), "{rows:?}");
    }
}
