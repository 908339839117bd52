//! Types of grouped memory accesses.

use crate::compile::access::{Access, AccessSpace, Direction};
use crate::compile::value::Value;
use crate::instruction::Element;
use crate::wave::RowIndex;

/// Accesses of one kind whose addresses differ by a constant, and their common address pattern.
#[derive(Clone, Copy)]
pub(in crate::compile::emit) struct Group {
    pub(in crate::compile::emit) space: AccessSpace,
    pub(in crate::compile::emit) direction: Direction,
    /// Low and high words of the lanes' addresses.
    pub(in crate::compile::emit) low: Value,
    pub(in crate::compile::emit) high: Option<Value>,
    /// Words of the scalar base, if there is one.
    pub(in crate::compile::emit) base: Option<[Value; 2]>,
    /// Bytes of a lane's access, which is also the distance of consecutive lanes.
    pub(in crate::compile::emit) step: u32,
    /// Host address of the accessible bytes.
    pub(in crate::compile::emit) bytes: Value,
    /// Number of accessible bytes.
    pub(in crate::compile::emit) length: Value,
    /// 64-bit difference between an address and its offset into these bytes.
    pub(in crate::compile::emit) add: Value,
    /// Nonzero if no bytes are accessible.
    pub(in crate::compile::emit) missing: Option<Value>,
    /// Location of the footprint, in footprint variants.
    pub(in crate::compile::emit) touched: Option<Touched>,
    /// Lanes whose elements exist in the buffer; others load zeros and store nothing. `None` if all
    /// exist.
    pub(in crate::compile::emit) exists: Option<Value>,
    /// Offset of the first lane's address.
    pub(in crate::compile::emit) start: Value,
    /// `true` if lanes are consecutive, and all accesses of the group are in range.
    pub(in crate::compile::emit) consecutive: Value,
    /// `true` if all lanes have the same address, and all accesses of the group are in range.
    pub(in crate::compile::emit) equal: Value,
}

/// Byte range of a group's accesses relative to their common address.
#[derive(Clone, Copy)]
pub(in crate::compile::emit) struct Span {
    pub(in crate::compile::emit) first: i64,
    pub(in crate::compile::emit) end: i64,
}

/// The accessible bytes of a window.
#[derive(Clone, Copy)]
pub(in crate::compile::emit) struct Bounds {
    pub(in crate::compile::emit) length: Value,
    /// Nonzero if there is no window.
    pub(in crate::compile::emit) missing: Option<Value>,
}

/// Labels of the basic blocks of a branch.
#[derive(Clone, Copy)]
pub(in crate::compile::emit) struct Labels<'a> {
    /// Target if the condition holds.
    pub(in crate::compile::emit) taken: &'a str,
    /// Target if it does not hold.
    pub(in crate::compile::emit) not_taken: &'a str,
    /// Number that follows both.
    pub(in crate::compile::emit) number: u32,
}

/// A window of memory, see [`Group`].
pub(in crate::compile::emit) struct Window {
    pub(in crate::compile::emit) bytes: Value,
    pub(in crate::compile::emit) length: Value,
    pub(in crate::compile::emit) add: Value,
    pub(in crate::compile::emit) missing: Option<Value>,
    pub(in crate::compile::emit) touched: Option<Touched>,
}

/// Location of the footprint of a group.
#[derive(Clone, Copy)]
pub(in crate::compile::emit) struct Touched {
    /// Number of the access.
    pub(in crate::compile::emit) site: usize,
    /// The access's window.
    pub(in crate::compile::emit) window: Value,
    /// For each line of the window, the bytes that are touched.
    pub(in crate::compile::emit) bits: Value,
}

/// Loads of one group that are emitted together.
pub(in crate::compile::emit) struct Batch {
    pub(in crate::compile::emit) group: Group,
    pub(in crate::compile::emit) loads: Vec<BatchedLoad>,
}

/// A load of an element per lane.
#[derive(Clone, Copy)]
pub(in crate::compile::emit) struct BatchedLoad {
    /// Offset added to the addresses of the group.
    pub(in crate::compile::emit) add: u64,
    pub(in crate::compile::emit) element: Element,
    pub(in crate::compile::emit) to: RowIndex,
}

impl BatchedLoad {
    pub(in crate::compile::emit) fn rows(&self) -> impl Iterator<Item = RowIndex> + use<> {
        rows_from(self.to, self.element.words())
    }
}

/// Number of rows that an instruction loads.
pub(in crate::compile::emit) fn rows_loaded(access: Access) -> u8 {
    access.element.words() * access.elements
}

pub(in crate::compile::emit) fn rows_from(
    first: RowIndex,
    count: u8,
) -> impl Iterator<Item = RowIndex> + use<> {
    (0..u16::from(count)).map(move |word| first.plus(word))
}
