//! Bits of scalar registers that are known to be zero, for the index of a register.

use crate::flow::{BlockEnd, BlockIndex, Disassembly, Function, InstIndex};
use flipwave_isa::{Inst, Opcode, Register, Value};
use std::collections::BTreeMap;

/// Bits that may be set, of each scalar register with a bit that is known to be zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownBits(BTreeMap<Register, u32>);

impl KnownBits {
    /// Bits of a register that may be set.
    pub fn possible(&self, register: Register) -> u32 {
        self.0.get(&register).copied().unwrap_or(u32::MAX)
    }

    fn source(&self, inst: &Inst, index: usize) -> u32 {
        match inst.source(index) {
            Some(Value::Register(range)) if range.words == 1 => self.possible(range.first),
            Some(Value::Integer(number)) => *number as u32,
            Some(Value::Literal(number)) => *number,
            _ => u32::MAX,
        }
    }

    /// From the state before an instruction to the one after it.
    fn step(&mut self, inst: &Inst) {
        let result = self.result(inst);
        for register in inst.writes.iter().flat_map(|range| range.iter()) {
            self.0.remove(&register);
        }
        if let Some((register, bits)) = result.filter(|(_, bits)| *bits != u32::MAX) {
            self.0.insert(register, bits);
        }
    }

    /// The register that an instruction writes and bits of it that may be set.
    fn result(&self, inst: &Inst) -> Option<(Register, u32)> {
        // The index of GPR-index mode, in M0, and what it applies to.
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
        let to = inst.destinations().next()?;
        match to.value {
            Value::Register(range) if range.words == 1 => Some((range.first, bits)),
            _ => None,
        }
    }

    /// What is known on either way; gives whether that is less than before.
    fn meet(&mut self, other: &KnownBits) -> bool {
        let before = self.0.len();
        self.0.retain(|register, _| other.0.contains_key(register));
        let mut is_less = self.0.len() < before;
        for (register, bits) in &mut self.0 {
            let met = *bits | other.possible(*register);
            is_less |= met != *bits;
            *bits = met;
        }
        is_less
    }
}

/// Visits the instructions of a function with what is known before each.
pub fn visit(
    program: &Disassembly,
    function: &Function,
    mut see: impl FnMut(InstIndex, &KnownBits),
) {
    let entries = entries(program, function);
    for at in function.blocks.iter() {
        let mut known =
            entries[at.0 as usize - function.blocks.start.0 as usize].clone().unwrap_or_default();
        for (index, inst) in program.insts_of(program.blocks[at].instructions) {
            see(index, &known);
            known.step(inst);
        }
    }
}

/// By block of the function: what is known at its entry; nothing where no way leads.
fn entries(program: &Disassembly, function: &Function) -> Vec<Option<KnownBits>> {
    let mut entries: Vec<Option<KnownBits>> = vec![None; function.blocks.len()];
    let place = |block: BlockIndex| block.0 as usize - function.blocks.start.0 as usize;
    if function.has_unknown_control() {
        return entries;
    }
    entries[0] = Some(KnownBits::default());
    let mut open = vec![function.blocks.start];
    while let Some(at) = open.pop() {
        let block = &program.blocks[at];
        let mut known = entries[place(at)].clone().unwrap_or_default();
        program.insts_of(block.instructions).for_each(|(_, inst)| known.step(inst));
        if block.end == BlockEnd::Call {
            known = KnownBits::default();
        }
        for edge in &block.successors {
            let is_news = match &mut entries[place(edge.to)] {
                Some(own) => own.meet(&known),
                own => {
                    *own = Some(known.clone());
                    true
                }
            };
            if is_news {
                open.push(edge.to);
            }
        }
    }
    entries
}
