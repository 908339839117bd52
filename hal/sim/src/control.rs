//! What changes the course of a wave: branches, calls, barriers, traps, the end.

use crate::hardware_register;
use crate::op::Op;
use crate::vector::scalar_word;
use crate::wave::{ScalarIndex, Wave};
use flipwave_device::FaultCause;
use flipwave_isa::LaneMask;

/// A control operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Nothing a functional model shows: waits, priorities, cache control, hints.
    Nothing,
    /// The wave ends.
    EndProgram,
    /// Waits for the other waves of the workgroup.
    Barrier,
    /// Calls the trap handler.
    Trap,
    /// Jumps by the immediate if the condition holds.
    Branch(Condition),
    /// Reads the PC.
    GetPc,
    /// Jumps to a register.
    SetPc,
    /// Jumps to a register and keeps the return address.
    SwapPc,
    /// Jumps by the immediate and keeps the return address.
    Call,
    /// Writes to MODE what the vector unit does not execute.
    SetRegister,
}

/// When a branch is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Condition {
    Always,
    Scc(bool),
    VccZero(bool),
    ExecZero(bool),
}

/// What comes after an instruction.
#[derive(Debug)]
pub enum Step {
    /// The instruction at the wave's PC.
    Next,
    /// The wave waits at a barrier.
    Barrier,
    /// The wave has ended.
    Ended,
    /// The device stops the dispatch.
    Fault(FaultCause),
}

/// The control operation of a canonical name.
pub fn find(name: &str) -> Option<Control> {
    Some(match name {
        "s_nop" | "s_waitcnt" | "s_waitcnt_vmcnt" | "s_waitcnt_expcnt" | "s_waitcnt_lgkmcnt"
        | "s_sleep" | "s_setprio" | "s_sethalt" | "s_setkill" | "s_icache_inv" | "s_wakeup"
        | "s_incperflevel" | "s_decperflevel" | "s_ttracedata" | "s_dcache_inv"
        | "s_dcache_inv_vol" | "s_dcache_wb" | "s_dcache_wb_vol" | "buffer_wbinvl1"
        | "buffer_wbinvl1_vol" | "buffer_wbl2" | "buffer_invl2" | "v_nop" | "v_clrexcp"
        | "ds_nop" | "s_sendmsg" | "s_sendmsghalt" => Control::Nothing,
        "s_endpgm" | "s_endpgm_saved" => Control::EndProgram,
        "s_barrier" => Control::Barrier,
        "s_trap" => Control::Trap,
        "s_branch" => Control::Branch(Condition::Always),
        "s_cbranch_scc0" => Control::Branch(Condition::Scc(false)),
        "s_cbranch_scc1" => Control::Branch(Condition::Scc(true)),
        "s_cbranch_vccz" => Control::Branch(Condition::VccZero(true)),
        "s_cbranch_vccnz" => Control::Branch(Condition::VccZero(false)),
        "s_cbranch_execz" => Control::Branch(Condition::ExecZero(true)),
        "s_cbranch_execnz" => Control::Branch(Condition::ExecZero(false)),
        // No debugger is attached: the conditional-debug flags are clear.
        "s_cbranch_cdbgsys"
        | "s_cbranch_cdbguser"
        | "s_cbranch_cdbgsys_or_user"
        | "s_cbranch_cdbgsys_and_user" => Control::Nothing,
        "s_getpc_b64" => Control::GetPc,
        "s_setpc_b64" => Control::SetPc,
        "s_swappc_b64" => Control::SwapPc,
        "s_call_b64" => Control::Call,
        "s_setreg_b32" | "s_setreg_imm32_b32" => Control::SetRegister,
        _ => return None,
    })
}

/// Executes a control operation. The wave's PC already points behind the instruction.
#[inline(always)]
pub fn execute(wave: &mut Wave, op: &Op, control: Control) -> Step {
    let target = wave.pc.wrapping_add_signed(op.immediate.wrapping_mul(4));
    match control {
        Control::Nothing => {}
        Control::Branch(condition) => {
            let taken = match condition {
                Condition::Always => true,
                Condition::Scc(set) => wave.scc == set,
                Condition::VccZero(zero) => (wave.vcc() == 0) == zero,
                Condition::ExecZero(zero) => (wave.exec() == LaneMask::EMPTY) == zero,
            };
            if taken {
                wave.pc = target;
            }
        }
        Control::EndProgram => return Step::Ended,
        Control::Barrier => return Step::Barrier,
        Control::Trap => return Step::Fault(FaultCause::Trap { id: op.immediate as u8 }),
        Control::GetPc => wave.write_scalar_pair(op.scalar_destination, wave.pc),
        Control::SetPc => wave.pc = register_target(wave, op),
        Control::SwapPc => {
            let target = register_target(wave, op);
            wave.write_scalar_pair(op.scalar_destination, wave.pc);
            wave.pc = target;
        }
        Control::Call => {
            wave.write_scalar_pair(op.scalar_destination, wave.pc);
            wave.pc = target;
        }
        Control::SetRegister => return set_register(wave, op),
    }
    Step::Next
}

/// The address in a register pair; its two lowest bits are ignored.
fn register_target(wave: &Wave, op: &Op) -> u64 {
    let [low, high] = op.sources[0].words;
    (u64::from(scalar_word(wave, low)) | u64::from(scalar_word(wave, high)) << 32) & !3
}

fn set_register(wave: &mut Wave, op: &Op) -> Step {
    let value = scalar_word(wave, op.sources[0].words[0]);
    let immediate = u32::from(op.immediate as u16);
    let mode = hardware_register::new_mode(wave, immediate, value);
    if mode.is_some_and(|mode| !mode.is_executed()) {
        return Step::Fault(FaultCause::Unimplemented {
            instruction: op.inst.text.clone(),
            reason:
                "rounding modes other than to nearest even, and clamped half-precision overflow"
                    .into(),
        });
    }
    hardware_register::write(wave, immediate, value);
    Step::Next
}

/// The lowest register that a relative move reads or writes.
pub fn relative(index: ScalarIndex, wave: &Wave) -> ScalarIndex {
    ScalarIndex((u32::from(index.0).wrapping_add(wave.scalar(ScalarIndex::M0)) & 127) as u8)
}
