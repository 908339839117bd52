//! What one instruction makes of what is wanted behind it.

use super::{Live, always};
use crate::dataflow::index_mode::{IndexMode, index_mode};
use crate::flow::{FunctionIndex, IndexVec, InstIndex, Program};
use flipwave_isa::{
    Class, ExecChange, Family, Inst, LanesWritten, Opcode, Operand, Register, RegisterRange,
    RegisterSet, Value,
};

/// What of an instruction matters, besides the registers it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Transfer {
    lanes: Option<Lanes>,
    written: LanesWritten,
    reads_other_lanes: bool,
    /// Whether LLVM counts the destination as read only since some of its lanes are kept.
    keeps_lanes: bool,
    /// Which files it reaches into by an index in M0.
    indexes: Option<Indexed>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Indexed {
    Vector,
    Scalar,
}

/// The transfers of a program's instructions.
#[derive(Clone, Debug)]
pub struct Transfers {
    transfers: IndexVec<InstIndex, Transfer>,
    lanes: u8,
    always: RegisterSet,
    /// Registers that anything of the code object can want.
    reachable: RegisterSet,
}

/// All that have numbers.
fn numbered() -> RegisterSet {
    RegisterSet::VGPRS.union(RegisterSet::ACC_VGPRS).union(RegisterSet::SGPRS)
}

impl Transfers {
    /// The transfers of all instructions.
    pub fn of(program: &Program) -> Transfers {
        let modes = index_mode(program);
        let skips = program.instructions.iter().any(|i| i.operation.opcode() == Opcode::SSetvskip);
        let transfer = |inst: &Inst, in_index_mode: bool| {
            let class = inst.class();
            let is_vector = matches!(class, Class::Valu | Class::Matrix);
            let by_name = inst.indexes_registers();
            let indexes = match class {
                _ if is_vector && (by_name || in_index_mode) => Some(Indexed::Vector),
                Class::Salu if by_name => Some(Indexed::Scalar),
                _ => None,
            };
            // After s_setvskip a vector instruction may be none at all.
            let written = if skips { LanesWritten::Some } else { inst.lanes_written() };
            Transfer {
                lanes: Lanes::of(inst, program.wave_size),
                written,
                reads_other_lanes: inst.reads_other_lanes(),
                keeps_lanes: keeps_lanes(inst),
                indexes,
            }
        };
        let mut everywhere = RegisterSet::EMPTY;
        always(&mut everywhere);
        let transfers: IndexVec<InstIndex, Transfer> = program
            .instructions
            .iter()
            .zip(&modes)
            .map(|(inst, mode)| transfer(inst, *mode != IndexMode::Off))
            .collect();
        let all: Vec<FunctionIndex> = program.functions.indices().iter().collect();
        let knows_all = program.unresolved().next().is_none()
            && transfers.iter().all(|transfer| transfer.indexes.is_none());
        Transfers {
            // What no instruction names nobody wants, whoever calls whom.
            reachable: if knows_all { program.registers_named(&all) } else { numbered() },
            transfers,
            lanes: program.wave_size,
            always: everywhere,
        }
    }

    /// What is wanted where the program ends.
    pub fn nothing(&self) -> Live {
        Live { active: self.always, masked: RegisterSet::EMPTY }
    }

    /// What is wanted where nothing is known.
    pub fn everything(&self) -> Live {
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
        let masked = RegisterSet::VGPRS.union(RegisterSet::ACC_VGPRS).intersection(self.reachable);
        let sgprs = RegisterSet::SGPRS.intersection(self.reachable);
        let state: RegisterSet = STATE.into_iter().collect();
        let active = masked.union(sgprs).union(state).union(self.always);
        Live { active, masked }
    }

    /// From what is wanted behind an instruction to what is wanted before it.
    pub fn step(&self, program: &Program, index: InstIndex, live: &mut Live) {
        let (inst, transfer) = (&program.instructions[index], &self.transfers[index]);
        // First the lanes, since those behind the instruction are told apart by its new EXEC, and
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
        match transfer.indexes {
            Some(Indexed::Vector) => {
                live.active = live.active.union(program.vectors_indexed());
                live.active.insert(Register::M0);
            }
            Some(Indexed::Scalar) => {
                live.active = live.active.union(RegisterSet::SGPRS);
                self.read(transfer, RegisterRange::new(Register::VccLo, 2), live);
            }
            None => {}
        }
    }

    fn write(&self, transfer: &Transfer, range: RegisterRange, live: &mut Live) {
        let is_per_lane = range.first.is_per_lane();
        let kills = match (transfer.indexes, transfer.written) {
            (Some(Indexed::Vector), _) => !is_per_lane,
            (Some(Indexed::Scalar), _) => {
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

/// Where the lanes that are on behind an instruction come from, and those that are off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lanes {
    /// All are on behind it.
    AllOn,
    /// All are off behind it.
    AllOff,
    /// Those that were on are off, and the other way about.
    Exchanged,
    /// As EXEC changes otherwise.
    By(ExecChange),
}

impl Lanes {
    fn of(inst: &Inst, wave_size: u8) -> Option<Lanes> {
        let change = inst.exec_change()?;
        let is_whole = inst
            .writes
            .iter()
            .any(|range| range.first == Register::ExecLo && range.words == wave_size / 32);
        let opcode = inst.operation.opcode();
        let ones = inst.source(0) == Some(&Value::Integer(-1));
        Some(match change {
            // The other half is not touched.
            ExecChange::Complements if !is_whole => Lanes::By(ExecChange::Replaces),
            change if !is_whole => Lanes::By(change),
            _ if ones && matches!(opcode, Opcode::SMov | Opcode::SOrSaveexec) => Lanes::AllOn,
            _ if ones && opcode == Opcode::SXorSaveexec => Lanes::Exchanged,
            ExecChange::Narrows if opcode == Opcode::SMov => Lanes::AllOff,
            change => Lanes::By(change),
        })
    }

    /// From lanes told apart by the new EXEC to lanes told apart by the old one.
    fn before(self, live: Live) -> Live {
        let per_lane = RegisterSet::VGPRS.union(RegisterSet::ACC_VGPRS);
        let (on, off) = (live.active.intersection(per_lane), live.masked);
        let either = on.union(off);
        let (active, masked) = match self {
            Lanes::AllOn => (on, on),
            Lanes::AllOff => (off, off),
            Lanes::Exchanged => (off, on),
            // On before: may be on or off now. Off before: off now.
            Lanes::By(ExecChange::Narrows) => (either, off),
            Lanes::By(ExecChange::Widens) => (on, either),
            Lanes::By(ExecChange::Complements) => (off, either),
            Lanes::By(ExecChange::Replaces) => (either, either),
        };
        Live { active: live.active.difference(per_lane).union(active), masked }
    }
}
