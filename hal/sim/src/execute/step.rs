//! Execution of one instruction by one wave.

use crate::execute::control::Step;
use crate::execute::operand::scalar_word;
use crate::execute::{control, lds, scalar_memory, tensor, vector_memory};
use crate::instruction::control::Control;
use crate::instruction::{Inner, Op, Run, Word};
use crate::memory::Memory;
use crate::wave::{RowIndex, ScalarIndex, Wave};
use flipwave_device::FaultCause;
use flipwave_isa::{LaneMask, Value};

/// Executes one instruction. The wave's PC already points to the next one.
#[inline(always)]
pub fn step(wave: &mut Wave, op: &Op, memory: &mut dyn Memory, lds: &mut [u8]) -> Step {
    // One branch for three rare conditions.
    if (op.vgprs_named > wave.vgpr_count)
        | (op.acc_vgprs_named > wave.acc_vgpr_count)
        | wave.mode.changes_vectors()
    {
        return step_resolved(wave, op, memory, lds);
    }
    step_in_range(wave, op, memory, lds)
}

/// Executes one instruction whose registers are the named ones and lie in the wave's allocation.
#[inline(always)]
pub fn step_in_range(wave: &mut Wave, op: &Op, memory: &mut dyn Memory, lds: &mut [u8]) -> Step {
    // The most frequent kind comes first: a predicted branch costs less than a jump through a
    // table.
    if let Run::Vector(function) = op.run {
        // SAFETY: the function was chosen for the features this host has.
        unsafe { function(wave, op) };
        return Step::Next;
    }
    let done = match op.run {
        // Already executed above.
        Run::Vector(_) => Ok(()),
        Run::Scalar(function) | Run::Whole(function) => {
            function(wave, op);
            Ok(())
        }
        Run::Control(control) => return control::execute(wave, op, control),
        Run::ScalarMemory(access) => scalar_memory::execute(wave, op, access, memory),
        Run::VectorMemory(access) => vector_memory::execute(wave, op, access, memory, lds),
        Run::Lds(access) => lds::execute(wave, op, access, lds),
        Run::Tensor(direction) => tensor::execute(wave, op, direction, memory, lds),
        Run::Dual => return dual(wave, op, memory, lds),
        Run::OnScalars => return on_scalars(wave, op, memory, lds),
        Run::LdsDirect => return lds_direct(wave, op, memory, lds),
        Run::NotCompute(refused) => Err(FaultCause::NotCompute {
            instruction: op.inst.text.as_str().into(),
            absence: refused.absence,
            reason: refused.reason.into(),
        }),
        Run::Unspecified(reason) => Err(FaultCause::Unimplemented {
            instruction: op.inst.text.as_str().into(),
            reason: format!("not settled: {reason}").into(),
        }),
        Run::Gap(reason) => Err(FaultCause::Unimplemented {
            instruction: op.inst.text.as_str().into(),
            reason: reason.into(),
        }),
    };
    match done {
        Ok(()) => Step::Next,
        Err(cause) => Step::Fault(cause),
    }
}

/// Executes both halves of a dual instruction.
#[inline(never)]
fn dual(wave: &mut Wave, op: &Op, memory: &mut dyn Memory, lds: &mut [u8]) -> Step {
    let Some(Inner::Dual(halves)) = op.inner.as_deref() else { return Step::Next };
    if let Step::Fault(cause) = step(wave, &halves.first, memory, lds) {
        return Step::Fault(cause);
    }
    let end = step(wave, &halves.second, memory, lds);
    if halves.destination.0 + halves.words <= wave.vgpr_count {
        for word in 0..halves.words {
            let result = *wave.row(RowIndex::WAITING.plus(word));
            wave.write_row(halves.destination.plus(word), &result);
        }
    }
    end
}

/// Executes an operation with a word of LDS as a source: M0[15:0] is its address, M0[18:16] its
/// format (Vega ISA, "LDS direct read"; RDNA 3 ISA, "LDS direct load").
#[cold]
#[inline(never)]
fn lds_direct(wave: &mut Wave, op: &Op, memory: &mut dyn Memory, lds: &mut [u8]) -> Step {
    let Some(Inner::LdsDirect(inner)) = op.inner.as_deref() else { return Step::Next };
    let m0 = wave.scalar(ScalarIndex::M0);
    let bytes = lds::read(lds, m0 & 0xffff, 4);
    let word = u32::from_le_bytes([0, 1, 2, 3].map(|byte| bytes[byte]));
    let value = match m0 >> 16 & 7 {
        0 => word & 0xff,
        1 => word & 0xffff,
        4 => word as i8 as u32,
        5 => word as i16 as u32,
        _ => word,
    };
    wave.write_scalar(ScalarIndex::LDS_DIRECT, value);
    step(wave, inner, memory, lds)
}

/// Executes a vector operation on scalar registers, in one lane regardless of EXEC. The upper half
/// of a 16-bit result is zero (RDNA 4 ISA, `V_S_RCP_F16`; no document states it for the operations
/// of the scalar unit).
#[cold]
#[inline(never)]
fn on_scalars(wave: &mut Wave, op: &Op, memory: &mut dyn Memory, lds: &mut [u8]) -> Step {
    let Some(Inner::OnScalars(vector)) = op.inner.as_deref() else { return Step::Next };
    for (source, index) in op.sources.iter().zip(ScalarIndex::OPERANDS.0..ScalarIndex::COMPARED.0) {
        wave.write_scalar(ScalarIndex(index), scalar_word(wave, source.words[0]));
    }
    let exec = wave.exec();
    wave.set_exec(LaneMask(1));
    wave.row_mut(RowIndex::WAITING).0[0] = 0;
    let end = step(wave, vector, memory, lds);
    wave.set_exec(exec);
    if vector.mask_destination[0] == ScalarIndex::COMPARED {
        wave.scc = wave.scalar(ScalarIndex::COMPARED) & 1 != 0;
    } else {
        let result = wave.row(RowIndex::WAITING).0[0];
        wave.write_scalar(op.scalar_destination, result);
    }
    end
}

/// Executes an instruction whose vector registers are not simply the named ones, because M0 moves
/// them in GPR-index mode or they lie outside the wave's allocation; or skips it.
#[cold]
#[inline(never)]
fn step_resolved(wave: &mut Wave, op: &Op, memory: &mut dyn Memory, lds: &mut [u8]) -> Step {
    match resolved(wave, op) {
        Some(op) => step_in_range(wave, &op, memory, lds),
        None => Step::Next,
    }
}

/// Returns an operation with the registers that it accesses in this wave; `None` if it does
/// nothing.
pub fn resolved(wave: &Wave, named: &Op) -> Option<Op> {
    if wave.mode.skips_vectors() && is_vector(named.run) {
        return None;
    }
    let mut op = named.clone();
    if wave.mode.indexes_vgprs() && matches!(op.run, Run::Vector(_) | Run::Whole(_)) {
        index_registers(&mut op, wave.scalar(ScalarIndex::M0));
    }
    confine_registers(&mut op, named, wave).then_some(op)
}

/// Returns `true` if VSKIP skips the instruction (ISA manual, "S_SETVSKIP").
pub fn is_vector(run: Run) -> bool {
    matches!(
        run,
        Run::Vector(_)
            | Run::Whole(_)
            | Run::VectorMemory(_)
            | Run::Lds(_)
            | Run::LdsDirect
            | Run::Control(Control::Sync(_))
    )
}

/// Moves the vector registers of an operation by M0[7:0]: source i if M0[12 + i] is set, the
/// destination if M0[15] is set (ISA manual, "VGPR indexing").
fn index_registers(op: &mut Op, m0: u32) {
    let by = (m0 & 0xff) as u16;
    for (index, source) in op.sources.iter_mut().enumerate().take(3) {
        if m0 >> (12 + index) & 1 == 0 {
            continue;
        }
        for word in &mut source.words {
            if let Word::Row(row) = word {
                *row = row.plus(by);
            }
        }
    }
    if m0 >> 15 & 1 != 0 {
        op.destination = op.destination.plus(by);
    }
}

/// Replaces a source outside the wave's allocation by `v0`. Returns `false` if the destination lies
/// outside, in which case the instruction does nothing (ISA manual, "Out-of-range VGPRs"). `named`
/// has the registers that the encoding names: they determine the width and the register file.
fn confine_registers(op: &mut Op, named: &Op, wave: &Wave) -> bool {
    let outside = |named: RowIndex, row: RowIndex, words: u8| {
        let first = wave.machine.accumulation.0;
        let is_shared = wave.machine.accum_offset().is_some();
        let end = if is_shared || named.0 >= first {
            first + wave.acc_vgpr_count
        } else {
            wave.vgpr_count
        };
        row.0 + u16::from(words) > end
    };
    let per_lane_destination = op.inst.destinations().find_map(|operand| match operand.value {
        Value::Register(range) if range.first.is_per_lane() => Some(range.words),
        _ => None,
    });
    // Only the dual instruction reads the register where its first result waits.
    let is_void = |words| {
        op.destination != RowIndex::WAITING && outside(named.destination, op.destination, words)
    };
    if per_lane_destination.is_some_and(is_void) {
        return false;
    }
    let words_of = |row: RowIndex| {
        let ranges = named.inst.operands.iter().filter_map(|operand| match operand.value {
            Value::Register(range) if wave.machine.row(range.first) == Some(row) => {
                Some(range.words)
            }
            _ => None,
        });
        ranges.max().unwrap_or(1)
    };
    for (slot, named) in op.sources.iter_mut().zip(&named.sources) {
        if let (Some(named), Some(row)) = (named.row(), slot.row())
            && outside(named, row, words_of(named))
        {
            slot.words = [Word::Row(RowIndex(0)); 2];
        }
    }
    true
}
