//! Positions of padding.

use crate::flow::{FunctionIndex, InstIndex};
use crate::layout::{Edits, InsertedCode, Piece};
use crate::point::ProgramPoint;

/// Origin of an instruction of the new code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Slot {
    /// In code that runs once when a kernel starts.
    Entry(FunctionIndex, CodeOffset),
    /// In code inserted at a program point.
    Inserted(ProgramPoint, CodeOffset),
    /// An instruction of the program.
    Original(InstIndex),
}

/// Position of an instruction in inserted code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CodeOffset {
    /// Index of the piece.
    pub piece: usize,
    /// Offset in the piece in bytes.
    pub offset: usize,
}

impl Slot {
    /// The original instruction that the slot belongs to; `None` in prologues.
    pub fn at(self) -> Option<InstIndex> {
        match self {
            Slot::Entry(..) => None,
            Slot::Inserted(point, _) => Some(point.at),
            Slot::Original(index) => Some(index),
        }
    }

    /// Inserts `padding` before the instruction of this slot.
    pub fn insert(self, edits: &mut Edits, padding: Vec<Vec<u8>>) {
        let (code, at) = match self {
            Slot::Entry(function, at) => (edits.entries.entry(function).or_default(), at),
            Slot::Inserted(point, at) => (edits.code.entry(point).or_default(), at),
            Slot::Original(index) => {
                let code = edits.code.entry(ProgramPoint::before(index)).or_default();
                let end = CodeOffset { piece: code.pieces.len(), offset: 0 };
                (code, end)
            }
        };
        insert(code, at, padding);
    }
}

/// Inserts `padding` before an instruction. Branches to the instruction go to the padding.
fn insert(code: &mut InsertedCode, at: CodeOffset, padding: Vec<Vec<u8>>) {
    let CodeOffset { piece: mut at, offset } = at;
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
