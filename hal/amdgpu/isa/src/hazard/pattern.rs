//! Hazards that involve more than two instructions.

use super::group::*;
use super::{Condition, Expiry, Hazard, Preceding, Registers, mitigated, side};
use crate::{Inst, Register, RegisterRange};

/// Partial forwarding (gfx11, wave64): VALU results are forwarded only in part if EXEC changed between the
/// writes of two registers that an instruction reads.
#[rustfmt::skip]
pub(super) const PARTIAL_FORWARDING: &[Hazard] = &[
    Hazard {
        intervening: Some(SALU_WRITES_EXEC),
        ..mitigated(|_| "s_waitcnt_depctr depctr_va_vdst(0)".into(), &[
                Expiry { group: MEMORY_OR_EXPORT, count: 1 },
                Expiry { group: VA_VDST_0, count: 1 },
                Expiry { group: VALU, count: MAX_VALU as u8 + 1 },
            ],
            "VALU writes a VGPR, SALU writes EXEC, VALU writes another VGPR, VALU reads both",
            side(VALU, Registers::None), side(VALU, Registers::None), Condition::Pattern(partial_forwarding))
    },
];

/// gfx1010 to gfx1013.
#[rustfmt::skip]
pub(super) const LDS_BRANCH_MEMORY: &[Hazard] = &[
    Hazard {
        intervening: Some(BRANCH),
        ..mitigated(|_| "s_waitcnt_vscnt null, 0x0".into(), &[Expiry { group: WAITS_FOR_STORES, count: 1 }],
            "LDS, a branch and vector memory follow each other, or vector memory, a branch and LDS",
            side(LDS_OR_VMEM, Registers::None), side(LDS_OR_VMEM, Registers::None), Condition::Pattern(lds_branch_memory))
    },
];

/// Index of the trigger and the registers involved.
type Found = Option<(usize, Vec<RegisterRange>)>;

/// Maximum number of VALU instructions between the last write of a source and the victim.
const MAX_AFTER_LAST_WRITE: usize = 4;
/// Maximum number of VALU instructions between the two writes, around the change of EXEC.
const MAX_AROUND_EXEC: usize = 2;
/// Maximum number of VALU instructions in the whole pattern.
const MAX_VALU: usize = 8;

/// Finds two writes of sources of `inst` with a change of EXEC in between.
fn partial_forwarding(before: &[Preceding<'_>], inst: &Inst) -> Found {
    let sources = Registers::VectorsRead.select(inst);
    if sources.len() < 2 {
        return None;
    }
    /// The last write of a source.
    struct Write {
        source: RegisterRange,
        /// Index in `before`.
        index: usize,
        /// Number of VALU instructions after the write.
        valu_after: usize,
    }
    let mut writes: Vec<Write> = Vec::new();
    // Number of VALU instructions after the change of EXEC and after the current instruction.
    let mut exec = None;
    let mut valu_after = 0;
    for (index, current) in before.iter().enumerate() {
        let is_expired =
            MEMORY_OR_EXPORT.contains(current.inst) || VA_VDST_0.contains(current.inst);
        if valu_after > MAX_VALU || is_expired {
            return None;
        }
        let mut found_part = false;
        if is_valu(current.inst) {
            let written = Registers::VectorsWritten.select(current.inst);
            for source in &sources {
                let is_written = written.iter().any(|range| range.overlaps(*source));
                if is_written && writes.iter().all(|write| write.source != *source) {
                    writes.push(Write { source: *source, index, valu_after });
                    found_part = true;
                }
            }
        } else if is_salu(current.inst) && exec.is_none() && !writes.is_empty() {
            let mut written = current.inst.writes.iter();
            found_part = written.any(|range| range.contains(Register::ExecLo));
            exec = found_part.then_some(valu_after);
        }
        if valu_after > MAX_AFTER_LAST_WRITE && writes.is_empty() {
            return None;
        }
        if let (true, Some(exec)) = (found_part, exec) {
            let nearest = |wanted: &dyn Fn(&&Write) -> bool| {
                writes.iter().filter(wanted).min_by_key(|write| write.valu_after)
            };
            let last = nearest(&|write| write.valu_after < exec);
            let first = nearest(&|write| write.valu_after >= exec);
            if let Some(last) = last {
                let exec_to_last = exec - last.valu_after - 1;
                let first_to_exec = first.map_or(0, |first| first.valu_after - exec);
                if last.valu_after > MAX_AFTER_LAST_WRITE
                    || exec_to_last + first_to_exec > MAX_AROUND_EXEC
                {
                    return None;
                }
                if let Some(first) = first {
                    return Some((first.index, vec![first.source, last.source]));
                }
            }
        }
        valu_after += usize::from(is_valu(current.inst));
    }
    None
}

/// Finds an LDS or vector memory access of the other kind than `inst` before a branch.
fn lds_branch_memory(before: &[Preceding<'_>], inst: &Inst) -> Found {
    for (index, current) in before.iter().enumerate() {
        if current.inst.flags.branch {
            let earlier = before.iter().enumerate().skip(index + 1);
            for (trigger, access) in earlier {
                if LDS_OR_VMEM.contains(access.inst) {
                    if is_lds(access.inst) != is_lds(inst) {
                        return Some((trigger, Vec::new()));
                    }
                    break;
                }
                if WAITS_FOR_STORES.contains(access.inst) {
                    break;
                }
            }
        }
        if LDS_OR_VMEM.contains(current.inst) || WAITS_FOR_STORES.contains(current.inst) {
            return None;
        }
    }
    None
}
