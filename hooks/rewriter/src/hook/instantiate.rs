//! Instantiation of bodies with other registers.

use super::{Body, BodyInst, HookError, IndexedAccess, Renaming};
use crate::layout::{InsertedCode, Piece, Reference};
use flipwave_isa::{Isa, Pc, Register};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// An assembler with a cache, because few instructions are distinct.
pub struct Assembler {
    isa: Isa,
    known: FxHashMap<String, Vec<u8>>,
}

impl Assembler {
    /// Creates an assembler.
    pub fn new(isa: Isa) -> Assembler {
        Assembler { isa, known: FxHashMap::default() }
    }

    /// The instruction set.
    pub fn isa(&self) -> &Isa {
        &self.isa
    }

    /// Assembles one instruction per line.
    ///
    /// # Errors
    /// [`HookError::Assemble`].
    pub fn assemble(&mut self, text: &str) -> Result<&[u8], HookError> {
        if !self.known.contains_key(text) {
            let bytes = self
                .isa
                .assemble(text)
                // On gfx11, short encodings of 16-bit operations support half of the registers.
                .or_else(|reason| match text.replacen("_e32 ", "_e64 ", 1) {
                    longer if longer != text => self.isa.assemble(&longer),
                    _ => Err(reason),
                })
                .map_err(|reason| HookError::Assemble { text: text.to_owned(), reason })?;
            self.known.insert(text.to_owned(), bytes);
        }
        Ok(&self.known[text])
    }
}

impl Body {
    /// The code of the body with the registers of `names`. `data` is the ELF virtual address of the hooks'
    /// data in the new code object; `indexed` generates accesses by number.
    ///
    /// # Errors
    /// [`HookError::Assemble`] if an instruction does not accept the registers, and errors of `indexed`.
    pub fn instantiate(
        &self,
        names: &Renaming,
        assembler: &mut Assembler,
        data: Pc,
        mut indexed: impl FnMut(IndexedAccess, &mut Assembler) -> Result<InsertedCode, HookError>,
    ) -> Result<InsertedCode, HookError> {
        let targets: BTreeSet<usize> = self
            .instructions
            .iter()
            .filter_map(|inst| match inst {
                BodyInst::Branch { to, .. } => Some(*to),
                _ => None,
            })
            .collect();
        let mut code = InsertedCode::default();
        // The first piece of each branch target.
        let mut starts: FxHashMap<usize, usize> = FxHashMap::default();
        let mut branches = Vec::new();
        // Whether instructions of the body may be appended to the last piece.
        let mut open = false;
        for (at, inst) in self.instructions.iter().enumerate() {
            if targets.contains(&at) {
                starts.insert(at, code.pieces.len());
                open = false;
            }
            let continues = std::mem::replace(&mut open, matches!(inst, BodyInst::Inst { .. }));
            match inst {
                BodyInst::Inst { inst, .. } => {
                    let text = names.text(&inst.text);
                    let bytes = assembler.assemble(&text)?;
                    match code.pieces.last_mut() {
                        Some(Piece::Bytes(run)) if continues => {
                            run.extend_from_slice(bytes);
                        }
                        _ => code.pieces.push(Piece::bytes(bytes)),
                    }
                }
                BodyInst::Branch { word, to, .. } => {
                    branches.push((code.pieces.len(), *to));
                    code.pieces.push(Piece::Branch { word: *word, to: 0 });
                }
                BodyInst::Address { destination, offset } => {
                    let destination = match names.register(destination.first) {
                        Register::Sgpr(sgpr) => sgpr,
                        register => {
                            let reason = format!("cannot load an address into {register}");
                            return Err(HookError::Renaming(reason));
                        }
                    };
                    let to = Reference::Data(Pc(data.0.wrapping_add(*offset)));
                    code.pieces.push(Piece::Address { destination, to });
                }
                BodyInst::Indexed(access) => {
                    let start = code.pieces.len();
                    let inner = indexed(names.indexed(*access), assembler)?;
                    code.pieces.extend(inner.pieces.into_iter().map(|piece| match piece {
                        Piece::Branch { word, to } => Piece::Branch { word, to: start + to },
                        piece => piece,
                    }));
                }
            }
        }
        let end = code.pieces.len();
        for (piece, target) in branches {
            code.link(piece, starts.get(&target).copied().unwrap_or(end));
        }
        Ok(code)
    }
}
