//! Where padding goes.

use crate::flow::{FunctionIndex, InstIndex};
use crate::layout::{Edits, InsertedCode, Piece};

/// Where an instruction of the new code is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Slot {
    Entry(FunctionIndex, Point),
    Before(InstIndex, Point),
    Original(InstIndex),
    Instead(InstIndex, Point),
    After(InstIndex, Point),
}

/// An instruction of inserted code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Point {
    /// The piece that it is in.
    pub piece: usize,
    /// Bytes of the piece before it.
    pub offset: usize,
}

impl Slot {
    /// The instruction of the program that it belongs to; none for what runs before functions.
    pub fn at(self) -> Option<InstIndex> {
        match self {
            Slot::Entry(..) => None,
            Slot::Before(index, _)
            | Slot::Original(index)
            | Slot::Instead(index, _)
            | Slot::After(index, _) => Some(index),
        }
    }

    /// Puts `padding` before what is in this slot.
    pub fn insert(self, edits: &mut Edits, padding: Vec<Vec<u8>>) {
        let (code, at) = match self {
            Slot::Entry(function, at) => (edits.entries.entry(function).or_default(), at),
            Slot::Before(index, at) => (edits.before.entry(index).or_default(), at),
            Slot::Original(index) => {
                let code = edits.before.entry(index).or_default();
                let end = Point { piece: code.pieces.len(), offset: 0 };
                (code, end)
            }
            Slot::Instead(index, at) => (edits.replaced.entry(index).or_default(), at),
            Slot::After(index, at) => (edits.after.entry(index).or_default(), at),
        };
        insert(code, at, padding);
    }
}

/// Puts `padding` before an instruction. What branched to it comes to the padding.
fn insert(code: &mut InsertedCode, at: Point, padding: Vec<Vec<u8>>) {
    let Point { piece: mut at, offset } = at;
    let after = match code.pieces.get_mut(at) {
        Some(Piece::Bytes(bytes)) if offset > 0 => {
            Some(Piece::Bytes(bytes.drain(offset.min(bytes.len())..).collect()))
        }
        _ => None,
    };
    let more = padding.len() + usize::from(after.is_some());
    for piece in &mut code.pieces {
        if let Piece::Branch { to, .. } = piece
            && *to > at
        {
            *to += more;
        }
    }
    at += usize::from(after.is_some());
    code.pieces.splice(at..at, padding.iter().map(|bytes| Piece::bytes(bytes)).chain(after));
}
