//! Where GPR-index mode may be on (gfx8 and gfx9): vector arithmetic then reads and writes
//! registers at a distance from those it names, by M0 (Vega ISA, "VGPR indexing").

use crate::flow::{Function, Program};
use flipwave_isa::{Generation, Inst, Opcode};

/// What is known of the mode where an instruction is to run.
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

    /// Behind an instruction.
    fn behind(self, inst: &Inst) -> IndexMode {
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

/// By instruction: the mode when it runs. It is off where functions begin; in those that are not
/// understood it may be on anywhere.
pub fn index_mode(program: &Program) -> Vec<IndexMode> {
    let mut modes = vec![IndexMode::Off; program.instructions.len()];
    let has_mode = (Generation::Gfx8..=Generation::Gfx940).contains(&program.target.generation());
    let switches_on = |inst: &Inst| IndexMode::Off.behind(inst) != IndexMode::Off;
    if !has_mode || !program.instructions.iter().any(switches_on) {
        return modes;
    }
    for function in &program.functions {
        let range = function.instructions.start as usize..function.instructions.end as usize;
        match modes.get_mut(range).filter(|_| !function.unresolved.is_empty()) {
            Some(own) => own.fill(IndexMode::Unknown),
            None => mark(program, function, &mut modes),
        }
    }
    modes
}

fn mark(program: &Program, function: &Function, modes: &mut [IndexMode]) {
    let first = function.blocks.start;
    let mut entries: Vec<Option<IndexMode>> = vec![None; function.blocks.len()];
    let mut open: Vec<u32> = Vec::new();
    let mut starts = function.blocks.clone();
    // The first block, and whatever no way leads to.
    while let Some(at) = open.pop().or_else(|| starts.next()) {
        let local = (at - first) as usize;
        if let Some(entry) = entries.get_mut(local) {
            entry.get_or_insert(IndexMode::Off);
        }
        let Some((block, Some(entry))) = program.blocks.get(at as usize).zip(entries.get(local))
        else {
            continue;
        };
        let mut mode = *entry;
        for (index, inst) in program.insts_of(&block.instructions) {
            if let Some(own) = modes.get_mut(index.0 as usize) {
                *own = mode;
            }
            mode = mode.behind(inst);
        }
        for edge in &block.successors {
            let next = edge.to.0.checked_sub(first).and_then(|at| entries.get_mut(at as usize));
            let Some(next) = next else { continue };
            let joined = next.map_or(mode, |own| own.join(mode));
            if next.replace(joined) != Some(joined) {
                open.push(edge.to.0);
            }
        }
    }
}
