//! Classification of instructions in compiled wrappers.

use super::wrapper::{BEGIN, END};
use flipwave_isa::{Class, Encoding, Family, Inst, Opcode, Register, RegisterRange, Sgpr, Value};

/// Number of a marker; `None` for other instructions.
pub(super) fn marker(inst: &Inst) -> Option<u16> {
    let number = inst.immediate? as u16;
    let known = matches!(number, BEGIN | END | 0xf110..=0xf112 | 0xf120..=0xf122);
    (inst.operation.opcode() == Opcode::STrap && known).then_some(number)
}

/// Returns `true` for waits for counters.
pub(super) fn is_wait(inst: &Inst) -> bool {
    inst.operation.is(Family::Wait)
}

/// Returns `true` for performance hints, which insertions may invalidate.
pub(super) fn is_hint(inst: &Inst) -> bool {
    matches!(inst.operation.opcode(), Opcode::SClause | Opcode::SDelayAlu | Opcode::SInstPrefetch)
}

/// Returns `true` for returns: the return address is in s[30:31].
pub(super) fn is_return(inst: &Inst) -> bool {
    let address = RegisterRange::new(Register::Sgpr(Sgpr(30)), 2);
    inst.operation.opcode() == Opcode::SSetpc
        && inst.sources().all(|source| source.value == Value::Register(address))
}

/// Returns `true` for loads, whose results arrive later.
pub(super) fn delivers(inst: &Inst) -> bool {
    let later = matches!(inst.class(), Class::Vmem | Class::Smem | Class::Lds | Class::Image);
    later && inst.destinations().next().is_some()
}

/// Reason why an instruction is not supported in hooks.
pub(super) fn refusal(inst: &Inst) -> Option<&'static str> {
    let stack =
        |register| matches!(register, Register::Sgpr(Sgpr(32 | 33)) | Register::PrivateBase);
    let mut reads = inst.reads.iter().flat_map(|range| range.iter());
    let opcode = inst.operation.opcode();
    if inst.modifiers.lds {
        return Some("loads into LDS through M0, which belongs to the kernel");
    }
    if inst.encoding == Encoding::Scratch || reads.any(stack) {
        return Some(
            "needs a stack, which hooks do not have: it calls a function that is not inlined, indexes \
             an array at run time, or needs more than 30 SGPRs or the caller-saved VGPRs",
        );
    }
    if inst.reads.iter().any(|range| range.contains(Register::SharedBase)) {
        return Some(
            "accesses LDS through a flat pointer: declare the pointer with the address space of LDS",
        );
    }
    if inst.indexes_registers() || inst.operation.is(Family::GprIndex) {
        return Some("has an array indexed at run time, in registers that cannot be renamed");
    }
    match inst.class() {
        Class::Barrier => Some("waits at a barrier, which not all waves of the workgroup reach"),
        Class::Message if opcode == Opcode::STrap && marker(inst).is_none() => {
            Some("traps: hooks must not end the kernel")
        }
        Class::Message if opcode == Opcode::SSethalt => {
            Some("halts: hooks must not end the kernel")
        }
        Class::Branch if inst.ends_wave() => Some("ends the wave: hooks must not end the kernel"),
        Class::Branch if inst.branch_target.is_none() && !is_return(inst) => {
            Some("calls a function that is not inlined: recursive, noinline, or through a pointer")
        }
        Class::Image | Class::Graphics => Some("uses images, which kernels do not have"),
        _ => None,
    }
}
