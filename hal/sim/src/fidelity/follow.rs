//! Propagation of marks through the instructions of a dispatch.

use super::DispatchCheck;
use super::executions::Instruction;
use super::scalar_memory;
use crate::instruction::vector_memory::Transfer;
use crate::instruction::{Op, Run};
use crate::shadow::vector_memory::{self, Memories};
use crate::shadow::{Decision, LdsMarks, MarkedMemory, Shadow};
use crate::wave::{Row, RowIndex, Wave};
use flipwave_device::Dim3;
use rustc_hash::FxHashMap;

/// Effect of an instruction on marks.
#[derive(Default)]
pub struct Followed {
    /// `true` if registers of the wave may have received marks.
    pub marks: bool,
    /// Decision about EXEC by marks.
    pub decision: Option<Decision>,
}

impl DispatchCheck {
    /// Propagates marks through the next instruction of `wave`.
    pub fn follow(
        &mut self,
        shadow: &mut Shadow,
        memory: &mut MarkedMemory,
        wave: &Wave,
        op: &Op,
        instruction: &Instruction,
    ) -> Followed {
        let DispatchCheck { ghost, lds, .. } = self;
        let has_lds_marks = lds.contains_key(&wave.id.workgroup);
        let written = &instruction.named;
        match op.run {
            Run::Control(_)
            | Run::Tensor(_)
            | Run::NotCompute(_)
            | Run::Unspecified(_)
            | Run::Gap(_) => {
                shadow.unmark_scalars(written);
                return Followed::default();
            }
            Run::LdsDirect if has_lds_marks => mark(shadow, wave, op, instruction, !0),
            Run::Vector(_)
            | Run::Scalar(_)
            | Run::Whole(_)
            | Run::Dual
            | Run::OnScalars
            | Run::LdsDirect => {
                // If all result bits are marked regardless of the sources, these need not be
                // examined.
                if instruction.unsettled != !0 {
                    shadow.follow(ghost, wave, op, written);
                }
                mark(shadow, wave, op, instruction, instruction.unsettled);
                let (marks, decision) = (instruction.unsettled != 0, shadow.decide_exec());
                return Followed { marks, decision };
            }
            Run::ScalarMemory(access) => {
                scalar_memory::follow(shadow, ghost, memory, wave, op, access, written);
            }
            Run::VectorMemory(access) => {
                let uses_lds = access.space.is_flat()
                    || matches!(
                        access.transfer,
                        Transfer::LoadToLds(_)
                            | Transfer::LoadFormatToLds(_)
                            | Transfer::StoreFromLds(_)
                    );
                let mut none = LdsMarks::clear(0);
                let lds = if uses_lds { of_workgroup(lds, wave) } else { &mut none };
                let memories = Memories { device: memory, lds };
                vector_memory::follow(shadow, ghost, memories, wave, op, access);
            }
            Run::Lds(access) => {
                of_workgroup(lds, wave).follow(shadow, ghost, wave, op, access);
            }
        }
        Followed { marks: shadow.marks_any(written), decision: None }
    }
}

/// Marks on the LDS of a wave's workgroup.
fn of_workgroup<'a>(all: &'a mut FxHashMap<Dim3, LdsMarks>, wave: &Wave) -> &'a mut LdsMarks {
    all.entry(wave.id.workgroup).or_insert_with(|| LdsMarks::clear(wave.lds_size))
}

/// Marks bits of each word that an instruction writes.
fn mark(shadow: &mut Shadow, wave: &Wave, op: &Op, instruction: &Instruction, bits: u32) {
    // Whole-wave operations select their lanes themselves.
    let lanes = match op.run {
        Run::Whole(_) => Row::splat(!0),
        _ => *wave.exec_row(),
    };
    for (_, slots) in &instruction.named.writes {
        for row in slots.rows() {
            let marks = &mut shadow.rows[row.min(RowIndex::COUNT - 1)].0;
            marks.iter_mut().zip(lanes.0).for_each(|(marks, active)| *marks |= bits & active);
        }
        shadow.scalars[slots.scalars()].iter_mut().for_each(|marks| *marks |= bits);
    }
}
