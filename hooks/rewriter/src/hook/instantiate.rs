//! A body's code with other registers.

use super::{Body, BodyInst, HookError, IndexedAccess, Renaming};
use crate::layout::{InsertedCode, Piece, Reference};
use flipwave_isa::{Isa, Pc, Register};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// Assembles, and remembers what it has assembled: the same few instructions come again and again.
pub struct Assembler {
    isa: Isa,
    known: FxHashMap<String, Vec<u8>>,
}

impl Assembler {
    /// An assembler for what `isa` decodes.
    pub fn new(isa: Isa) -> Assembler {
        Assembler { isa, known: FxHashMap::default() }
    }

    /// What it assembles for.
    pub fn isa(&self) -> &Isa {
        &self.isa
    }

    /// The bytes of `text`, one instruction or several on lines of their own.
    ///
    /// # Errors
    /// [`HookError::Assemble`].
    pub fn assemble(&mut self, text: &str) -> Result<&[u8], HookError> {
        if !self.known.contains_key(text) {
            let bytes = self
                .isa
                .assemble(text)
                // Short encodings of 16-bit operations reach half of the registers (gfx11).
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
    /// Its code with the registers of `names`. The hooks' data lie at `data`, an ELF virtual
    /// address of the new code object; `indexed` gives the code of accesses by number.
    ///
    /// # Errors
    /// [`HookError::Assemble`] where an instruction does not take the registers, and those of
    /// `indexed`.
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
        // The piece that each instruction begins, of those that are branched to.
        let mut starts: FxHashMap<usize, usize> = FxHashMap::default();
        let mut branches = Vec::new();
        // Whether the last piece is instructions of the body, to which more may be added.
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
                        other => {
                            let reason = format!("an address cannot go to {other}");
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
                        other => other,
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
