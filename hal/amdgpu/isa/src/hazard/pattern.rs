//! Hazards of more than two instructions.

use super::group::*;
use super::{End, Hazard, Meeting, Part, Preceding, mitigated, side};
use crate::{Inst, Register, RegisterRange};

/// Waves of 64 lanes of gfx11 forward a part of a result where EXEC changed between two that an
/// instruction reads.
#[rustfmt::skip]
pub(super) const PARTIAL_FORWARDING: &[Hazard] = &[
    Hazard {
        across: Some(SALU_WRITES_EXEC),
        ..mitigated(|_| "s_waitcnt_depctr depctr_va_vdst(0)".into(), &[
                End { group: MEMORY_OR_EXPORT, count: 1 },
                End { group: VA_VDST_0, count: 1 },
                End { group: VALU, count: IN_ALL as u8 + 1 },
            ],
            "VALU writes a VGPR, SALU writes EXEC, VALU writes another VGPR, VALU reads both",
            side(VALU, Part::Nothing), side(VALU, Part::Nothing), Meeting::Pattern(partial_forwarding))
    },
];

/// gfx1010 to gfx1013.
#[rustfmt::skip]
pub(super) const LDS_BRANCH_MEMORY: &[Hazard] = &[
    Hazard {
        across: Some(BRANCH),
        ..mitigated(|_| "s_waitcnt_vscnt null, 0x0".into(), &[End { group: WAITS_FOR_STORES, count: 1 }],
            "LDS, a branch and vector memory follow each other, or vector memory, a branch and LDS",
            side(LDS_OR_VMEM, Part::Nothing), side(LDS_OR_VMEM, Part::Nothing), Meeting::Pattern(lds_branch_memory))
    },
];

type Found = Option<(usize, Vec<RegisterRange>)>;

/// Most VALU instructions that matter before the last result, and in all.
const AFTER_LAST_RESULT: usize = 4;
const AROUND_EXEC: usize = 2;
const IN_ALL: usize = 8;

fn partial_forwarding(before: &[Preceding<'_>], inst: &Inst) -> Found {
    let sources = Part::VectorsRead.registers(inst);
    if sources.len() < 2 {
        return None;
    }
    /// The last write of a source.
    struct Write {
        source: RegisterRange,
        /// Its index in `before`.
        index: usize,
        /// VALU instructions after it.
        after: usize,
    }
    let mut writes: Vec<Write> = Vec::new();
    // VALU instructions after the change of EXEC, and after the instruction looked at.
    let mut exec = None;
    let mut after = 0;
    for (index, own) in before.iter().enumerate() {
        let is_done = MEMORY_OR_EXPORT.contains(own.inst) || VA_VDST_0.contains(own.inst);
        if after > IN_ALL || is_done {
            return None;
        }
        let mut changed = false;
        if is_valu(own.inst) {
            let written = Part::VectorsWritten.registers(own.inst);
            for source in &sources {
                let is_written = written.iter().any(|range| range.overlaps(*source));
                if is_written && writes.iter().all(|write| write.source != *source) {
                    writes.push(Write { source: *source, index, after });
                    changed = true;
                }
            }
        } else if is_salu(own.inst) && exec.is_none() && !writes.is_empty() {
            let written = own.inst.writes.iter();
            changed = written.into_iter().any(|range| range.contains(Register::ExecLo));
            exec = changed.then_some(after);
        }
        if after > AFTER_LAST_RESULT && writes.is_empty() {
            return None;
        }
        if let (true, Some(exec)) = (changed, exec) {
            let nearest = |wanted: &dyn Fn(&&Write) -> bool| {
                writes.iter().filter(wanted).min_by_key(|write| write.after)
            };
            let last = nearest(&|write| write.after < exec);
            let first = nearest(&|write| write.after >= exec);
            if let Some(last) = last {
                let to_exec = exec - last.after - 1;
                let from_first = first.map_or(0, |first| first.after - exec);
                if last.after > AFTER_LAST_RESULT || to_exec + from_first > AROUND_EXEC {
                    return None;
                }
                if let Some(first) = first {
                    return Some((first.index, vec![first.source, last.source]));
                }
            }
        }
        after += usize::from(is_valu(own.inst));
    }
    None
}

fn lds_branch_memory(before: &[Preceding<'_>], inst: &Inst) -> Found {
    let ends = |own: &Inst| WAITS_FOR_STORES.contains(own);
    for (index, own) in before.iter().enumerate() {
        if own.inst.flags.branch {
            let earlier = before.iter().enumerate().skip(index + 1);
            for (trigger, other) in earlier {
                if LDS_OR_VMEM.contains(other.inst) {
                    if is_lds(other.inst) != is_lds(inst) {
                        return Some((trigger, Vec::new()));
                    }
                    break;
                }
                if ends(other.inst) {
                    break;
                }
            }
        }
        if LDS_OR_VMEM.contains(own.inst) || ends(own.inst) {
            return None;
        }
    }
    None
}
