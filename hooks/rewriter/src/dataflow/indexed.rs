//! Registers that instructions access through an index in M0: `v_movrel`, `v_swaprel` and `s_movrel`, and
//! vector arithmetic in GPR-index mode (gfx8 and gfx9).
//!
//! Accesses stay within the wave's registers: an out-of-range source is v0, and an out-of-range destination
//! is not written (Vega ISA, "VGPR indexing"; RDNA ISAs, "Out-of-range VGPRs").

use super::index_mode::{IndexMode, index_mode};
use super::known_bits::{self, KnownBits};
use crate::flow::{Disassembly, FunctionIndex, Groups, IndexVec, InstIndex};
use flipwave_isa::{Class, Inst, Opcode, Register, RegisterRange, RegisterSet, Vgpr};
use std::collections::BTreeMap;

/// Registers that instructions may access through an index.
#[derive(Clone, Debug, Default)]
pub struct IndexedRegisters(BTreeMap<InstIndex, RegisterSet>);

impl IndexedRegisters {
    /// Computes the registers that each instruction of a program may access.
    pub fn of(program: &Disassembly, groups: &Groups) -> IndexedRegisters {
        let modes = index_mode(program);
        let mut indexed = IndexedRegisters::default();
        for group in groups.iter() {
            let indexes = |at: InstIndex| {
                Indexing::of(&program.instructions[at], modes[at] != IndexMode::Off).is_some()
            };
            let has_indices = |function: &&FunctionIndex| {
                program.functions[**function].instructions.iter().any(indexes)
            };
            let with_indices: Vec<&FunctionIndex> = group.iter().filter(has_indices).collect();
            if with_indices.is_empty() {
                continue;
            }
            let allocated = allocated_registers(program, group);
            for function in with_indices {
                indexed.add_function(program, *function, &modes, allocated);
            }
        }
        indexed
    }

    fn add_function(
        &mut self,
        program: &Disassembly,
        function: FunctionIndex,
        modes: &IndexVec<InstIndex, IndexMode>,
        allocated: RegisterSet,
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
                let named = named.filter(|range| file.contains(range.first));
                let accessed = named.fold(RegisterSet::EMPTY, |accessed, range| {
                    accessed.union(accessible(*range, highest, file, allocated))
                });
                self.0.insert(at, accessed);
            }
        });
    }

    /// The registers that an instruction may access; `None` if it uses no index.
    pub fn at(&self, inst: InstIndex) -> Option<RegisterSet> {
        self.0.get(&inst).copied()
    }

    /// The registers that any instruction of the functions may access.
    pub fn of_functions(&self, program: &Disassembly, functions: &[FunctionIndex]) -> RegisterSet {
        let ranges = functions.iter().map(|index| program.functions[*index].instructions);
        let indexed = ranges.flat_map(|range| self.0.range(range.start..range.end));
        indexed.fold(RegisterSet::EMPTY, |all, (_, registers)| all.union(*registers))
    }
}

/// The kind of index that an instruction uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexing {
    /// An index of SGPRs in M0.
    Scalar,
    /// An index of VGPRs in M0.
    Vector,
    /// An index of VGPRs in the lowest byte of M0: GPR-index mode.
    Mode,
}

impl Indexing {
    /// The kind of index that an instruction uses; `None` if it uses none.
    pub fn of(inst: &Inst, in_index_mode: bool) -> Option<Indexing> {
        let is_vector = matches!(inst.class(), Class::Valu | Class::Matrix);
        if inst.indexes_registers() {
            Some(if is_vector { Indexing::Vector } else { Indexing::Scalar })
        } else {
            (is_vector && in_index_mode).then_some(Indexing::Mode)
        }
    }

    /// The highest possible index; `None` if it is unknown or may be negative.
    fn highest(self, known: &KnownBits) -> Option<u16> {
        let m0 = known.possible(Register::M0);
        match self {
            Indexing::Mode => Some(m0 as u16 & 0xff),
            Indexing::Scalar | Indexing::Vector => u16::try_from(m0).ok(),
        }
    }
}

/// VCC, which follows the SGPRs.
const VCC: RegisterRange = RegisterRange { first: Register::VccLo, words: 2 };

/// The registers of `file` that an access to `range` with an index of at most `highest` may reach.
fn accessible(
    range: RegisterRange,
    highest: Option<u16>,
    file: RegisterSet,
    allocated: RegisterSet,
) -> RegisterSet {
    let present = file.intersection(allocated);
    let Some(highest) = highest else {
        let sgprs = file.intersection(RegisterSet::SGPRS);
        let vcc = [VCC].into_iter().collect();
        return if sgprs.is_empty() { present } else { present.union(vcc) };
    };
    let number = |register: Register| match register {
        Register::Vgpr(vgpr) => vgpr.0,
        Register::Sgpr(sgpr) => sgpr.0.into(),
        Register::AccVgpr(vgpr) => u16::from(vgpr.0) + 256,
        _ => 0,
    };
    let first = number(range.first);
    let last = u32::from(first) + u32::from(highest) + u32::from(range.words) - 1;
    let is_within = |register: &Register| {
        let number = number(*register);
        u32::from(number) <= last && number >= first
    };
    let mut accessible: RegisterSet = present.iter().filter(is_within).collect();
    let may_exceed = accessible.len() < u32::from(highest) + u32::from(range.words);
    match range.first {
        Register::Sgpr(_) if may_exceed => accessible.insert_range(VCC),
        _ if may_exceed => accessible.insert(Register::Vgpr(Vgpr(0))),
        _ => {}
    }
    accessible
}

/// Registers of the waves that may execute a group of functions; all registers if waves may change their
/// allocation.
fn allocated_registers(program: &Disassembly, group: &[FunctionIndex]) -> RegisterSet {
    let functions = || group.iter().map(|index| &program.functions[*index]);
    let mut insts = functions().flat_map(|function| &program.instructions[function.instructions]);
    let resizes = insts.any(|inst| inst.operation.opcode() == Opcode::SAllocVgpr);
    let allocated = functions().filter_map(|function| function.allocated);
    let allocated = allocated.reduce(RegisterSet::union);
    allocated.filter(|_| !resizes).unwrap_or_else(numbered)
}

/// All VGPRs, AccVGPRs and SGPRs.
pub fn numbered() -> RegisterSet {
    RegisterSet::VGPRS.union(RegisterSet::ACC_VGPRS).union(RegisterSet::SGPRS)
}

/// The registers that an index of VGPRs may access.
fn vectors(program: &Disassembly) -> RegisterSet {
    match program.accum_offset {
        Some(_) => RegisterSet::VGPRS.union(RegisterSet::ACC_VGPRS),
        None => RegisterSet::VGPRS,
    }
}
