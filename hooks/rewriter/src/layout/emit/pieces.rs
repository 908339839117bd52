//! Emission of inserted code.

use super::LayoutEmitter;
use crate::layout::stream::{Address, Label};
use crate::layout::{InsertPurpose, InsertedCode, LayoutError, Piece, Reference};
use std::cell::LazyCell;

impl<'a> LayoutEmitter<'a> {
    /// Emits inserted code.
    pub(super) fn code(
        &mut self,
        code: &InsertedCode,
        purpose: InsertPurpose,
    ) -> Result<(), LayoutError> {
        let start = self.stream.position();
        if let Some(reason) = code.pieces.iter().find_map(|piece| defect(piece, code)) {
            return Err(LayoutError::Piece { place: self.describe(purpose), reason });
        }
        let chain_size = self.encoding.chain.size;
        let positions = LazyCell::new(|| positions(code, start, chain_size));
        for piece in &code.pieces {
            match piece {
                Piece::Bytes(bytes) => self.stream.bytes.extend_from_slice(bytes),
                Piece::Branch { word, to } => {
                    self.stream.branch(*word, Label::position(positions[*to]), None);
                }
                Piece::Address { destination, to } => {
                    let to = match to {
                        Reference::Data(pc) => Label::address(pc.0),
                        Reference::Inst(index) => Label::Inst(*index),
                        Reference::Routine(routine) => Label::Routine(*routine),
                    };
                    let at = self.stream.position();
                    let chain = self.encoding.address_chain(*destination)?;
                    self.stream.bytes.extend_from_slice(chain);
                    self.stream.addresses.push(Address { at, to });
                }
            }
        }
        self.stream.close_inserted(start, purpose);
        Ok(())
    }

    fn describe(&self, purpose: InsertPurpose) -> String {
        match purpose {
            InsertPurpose::Point(point) => {
                format!("instruction at {}", self.source.program.instructions[point.at].pc)
            }
            InsertPurpose::Entry(at) => {
                format!("entry of {}", self.source.program.functions[at].name)
            }
            InsertPurpose::Routine(at) => format!("routine {at}"),
            InsertPurpose::Island => "island".to_owned(),
        }
    }
}

/// Positions of the pieces of code that starts at `start`, and of its end.
fn positions(code: &InsertedCode, start: usize, chain_size: usize) -> Vec<usize> {
    let mut positions = vec![start];
    let mut position = start;
    for piece in &code.pieces {
        position += match piece {
            Piece::Bytes(bytes) => bytes.len(),
            Piece::Branch { .. } => 4,
            Piece::Address { .. } => chain_size,
        };
        positions.push(position);
    }
    positions
}

/// The defect of a malformed piece of inserted code.
fn defect(piece: &Piece, code: &InsertedCode) -> Option<String> {
    match piece {
        Piece::Bytes(bytes) if !bytes.len().is_multiple_of(4) => {
            Some(format!("{} bytes are not complete words", bytes.len()))
        }
        Piece::Branch { to, .. } if *to > code.pieces.len() => {
            Some(format!("a branch to piece {to} of {}", code.pieces.len()))
        }
        _ => None,
    }
}
