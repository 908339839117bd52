//! Cells of tables.

use serde::{Serialize, Serializer};
use std::fmt;
use std::sync::Arc;

/// A cell of a table.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub enum Cell {
    /// No value.
    Empty,
    /// The value is unknown, because a hook could not be inserted.
    NotCounted,
    /// An unsigned number.
    Unsigned(u64),
    /// A signed number.
    Signed(i64),
    /// A floating-point number.
    Float(f64),
    /// A text.
    Text(Arc<str>),
}

/// The content of a cell whose value is unknown.
pub const NOT_COUNTED: &str = "not counted";

/// A row of a table, without the columns of the dispatch.
pub type Row = Vec<Cell>;

impl Cell {
    /// A cell with a text.
    pub fn text(text: &str) -> Cell {
        Cell::Text(Arc::from(text))
    }

    /// The number of a cell with an unsigned number.
    pub fn number(&self) -> Option<u64> {
        match self {
            Cell::Unsigned(number) => Some(*number),
            _ => None,
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Empty => Ok(()),
            Cell::NotCounted => f.write_str(NOT_COUNTED),
            Cell::Unsigned(number) => number.fmt(f),
            Cell::Signed(number) => number.fmt(f),
            Cell::Float(number) => number.fmt(f),
            Cell::Text(text) => f.write_str(text),
        }
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Cell::Empty => serializer.serialize_str(""),
            Cell::NotCounted => serializer.serialize_str(NOT_COUNTED),
            Cell::Unsigned(number) => serializer.serialize_u64(*number),
            Cell::Signed(number) => serializer.serialize_i64(*number),
            Cell::Float(number) => serializer.serialize_f64(*number),
            Cell::Text(text) => serializer.serialize_str(text),
        }
    }
}
