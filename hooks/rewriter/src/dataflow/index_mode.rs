//! GPR-index mode at each instruction (gfx8 and gfx9). In this mode, vector arithmetic accesses registers
//! at an offset from M0 (Vega ISA, "VGPR indexing").

use crate::flow::{BlockIndex, Disassembly, Function, Groups, IndexVec, InstIndex};
use flipwave_isa::{Generation, Inst, Opcode};

/// GPR-index mode before an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IndexMode {
    /// Off on all paths.
    #[default]
    Off,
    /// On on all paths.
    On,
    /// Off or on.
    Unknown,
}

impl IndexMode {
    /// The mode where two paths meet.
    fn join(self, other: IndexMode) -> IndexMode {
        if self == other { self } else { IndexMode::Unknown }
    }

    /// The mode after an instruction.
    fn after(self, inst: &Inst) -> IndexMode {
        /// The number of MODE among the hardware registers.
        const MODE: i64 = 1;
        /// The bit GPR_IDX_EN of MODE.
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

/// GPR-index mode before each instruction. The mode is off at the entries of functions. In functions with
/// unknown control flow, it is unknown if any instruction of their group may switch it on.
pub fn index_mode(program: &Disassembly) -> IndexVec<InstIndex, IndexMode> {
    let mut modes = IndexVec::filled(IndexMode::Off, program.instructions.len());
    let has_mode = (Generation::Gfx8..=Generation::Gfx940).contains(&program.target.generation());
    let may_switch_on = |inst: &Inst| IndexMode::Off.after(inst) != IndexMode::Off;
    if !has_mode || !program.instructions.iter().any(may_switch_on) {
        return modes;
    }
    let groups = Groups::of(program);
    let may_switch: Vec<bool> = groups
        .iter()
        .map(|group| {
            let functions = group.iter().map(|index| &program.functions[*index]);
            let mut insts =
                functions.flat_map(|function| &program.instructions[function.instructions]);
            insts.any(may_switch_on)
        })
        .collect();
    let mut entries = IndexVec::filled(None, program.blocks.len());
    for (index, function) in program.functions.enumerated() {
        if !may_switch[groups.number(index)] {
            continue;
        }
        if function.has_unknown_control() {
            modes[function.instructions].fill(IndexMode::Unknown);
        } else {
            analyze_function(program, function, &mut entries, &mut modes);
        }
    }
    modes
}

fn analyze_function(
    program: &Disassembly,
    function: &Function,
    entries: &mut IndexVec<BlockIndex, Option<IndexMode>>,
    modes: &mut IndexVec<InstIndex, IndexMode>,
) {
    let mut waiting: Vec<BlockIndex> = Vec::new();
    // `starts` adds the entry of the function, and unreachable blocks.
    let mut starts = function.blocks.iter();
    while let Some(at) = waiting.pop().or_else(|| starts.next()) {
        let mut mode = *entries[at].get_or_insert(IndexMode::Off);
        let block = &program.blocks[at];
        for (index, inst) in program.insts_of(block.instructions) {
            modes[index] = mode;
            mode = mode.after(inst);
        }
        for edge in block.successors.iter().filter(|edge| function.blocks.contains(edge.to)) {
            let joined = entries[edge.to].map_or(mode, |known| known.join(mode));
            if entries[edge.to].replace(joined) != Some(joined) {
                waiting.push(edge.to);
            }
        }
    }
}
