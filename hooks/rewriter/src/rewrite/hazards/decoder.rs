//! Decoding of inserted code, with the hazard roles of each instruction.

use super::error::PaddingError;
use crate::layout::address_chain;
use flipwave_isa::hazard::{HazardIndex, HazardRoles};
use flipwave_isa::{Inst, Isa, Pc, Rules, Sgpr, Value};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// All instructions of a piece.
pub(super) type Insts = Rc<[Inserted]>;

/// An instruction of inserted code.
#[derive(Clone)]
pub(super) struct Inserted {
    pub inst: Rc<Inst>,
    pub roles: Rc<HazardRoles>,
}

/// Decodes inserted code and caches the results, because few instructions are distinct.
pub(super) struct Decoder<'a> {
    isa: &'a Isa,
    pub rows: HazardIndex,
    known: FxHashMap<Vec<u8>, Insts>,
    /// Single instructions with a literal, by the word before it: literals differ between sites, but do not
    /// affect hazards.
    with_literals: FxHashMap<[u8; 4], Insts>,
    /// Roles of original instructions, by text.
    roles: FxHashMap<&'a str, Rc<HazardRoles>>,
}

impl<'a> Decoder<'a> {
    /// Creates a decoder for a target and its hazards.
    pub fn new(isa: &'a Isa, rules: &Rules) -> Decoder<'a> {
        Decoder {
            isa,
            rows: HazardIndex::new(rules),
            known: FxHashMap::default(),
            with_literals: FxHashMap::default(),
            roles: FxHashMap::default(),
        }
    }

    /// Removes hazards in which none of the given instructions takes part.
    pub fn narrow<'r>(&mut self, roles: impl Iterator<Item = &'r HazardRoles>) {
        self.rows.narrow(roles);
    }

    /// Decodes a piece of code.
    pub fn decode(&mut self, bytes: &[u8]) -> Result<Insts, PaddingError> {
        let head = bytes.first_chunk::<4>().filter(|_| bytes.len() == 8);
        let with_literal = head.and_then(|head| self.with_literals.get(head));
        if let Some(insts) = with_literal.or_else(|| self.known.get(bytes)) {
            return Ok(Rc::clone(insts));
        }
        let mut insts = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let inst = self.isa.decode(rest, Pc(0))?;
            rest = &rest[usize::from(inst.size)..];
            let roles = Rc::new(self.rows.roles(&inst));
            insts.push(Inserted { inst: Rc::new(inst), roles });
        }
        let insts: Insts = insts.into();
        match (head, &*insts) {
            (Some(head), [single]) if has_literal(&single.inst) => {
                self.with_literals.insert(*head, Rc::clone(&insts));
            }
            _ => _ = self.known.insert(bytes.to_vec(), Rc::clone(&insts)),
        }
        Ok(insts)
    }

    /// Assembles text and decodes the result.
    pub fn assemble(&mut self, text: &str) -> Result<(Vec<u8>, Insts), PaddingError> {
        let bytes = self.isa.assemble(text)?;
        let insts = self.decode(&bytes)?;
        Ok((bytes, insts))
    }

    /// The address chain that layout emits for a register pair.
    pub fn address_chain(&mut self, destination: Sgpr) -> Result<(Vec<u8>, Insts), PaddingError> {
        let text = address_chain(self.isa.target(), self.isa.wave_size(), destination);
        self.assemble(&text)
    }

    /// Hazard roles of an original instruction.
    pub fn roles(&mut self, inst: &'a Inst) -> Rc<HazardRoles> {
        let rows = &self.rows;
        Rc::clone(self.roles.entry(&inst.text).or_insert_with(|| Rc::new(rows.roles(inst))))
    }
}

fn has_literal(inst: &Inst) -> bool {
    inst.operands.iter().any(|operand| matches!(operand.value, Value::Literal(_)))
}
