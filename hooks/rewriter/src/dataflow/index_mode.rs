//! Where GPR-index mode may be on (gfx8 and gfx9): vector arithmetic then reads and writes
//! registers at a distance from those it names, by M0 (Vega ISA, "VGPR indexing").

use crate::flow::{BlockIndex, Disassembly, Function, Groups, IndexVec, InstIndex};
use flipwave_isa::{Generation, Inst, Opcode};

/// The mode where an instruction is to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IndexMode {
    /// It is off.
    #[default]
    Off,
    /// It is on.
    On,
    /// It may be either.
    Unknown,
}

impl IndexMode {
    fn join(self, other: IndexMode) -> IndexMode {
        if self == other { self } else { IndexMode::Unknown }
    }

    /// The mode after an instruction.
    fn after(self, inst: &Inst) -> IndexMode {
        /// `hwreg` of MODE, and the bit of it that is the mode.
        const MODE: i64 = 1;
        const ENABLE: i64 = 27;
        match (inst.operation.opcode(), inst.immediate) {
            (Opcode::SSetGprIdxOn, _) => IndexMode::On,
            (Opcode::SSetGprIdxOff, _) => IndexMode::Off,
            (Opcode::SSetGprIdxMode, Some(bits)) if bits & 0xf != 0 => self.join(IndexMode::On),
            (Opcode::SSetreg | Opcode::SSetregImm32, Some(field)) => {
                let (register, offset, size) =
                    (field & 63, field >> 6 & 31, (field >> 11 & 31) + 1);
                let covers = register == MODE && (offset..offset + size).contains(&ENABLE);
                if covers { IndexMode::Unknown } else { self }
            }
            _ => self,
        }
    }
}

/// By instruction: the mode when it runs. It is off where functions begin. In functions that control
/// enters from unknown places it may be on anywhere, if anything in their group switches it on.
pub fn index_mode(program: &Disassembly) -> IndexVec<InstIndex, IndexMode> {
    let mut modes = IndexVec::filled(IndexMode::Off, program.instructions.len());
    let has_mode = (Generation::Gfx8..=Generation::Gfx940).contains(&program.target.generation());
    let switches_on = |inst: &Inst| IndexMode::Off.after(inst) != IndexMode::Off;
    if !has_mode || !program.instructions.iter().any(switches_on) {
        return modes;
    }
    let groups = Groups::of(program);
    let may_switch: Vec<bool> = groups
        .iter()
        .map(|group| {
            let functions = group.iter().map(|own| &program.functions[*own]);
            let mut insts = functions.flat_map(|own| &program.instructions[own.instructions]);
            insts.any(switches_on)
        })
        .collect();
    let mut entries = IndexVec::filled(None, program.blocks.len());
    for (index, function) in program.functions.enumerated() {
        if !may_switch[groups.number(index)] {
            continue;
        }
        match function.has_unknown_control() {
            false => mark(program, function, &mut entries, &mut modes),
            true => modes[function.instructions].fill(IndexMode::Unknown),
        }
    }
    modes
}

fn mark(
    program: &Disassembly,
    function: &Function,
    entries: &mut IndexVec<BlockIndex, Option<IndexMode>>,
    modes: &mut IndexVec<InstIndex, IndexMode>,
) {
    let mut open: Vec<BlockIndex> = Vec::new();
    // The first block, and whatever no way leads to.
    let mut starts = function.blocks.iter();
    while let Some(at) = open.pop().or_else(|| starts.next()) {
        let mut mode = *entries[at].get_or_insert(IndexMode::Off);
        let block = &program.blocks[at];
        for (index, inst) in program.insts_of(block.instructions) {
            modes[index] = mode;
            mode = mode.after(inst);
        }
        for edge in block.successors.iter().filter(|edge| function.blocks.contains(edge.to)) {
            let joined = entries[edge.to].map_or(mode, |own| own.join(mode));
            if entries[edge.to].replace(joined) != Some(joined) {
                open.push(edge.to);
            }
        }
    }
}
