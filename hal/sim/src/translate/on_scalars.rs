//! Vector operations on scalar registers: floating-point operations of the scalar unit (RDNA 3.5
//! ISA, "Scalar floating point"), and transcendental operations of the vector unit whose operands
//! are scalar registers (RDNA 4 ISA, `V_S_EXP_F32` and others). They compute the same as the vector
//! operation of the same name, including the effect of MODE.

use super::operands::Gap;
use super::vector::vector_operands;
use crate::instruction::{Inner, Op, Run, Source, Word};
use crate::wave::{Level, Machine, RowIndex, ScalarIndex};
use flipwave_isa::{Family, Inst, Operation};

/// Name of the equivalent vector operation; `None` for operations of other kinds.
pub fn vector_name(name: &str) -> Option<String> {
    let base = name.strip_prefix("v_s_").or_else(|| {
        let is_float = name.contains("_f32") || name.contains("_f16");
        name.strip_prefix("s_").filter(|_| is_float)
    })?;
    Some(format!("v_{}", base.replacen("cvt_hi_", "cvt_", 1)))
}

/// Returns `true` for floating-point operations of the scalar unit that write half a register.
pub fn writes_half(name: &str) -> bool {
    let keeps_register = name.starts_with("s_cmp_") || name.starts_with("s_cvt_");
    name.starts_with("s_") && name.ends_with("_f16") && !keeps_register
}

/// Resolves the operands, and translates the vector operation `name`.
pub fn operands(
    op: &mut Op,
    inst: &Inst,
    name: &str,
    level: Level,
    machine: Machine,
) -> Result<Run, Gap> {
    let operation = Operation::from_mnemonic(name, machine.generation);
    let mut inst = inst.clone();
    inst.operation = operation;
    if op.inst.operation.is(Family::ConvertHighHalf) {
        inst.modifiers.op_sel = Some(1);
    }
    let mut vector = Op::new(inst.clone(), Run::OnScalars);
    vector.run = vector_operands(&mut vector, &inst, level, machine)?;
    op.sources = vector.sources;
    for (source, index) in vector.sources.iter_mut().zip(ScalarIndex::OPERANDS.0..) {
        *source = Source { words: [Word::Scalar(ScalarIndex(index)); 2] };
    }
    vector.destination = RowIndex::WAITING;
    if inst.destinations().next().is_none() {
        vector.mask_destination = [ScalarIndex::COMPARED, ScalarIndex::DROPPED];
    }
    op.inner = Some(Box::new(Inner::OnScalars(vector)));
    Ok(Run::OnScalars)
}
