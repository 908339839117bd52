//! Transfer functions of liveness: the effects of instructions on the live registers.

use super::live::Live;
use crate::dataflow::indexed::{IndexedRegisters, numbered};
use crate::flow::{Disassembly, FunctionIndex, Groups, IndexVec, InstIndex};
use flipwave_isa::{
    Class, ExecChange, Family, Inst, LanesWritten, Opcode, Operand, Register, RegisterRange,
    RegisterSet, Ttmp, Value,
};

/// Properties of an instruction, apart from the registers it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Transfer {
    exec: Option<ExecEffect>,
    lanes_written: LanesWritten,
    reads_other_lanes: bool,
    /// LLVM counts the destination as read only because some of its lanes are preserved.
    preserves_lanes: bool,
    /// The register file that the instruction accesses through an index in M0.
    indexed_file: Option<IndexedFile>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IndexedFile {
    Vector,
    Scalar,
}

/// The transfer functions of a program's instructions.
#[derive(Clone, Debug)]
pub struct Transfers {
    transfers: IndexVec<InstIndex, Transfer>,
    wave_size: u8,
    /// Registers that are live everywhere.
    always: RegisterSet,
    indexed: IndexedRegisters,
    groups: Groups,
    /// For each group, the numbered registers that its functions may use.
    usable: Vec<RegisterSet>,
}

impl Transfers {
    /// Computes the transfer functions of all instructions.
    pub fn new(program: &Disassembly) -> Transfers {
        let groups = Groups::of(program);
        let indexed = IndexedRegisters::of(program, &groups);
        let mut insts = program.instructions.iter();
        let may_skip = insts.any(|inst| inst.operation.opcode() == Opcode::SSetvskip);
        let transfer = |(index, inst): (InstIndex, &Inst)| {
            let indexed_file = indexed.at(index).map(|_| match inst.class() {
                Class::Salu => IndexedFile::Scalar,
                _ => IndexedFile::Vector,
            });
            // After s_setvskip, vector instructions may be skipped.
            let lanes_written = if may_skip { LanesWritten::Some } else { inst.lanes_written() };
            Transfer {
                exec: ExecEffect::of(inst, program.wave_size),
                lanes_written,
                reads_other_lanes: inst.reads_other_lanes(),
                preserves_lanes: preserves_lanes(inst),
                indexed_file,
            }
        };
        let transfers: IndexVec<InstIndex, Transfer> = program.insts().map(transfer).collect();
        // A register that no instruction of a group names or indexes is not live in the group.
        let usable = groups.iter().map(|group| {
            let is_unknown =
                |function: &FunctionIndex| program.functions[*function].has_unknown_control();
            if group.iter().any(is_unknown) {
                numbered()
            } else {
                let indexed = indexed.of_functions(program, group);
                program.registers_named(group).union(indexed).intersection(numbered())
            }
        });
        Transfers {
            usable: usable.collect(),
            transfers,
            wave_size: program.wave_size,
            always: always_live_registers(),
            indexed,
            groups,
        }
    }

    /// Registers that instructions may access through an index.
    pub fn indexed(&self) -> &IndexedRegisters {
        &self.indexed
    }

    /// The registers that are live everywhere, even at the end of the program.
    pub fn always_live(&self) -> Live {
        Live { active: self.always, masked: RegisterSet::EMPTY }
    }

    /// All registers that may be live in a function.
    pub fn everything(&self, function: FunctionIndex) -> Live {
        const SPECIAL: [Register; 8] = [
            Register::VccLo,
            Register::VccHi,
            Register::ExecLo,
            Register::ExecHi,
            Register::FlatScratchLo,
            Register::FlatScratchHi,
            Register::M0,
            Register::Scc,
        ];
        let usable = self.usable[self.groups.number(function)];
        let masked = RegisterSet::VGPRS.union(RegisterSet::ACC_VGPRS).intersection(usable);
        let sgprs = RegisterSet::SGPRS.intersection(usable);
        let special: RegisterSet = SPECIAL.into_iter().collect();
        let active = masked.union(sgprs).union(special).union(self.always);
        Live { active, masked }
    }

    /// Replaces the registers that are live after an instruction by those that are live before it.
    pub fn apply(&self, program: &Disassembly, index: InstIndex, live: &mut Live) {
        let (inst, transfer) = (&program.instructions[index], &self.transfers[index]);
        // `live` refers to the new EXEC, but the instruction reads and writes under the old one.
        if let Some(exec) = transfer.exec {
            *live = exec.before(*live);
        }
        for range in &inst.writes {
            self.write(transfer, *range, live);
        }
        for range in &inst.reads {
            if !(transfer.preserves_lanes && names(inst.destinations(), *range)) {
                self.read(transfer, *range, live);
            }
        }
        if let Some(indexed) = self.indexed.at(index).filter(|_| transfer.indexed_file.is_some()) {
            live.active = live.active.union(indexed);
            live.active.insert(Register::M0);
        }
    }

    fn write(&self, transfer: &Transfer, range: RegisterRange, live: &mut Live) {
        let is_per_lane = range.first.is_per_lane();
        let kills = match (transfer.indexed_file, transfer.lanes_written) {
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
        for register in range.iter().filter(|register| !self.always.contains(*register)) {
            live.active.remove(register);
            if is_per_lane && transfer.lanes_written == LanesWritten::All {
                live.masked.remove(register);
            }
        }
    }

    fn read(&self, transfer: &Transfer, range: RegisterRange, live: &mut Live) {
        // Flags that are derived from a mask read the mask.
        let (first, words) = match range.first {
            Register::Vccz => (Register::VccLo, self.wave_size / 32),
            Register::Execz => (Register::ExecLo, self.wave_size / 32),
            first => (first, range.words),
        };
        let range = RegisterRange::new(first, words);
        live.active.insert_range(range);
        if first.is_per_lane() && transfer.reads_other_lanes {
            live.masked.insert_range(range);
        }
    }
}

/// Returns `true` if an instruction preserves some lanes of its destination, and does not use the
/// destination's old value otherwise.
fn preserves_lanes(inst: &Inst) -> bool {
    let opcode = inst.operation.opcode();
    let writes_some_lanes = opcode == Opcode::VWritelane
        || inst.operation.is(Family::Permlane)
        || (opcode == Opcode::VMov && inst.modifiers.dpp.is_some());
    let is_source = |operand: &Operand| match operand.value {
        Value::Register(range) => names(inst.sources(), range),
        _ => false,
    };
    writes_some_lanes && !inst.destinations().any(is_source)
}

/// Returns `true` if an operand overlaps `range`.
fn names<'a>(mut operands: impl Iterator<Item = &'a Operand>, range: RegisterRange) -> bool {
    operands.any(|operand| match operand.value {
        Value::Register(operand) => operand.overlaps(range),
        _ => false,
    })
}

/// The effect of an instruction on EXEC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExecEffect {
    /// All lanes are active afterwards.
    AllOn,
    /// No lanes are active afterwards.
    AllOff,
    /// EXEC is inverted.
    Inverted,
    /// Another change.
    By(ExecChange),
}

impl ExecEffect {
    fn of(inst: &Inst, wave_size: u8) -> Option<ExecEffect> {
        let change = inst.exec_change()?;
        let writes_all = inst
            .writes
            .iter()
            .any(|range| range.first == Register::ExecLo && range.words == wave_size / 32);
        let opcode = inst.operation.opcode();
        let ones = inst.source(0) == Some(&Value::Integer(-1));
        Some(match change {
            // The instruction only writes one half of EXEC.
            ExecChange::Complements if !writes_all => ExecEffect::By(ExecChange::Replaces),
            change if !writes_all => ExecEffect::By(change),
            _ if ones && matches!(opcode, Opcode::SMov | Opcode::SOrSaveexec) => ExecEffect::AllOn,
            _ if ones && opcode == Opcode::SXorSaveexec => ExecEffect::Inverted,
            ExecChange::Narrows if opcode == Opcode::SMov => ExecEffect::AllOff,
            change => ExecEffect::By(change),
        })
    }

    /// Converts live registers under the new EXEC to live registers under the old one.
    fn before(self, live: Live) -> Live {
        let per_lane = RegisterSet::VGPRS.union(RegisterSet::ACC_VGPRS);
        let (on, off) = (live.active.intersection(per_lane), live.masked);
        let either = on.union(off);
        let (active, masked) = match self {
            ExecEffect::AllOn => (on, on),
            ExecEffect::AllOff => (off, off),
            ExecEffect::Inverted => (off, on),
            // Active lanes may be active or masked afterwards; masked lanes remain masked.
            ExecEffect::By(ExecChange::Narrows) => (either, off),
            ExecEffect::By(ExecChange::Widens) => (on, either),
            ExecEffect::By(ExecChange::Complements) => (off, either),
            ExecEffect::By(ExecChange::Replaces) => (either, either),
        };
        Live { active: live.active.difference(per_lane).union(active), masked }
    }
}

/// Registers that the hardware or its trap handler may read at any time.
fn always_live_registers() -> RegisterSet {
    let special = [Register::Mode, Register::XnackMaskLo, Register::XnackMaskHi];
    special.into_iter().chain((0..16).map(|n| Register::Ttmp(Ttmp(n)))).collect()
}
