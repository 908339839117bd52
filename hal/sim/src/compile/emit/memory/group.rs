//! Types of grouped memory accesses.

use crate::compile::access::{Access, AccessSpace, Direction};
use crate::compile::value::Value;
use crate::instruction::Element;
use crate::wave::RowIndex;

/// Accesses of one kind whose addresses differ by a constant: what is known of all of them.
#[derive(Clone, Copy)]
pub(in crate::compile::emit) struct Group {
    pub(in crate::compile::emit) space: AccessSpace,
    pub(in crate::compile::emit) direction: Direction,
    /// The lanes' addresses, by words.
    pub(in crate::compile::emit) low: Value,
    pub(in crate::compile::emit) high: Option<Value>,
    /// The scalar base, where there is one, by words.
    pub(in crate::compile::emit) base: Option<[Value; 2]>,
    /// Bytes of a lane's access, and so from lane to lane where lanes follow each other.
    pub(in crate::compile::emit) step: u32,
    /// The host's address of the bytes that can be accessed.
    pub(in crate::compile::emit) bytes: Value,
    /// How many.
    pub(in crate::compile::emit) length: Value,
    /// What makes an address an offset into them, of 64 bits.
    pub(in crate::compile::emit) add: Value,
    /// Not zero if there are none such.
    pub(in crate::compile::emit) missing: Option<Value>,
    /// Where it is noted what is touched, if it is.
    pub(in crate::compile::emit) touched: Option<Touched>,
    /// The lanes whose elements exist, where that is not all: the others load zeros and store nothing.
    pub(in crate::compile::emit) exists: Option<Value>,
    /// The offset of the first lane's address.
    pub(in crate::compile::emit) start: Value,
    /// Whether lanes follow each other, and all of the group's accesses are in range.
    pub(in crate::compile::emit) consecutive: Value,
    /// Whether all lanes have the same address, and all of the group's accesses are in range.
    pub(in crate::compile::emit) equal: Value,
}

/// From where to where a group's accesses reach from the address that they share.
#[derive(Clone, Copy)]
pub(in crate::compile::emit) struct Span {
    pub(in crate::compile::emit) first: i64,
    pub(in crate::compile::emit) end: i64,
}

/// A window of memory, see [`Group`].
pub(in crate::compile::emit) struct Window {
    pub(in crate::compile::emit) bytes: Value,
    pub(in crate::compile::emit) length: Value,
    pub(in crate::compile::emit) add: Value,
    pub(in crate::compile::emit) missing: Option<Value>,
    pub(in crate::compile::emit) touched: Option<Touched>,
}

/// Where it is noted what a group touches.
#[derive(Clone, Copy)]
pub(in crate::compile::emit) struct Touched {
    /// The number of its access.
    pub(in crate::compile::emit) site: usize,
    /// Its window.
    pub(in crate::compile::emit) window: Value,
    /// For each line of its window the bytes that are touched.
    pub(in crate::compile::emit) bits: Value,
}

/// Loads of one group.
pub(in crate::compile::emit) struct Batch {
    pub(in crate::compile::emit) group: Group,
    pub(in crate::compile::emit) loads: Vec<BatchedLoad>,
}

/// An element of each lane.
#[derive(Clone, Copy)]
pub(in crate::compile::emit) struct BatchedLoad {
    /// What is added to the addresses of the group.
    pub(in crate::compile::emit) add: u64,
    pub(in crate::compile::emit) element: Element,
    pub(in crate::compile::emit) to: RowIndex,
}

impl BatchedLoad {
    pub(in crate::compile::emit) fn rows(&self) -> impl Iterator<Item = RowIndex> + use<> {
        rows_from(self.to, self.element.words())
    }
}

/// How many rows an instruction loads.
pub(in crate::compile::emit) fn rows_loaded(access: Access) -> u8 {
    access.element.words() * access.elements
}

pub(in crate::compile::emit) fn rows_from(
    first: RowIndex,
    count: u8,
) -> impl Iterator<Item = RowIndex> + use<> {
    (0..u16::from(count)).map(move |word| first.plus(word))
}
