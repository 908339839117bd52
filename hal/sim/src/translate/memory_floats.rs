//! Documented properties of floating-point atomics in memory.

use crate::wave::Machine;
use flipwave_isa::{DataType, Generation, Inst, MemoryKind};

/// Source that defines the results.
const ATOMICS: &str = "IEEE 754, to nearest even; denormals: LLVM, \
                       `FeatureMemoryAtomicFAddF32DenormalSupport` and CDNA 3 ISA, `DS_PK_ADD_BF16`";

/// Returns `true` for instructions that compute with floating-point numbers in memory.
fn computes(inst: &Inst) -> bool {
    let changes = inst.memory().is_some_and(|access| access.kind == MemoryKind::Atomic);
    changes && inst.data_type() != DataType::Integer
}

/// The source that defines an instruction's results; `None` for instructions that do not compute
/// with floating-point numbers in memory.
pub fn source(inst: &Inst) -> Option<&'static str> {
    computes(inst).then_some(ATOMICS)
}

/// States the choice for results that no source settles; `None` if the results are settled.
pub fn unsettled(inst: &Inst, machine: Machine) -> Option<&'static str> {
    let name = inst.operation.name();
    let is_global = !name.starts_with("ds_");
    let adds = name.contains("_add_f") || name.contains("_pk_add_");
    // AMD's documents contradict each other on gfx90a (llvm-project pull request 96443); according
    // to LLVM the older processors flush denormals.
    let keeps =
        matches!(machine.generation, Generation::Gfx940 | Generation::Gfx12 | Generation::Gfx125);
    (computes(inst) && is_global && adds && !keeps).then_some("denormals are kept")
}
