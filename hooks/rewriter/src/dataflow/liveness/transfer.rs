//! What one instruction makes of what is live after it.

use super::{Live, always};
use crate::dataflow::indexed::{IndexedRegisters, numbered};
use crate::flow::{Disassembly, FunctionIndex, Groups, IndexVec, InstIndex};
use flipwave_isa::{
    Class, ExecChange, Family, Inst, LanesWritten, Opcode, Operand, Register, RegisterRange,
    RegisterSet, Value,
};

/// What of an instruction matters, besides the registers it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Transfer {
    lanes: Option<ExecEffect>,
    written: LanesWritten,
    reads_other_lanes: bool,
    /// Whether LLVM counts the destination as read only since some of its lanes are kept.
    keeps_lanes: bool,
    /// The files that it reaches into by an index in M0.
    indexes: Option<IndexedFile>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IndexedFile {
    Vector,
    Scalar,
}

/// The transfers of a program's instructions.
#[derive(Clone, Debug)]
pub struct Transfers {
    transfers: IndexVec<InstIndex, Transfer>,
    lanes: u8,
    always: RegisterSet,
    indexed: IndexedRegisters,
    groups: Groups,
    /// By group: registers that its functions can want.
    reachable: Vec<RegisterSet>,
}

impl Transfers {
    /// The transfers of all instructions.
    pub fn of(program: &Disassembly) -> Transfers {
        let groups = Groups::of(program);
        let indexed = IndexedRegisters::of(program, &groups);
        let skips = program.instructions.iter().any(|i| i.operation.opcode() == Opcode::SSetvskip);
        let transfer = |(index, inst): (InstIndex, &Inst)| {
            let indexes = indexed.at(index).map(|_| match inst.class() {
                Class::Salu => IndexedFile::Scalar,
                _ => IndexedFile::Vector,
            });
            // After s_setvskip a vector instruction may be none at all.
            let written = if skips { LanesWritten::Some } else { inst.lanes_written() };
            Transfer {
                lanes: ExecEffect::of(inst, program.wave_size),
                written,
                reads_other_lanes: inst.reads_other_lanes(),
                keeps_lanes: keeps_lanes(inst),
                indexes,
            }
        };
        let mut everywhere = RegisterSet::EMPTY;
        always(&mut everywhere);
        let transfers: IndexVec<InstIndex, Transfer> = program.insts().map(transfer).collect();
        // What no instruction of a group names or indexes is live nowhere in it, whoever calls whom.
        let reachable = groups.iter().map(|group| {
            let is_known = |own: &FunctionIndex| !program.functions[*own].has_unknown_control();
            match group.iter().all(is_known) {
                true => {
                    let indexed = indexed.of_functions(program, group);
                    program.registers_named(group).union(indexed).intersection(numbered())
                }
                false => numbered(),
            }
        });
        Transfers {
            reachable: reachable.collect(),
            transfers,
            lanes: program.wave_size,
            always: everywhere,
            indexed,
            groups,
        }
    }

    /// Registers that instructions reach by an index.
    pub fn indexed(&self) -> &IndexedRegisters {
        &self.indexed
    }

    /// What is live where the program ends.
    pub fn nothing(&self) -> Live {
        Live { active: self.always, masked: RegisterSet::EMPTY }
    }

    /// What is live in a function where nothing is known.
    pub fn everything(&self, function: FunctionIndex) -> Live {
        const STATE: [Register; 8] = [
            Register::VccLo,
            Register::VccHi,
            Register::ExecLo,
            Register::ExecHi,
            Register::FlatScratchLo,
            Register::FlatScratchHi,
            Register::M0,
            Register::Scc,
        ];
        let reachable = self.reachable[self.groups.number(function)];
        let masked = RegisterSet::VGPRS.union(RegisterSet::ACC_VGPRS).intersection(reachable);
        let sgprs = RegisterSet::SGPRS.intersection(reachable);
        let state: RegisterSet = STATE.into_iter().collect();
        let active = masked.union(sgprs).union(state).union(self.always);
        Live { active, masked }
    }

    /// From what is live after an instruction to what is live before it.
    pub fn step(&self, program: &Disassembly, index: InstIndex, live: &mut Live) {
        let (inst, transfer) = (&program.instructions[index], &self.transfers[index]);
        // First the lanes, since those after the instruction are told apart by its new EXEC, and
        // it writes and reads under the old one.
        if let Some(lanes) = transfer.lanes {
            *live = lanes.before(*live);
        }
        for range in &inst.writes {
            self.write(transfer, *range, live);
        }
        for range in &inst.reads {
            if !(transfer.keeps_lanes && names(inst.destinations(), *range)) {
                self.read(transfer, *range, live);
            }
        }
        if let Some(indexed) = self.indexed.at(index).filter(|_| transfer.indexes.is_some()) {
            live.active = live.active.union(indexed);
            live.active.insert(Register::M0);
        }
    }

    fn write(&self, transfer: &Transfer, range: RegisterRange, live: &mut Live) {
        let is_per_lane = range.first.is_per_lane();
        let kills = match (transfer.indexes, transfer.written) {
            (Some(IndexedFile::Vector), _) => !is_per_lane,
            (Some(IndexedFile::Scalar), _) => {
                !matches!(range.first, Register::Sgpr(_) | Register::VccLo | Register::VccHi)
            }
            (None, LanesWritten::Some) => !is_per_lane,
            (None, _) => true,
        };
        if !kills {
            return;
        }
        for register in range.iter().filter(|own| !self.always.contains(*own)) {
            live.active.remove(register);
            if is_per_lane && transfer.written == LanesWritten::All {
                live.masked.remove(register);
            }
        }
    }

    fn read(&self, transfer: &Transfer, range: RegisterRange, live: &mut Live) {
        // Flags that are made of a mask read the mask.
        let (first, words) = match range.first {
            Register::Vccz => (Register::VccLo, self.lanes / 32),
            Register::Execz => (Register::ExecLo, self.lanes / 32),
            first => (first, range.words),
        };
        let range = RegisterRange::new(first, words);
        live.active.insert_range(range);
        if first.is_per_lane() && transfer.reads_other_lanes {
            live.masked.insert_range(range);
        }
    }
}

/// Whether an instruction leaves lanes of its destination alone, and does nothing else with what
/// the destination held.
fn keeps_lanes(inst: &Inst) -> bool {
    let opcode = inst.operation.opcode();
    let moves = opcode == Opcode::VWritelane
        || inst.operation.is(Family::Permlane)
        || (opcode == Opcode::VMov && inst.modifiers.dpp.is_some());
    let is_source = |operand: &Operand| match operand.value {
        Value::Register(range) => names(inst.sources(), range),
        _ => false,
    };
    moves && !inst.destinations().any(is_source)
}

/// Whether one of the operands is a register of `range`.
fn names<'a>(mut operands: impl Iterator<Item = &'a Operand>, range: RegisterRange) -> bool {
    operands.any(|operand| match operand.value {
        Value::Register(own) => own.overlaps(range),
        _ => false,
    })
}

/// Where the lanes that are on after an instruction come from, and those that are off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExecEffect {
    /// All are on after it.
    AllOn,
    /// All are off after it.
    AllOff,
    /// Those that were on are off, and the other way about.
    Exchanged,
    /// As EXEC changes otherwise.
    By(ExecChange),
}

impl ExecEffect {
    fn of(inst: &Inst, wave_size: u8) -> Option<ExecEffect> {
        let change = inst.exec_change()?;
        let is_whole = inst
            .writes
            .iter()
            .any(|range| range.first == Register::ExecLo && range.words == wave_size / 32);
        let opcode = inst.operation.opcode();
        let ones = inst.source(0) == Some(&Value::Integer(-1));
        Some(match change {
            // The other half is not touched.
            ExecChange::Complements if !is_whole => ExecEffect::By(ExecChange::Replaces),
            change if !is_whole => ExecEffect::By(change),
            _ if ones && matches!(opcode, Opcode::SMov | Opcode::SOrSaveexec) => ExecEffect::AllOn,
            _ if ones && opcode == Opcode::SXorSaveexec => ExecEffect::Exchanged,
            ExecChange::Narrows if opcode == Opcode::SMov => ExecEffect::AllOff,
            change => ExecEffect::By(change),
        })
    }

    /// From lanes told apart by the new EXEC to lanes told apart by the old one.
    fn before(self, live: Live) -> Live {
        let per_lane = RegisterSet::VGPRS.union(RegisterSet::ACC_VGPRS);
        let (on, off) = (live.active.intersection(per_lane), live.masked);
        let either = on.union(off);
        let (active, masked) = match self {
            ExecEffect::AllOn => (on, on),
            ExecEffect::AllOff => (off, off),
            ExecEffect::Exchanged => (off, on),
            // On before: may be on or off now. Off before: off now.
            ExecEffect::By(ExecChange::Narrows) => (either, off),
            ExecEffect::By(ExecChange::Widens) => (on, either),
            ExecEffect::By(ExecChange::Complements) => (off, either),
            ExecEffect::By(ExecChange::Replaces) => (either, either),
        };
        Live { active: live.active.difference(per_lane).union(active), masked }
    }
}
