//! Registers that instructions reach by an index in M0: `v_movrel`, `v_swaprel` and `s_movrel`, and
//! vector arithmetic in GPR-index mode (gfx8 and gfx9).
//!
//! An index cannot lead out of the registers of the wave: a source beyond them is v0, a destination
//! beyond them is not written (Vega ISA, "VGPR indexing"; RDNA ISAs, "Out-of-range VGPRs").

use super::index_mode::{IndexMode, index_mode};
use super::known_bits::{self, KnownBits};
use crate::flow::{Disassembly, FunctionIndex, Groups, IndexVec, InstIndex};
use flipwave_isa::{Class, Inst, Opcode, Register, RegisterRange, RegisterSet, Vgpr};
use std::collections::BTreeMap;

/// Registers that instructions reach by an index.
#[derive(Clone, Debug, Default)]
pub struct IndexedRegisters(BTreeMap<InstIndex, RegisterSet>);

impl IndexedRegisters {
    /// The registers that each instruction of a program reaches.
    pub fn of(program: &Disassembly, groups: &Groups) -> IndexedRegisters {
        let modes = index_mode(program);
        let mut indexed = IndexedRegisters::default();
        for group in groups.iter() {
            let indexes = |at: InstIndex| {
                Indexing::of(&program.instructions[at], modes[at] != IndexMode::Off).is_some()
            };
            let has_indices =
                |own: &&FunctionIndex| program.functions[**own].instructions.iter().any(indexes);
            let with_indices: Vec<&FunctionIndex> = group.iter().filter(has_indices).collect();
            if with_indices.is_empty() {
                continue;
            }
            let waves = registers_of_waves(program, group);
            for function in with_indices {
                indexed.add(program, *function, &modes, waves);
            }
        }
        indexed
    }

    fn add(
        &mut self,
        program: &Disassembly,
        function: FunctionIndex,
        modes: &IndexVec<InstIndex, IndexMode>,
        waves: RegisterSet,
    ) {
        known_bits::visit(program, &program.functions[function], |at, known| {
            let inst = &program.instructions[at];
            if let Some(indexing) = Indexing::of(inst, modes[at] != IndexMode::Off) {
                let highest = indexing.highest(known);
                let vectors = vectors(program);
                let file = match indexing {
                    Indexing::Scalar => RegisterSet::SGPRS,
                    Indexing::Vector | Indexing::Mode => vectors,
                };
                let named = inst.reads.iter().chain(&inst.writes);
                let named = named.filter(|own| file.contains(own.first));
                let reached = named.fold(RegisterSet::EMPTY, |all, own| {
                    all.union(reached(*own, highest, file, waves))
                });
                self.0.insert(at, reached);
            }
        });
    }

    /// The registers that an instruction reaches; nothing where it reaches none by an index.
    pub fn at(&self, inst: InstIndex) -> Option<RegisterSet> {
        self.0.get(&inst).copied()
    }

    /// All registers that the instructions of some functions reach.
    pub fn of_functions(&self, program: &Disassembly, functions: &[FunctionIndex]) -> RegisterSet {
        let ranges = functions.iter().map(|own| program.functions[*own].instructions);
        let reached = ranges.flat_map(|own| self.0.range(own.start..own.end));
        reached.fold(RegisterSet::EMPTY, |all, (_, own)| all.union(*own))
    }
}

/// How an instruction takes its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexing {
    /// SGPRs, by all of M0.
    Scalar,
    /// VGPRs, by all of M0.
    Vector,
    /// VGPRs, by the lowest byte of M0: GPR-index mode.
    Mode,
}

impl Indexing {
    /// How an instruction does; nothing where it has no index.
    pub fn of(inst: &Inst, in_index_mode: bool) -> Option<Indexing> {
        let is_vector = matches!(inst.class(), Class::Valu | Class::Matrix);
        match inst.indexes_registers() {
            true if is_vector => Some(Indexing::Vector),
            true => Some(Indexing::Scalar),
            false => (is_vector && in_index_mode).then_some(Indexing::Mode),
        }
    }

    /// The highest index; nothing where it is not known, or may be negative.
    fn highest(self, known: &KnownBits) -> Option<u16> {
        let m0 = known.possible(Register::M0);
        match self {
            Indexing::Mode => Some(m0 as u16 & 0xff),
            Indexing::Scalar | Indexing::Vector => u16::try_from(m0).ok(),
        }
    }
}

/// VCC follows the SGPRs.
const VCC: RegisterRange = RegisterRange { first: Register::VccLo, words: 2 };

/// The registers of `file` from the first of `range` on, as far as `highest` leads.
fn reached(
    range: RegisterRange,
    highest: Option<u16>,
    file: RegisterSet,
    waves: RegisterSet,
) -> RegisterSet {
    let present = file.intersection(waves);
    let Some(highest) = highest else {
        let beyond = file.intersection(RegisterSet::SGPRS);
        let vcc = [VCC].into_iter().collect();
        return if beyond.is_empty() { present } else { present.union(vcc) };
    };
    let number = |register: Register| match register {
        Register::Vgpr(own) => own.0,
        Register::Sgpr(own) => own.0.into(),
        Register::AccVgpr(own) => u16::from(own.0) + 256,
        _ => 0,
    };
    let first = number(range.first);
    let last = u32::from(first) + u32::from(highest) + u32::from(range.words) - 1;
    let is_within = |own: &Register| u32::from(number(*own)) <= last && number(*own) >= first;
    let mut reached: RegisterSet = present.iter().filter(is_within).collect();
    let leads_beyond = reached.len() < u32::from(highest) + u32::from(range.words);
    match range.first {
        Register::Sgpr(_) if leads_beyond => reached.insert_range(VCC),
        _ if leads_beyond => reached.insert(Register::Vgpr(Vgpr(0))),
        _ => {}
    }
    reached
}

/// Registers that waves have which come to a group of functions; all where that may change.
fn registers_of_waves(program: &Disassembly, group: &[FunctionIndex]) -> RegisterSet {
    let functions = || group.iter().map(|own| &program.functions[*own]);
    let mut insts = functions().flat_map(|own| &program.instructions[own.instructions]);
    let resizes = insts.any(|own| own.operation.opcode() == Opcode::SAllocVgpr);
    let allocated = functions().filter_map(|own| own.allocated).reduce(RegisterSet::union);
    allocated.filter(|_| !resizes).unwrap_or_else(numbered)
}

/// All registers that have numbers.
pub fn numbered() -> RegisterSet {
    RegisterSet::VGPRS.union(RegisterSet::ACC_VGPRS).union(RegisterSet::SGPRS)
}

/// The file that an index of VGPRs leads into.
fn vectors(program: &Disassembly) -> RegisterSet {
    match program.accum_offset {
        Some(_) => RegisterSet::VGPRS.union(RegisterSet::ACC_VGPRS),
        None => RegisterSet::VGPRS,
    }
}
