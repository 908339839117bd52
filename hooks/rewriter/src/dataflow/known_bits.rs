//! Bits of scalar registers that are known to be zero. They limit the index of a register.

use crate::flow::{BlockEnd, BlockIndex, Disassembly, Function, InstIndex};
use flipwave_isa::{Inst, Opcode, Register, Value};
use std::collections::BTreeMap;

/// The bits that may be set in scalar registers. Registers without known zero bits have no entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownBits(BTreeMap<Register, u32>);

impl KnownBits {
    /// The bits of a register that may be set.
    pub fn possible(&self, register: Register) -> u32 {
        self.0.get(&register).copied().unwrap_or(u32::MAX)
    }

    /// The bits of a source operand that may be set.
    fn source(&self, inst: &Inst, index: usize) -> u32 {
        match inst.source(index) {
            Some(Value::Register(range)) if range.words == 1 => self.possible(range.first),
            Some(Value::Integer(number)) => *number as u32,
            Some(Value::Literal(number)) => *number,
            _ => u32::MAX,
        }
    }

    /// Updates the state by the effect of an instruction.
    fn apply(&mut self, inst: &Inst) {
        let result = self.result(inst);
        for register in inst.writes.iter().flat_map(|range| range.iter()) {
            self.0.remove(&register);
        }
        if let Some((register, bits)) = result.filter(|(_, bits)| *bits != u32::MAX) {
            self.0.insert(register, bits);
        }
    }

    /// The register that an instruction writes, and the bits that may be set in it.
    fn result(&self, inst: &Inst) -> Option<(Register, u32)> {
        // The fields of M0 in GPR-index mode: the index, and the operands that it applies to.
        const INDEX: u32 = 0xff;
        const OPERANDS: u32 = 0xf000;
        let m0 = self.possible(Register::M0);
        let bits = match inst.operation.opcode() {
            Opcode::SSetGprIdxOn => {
                let index = self.source(inst, 0) & INDEX;
                return Some((Register::M0, m0 & !(INDEX | OPERANDS) | index | OPERANDS));
            }
            Opcode::SSetGprIdxIdx => {
                return Some((Register::M0, m0 & !INDEX | self.source(inst, 0) & INDEX));
            }
            Opcode::SSetGprIdxMode => return Some((Register::M0, m0 | OPERANDS)),
            Opcode::SMov => self.source(inst, 0),
            Opcode::SAnd => self.source(inst, 0) & self.source(inst, 1),
            Opcode::SOr | Opcode::SXor => self.source(inst, 0) | self.source(inst, 1),
            _ => return None,
        };
        let destination = inst.destinations().next()?;
        match destination.value {
            Value::Register(range) if range.words == 1 => Some((range.first, bits)),
            _ => None,
        }
    }

    /// Joins the state of another path. Returns `true` if this state has changed.
    fn meet(&mut self, other: &KnownBits) -> bool {
        let before = self.0.len();
        self.0.retain(|register, _| other.0.contains_key(register));
        let mut has_changed = self.0.len() < before;
        for (register, bits) in &mut self.0 {
            let met = *bits | other.possible(*register);
            has_changed |= met != *bits;
            *bits = met;
        }
        has_changed
    }
}

/// Calls `visitor` with each instruction of a function and the known bits before it.
pub fn visit(
    program: &Disassembly,
    function: &Function,
    mut visitor: impl FnMut(InstIndex, &KnownBits),
) {
    let entries = entries(program, function);
    for at in function.blocks.iter() {
        let mut known =
            entries[at.0 as usize - function.blocks.start.0 as usize].clone().unwrap_or_default();
        for (index, inst) in program.insts_of(program.blocks[at].instructions) {
            visitor(index, &known);
            known.apply(inst);
        }
    }
}

/// The known bits at the entry of each block of a function; `None` for unreachable blocks.
fn entries(program: &Disassembly, function: &Function) -> Vec<Option<KnownBits>> {
    let mut entries: Vec<Option<KnownBits>> = vec![None; function.blocks.len()];
    let local = |block: BlockIndex| block.0 as usize - function.blocks.start.0 as usize;
    if function.has_unknown_control() {
        return entries;
    }
    entries[0] = Some(KnownBits::default());
    let mut waiting = vec![function.blocks.start];
    while let Some(at) = waiting.pop() {
        let block = &program.blocks[at];
        let mut known = entries[local(at)].clone().unwrap_or_default();
        program.insts_of(block.instructions).for_each(|(_, inst)| known.apply(inst));
        if block.end == BlockEnd::Call {
            known = KnownBits::default();
        }
        for edge in &block.successors {
            let has_changed = match &mut entries[local(edge.to)] {
                Some(entry) => entry.meet(&known),
                entry => {
                    *entry = Some(known.clone());
                    true
                }
            };
            if has_changed {
                waiting.push(edge.to);
            }
        }
    }
    entries
}
