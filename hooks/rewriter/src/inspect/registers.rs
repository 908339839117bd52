//! Facts about live and free registers.

use crate::dataflow::{Live, Liveness, RegisterUse};
use crate::flow::FunctionIndex;
use crate::registers::Allocation;
use flipwave_codeobj::Kernel;
use flipwave_isa::Target;
use serde::Serialize;

/// Numbers of registers by register file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// VGPRs.
    pub vgprs: u16,
    /// AccVGPRs.
    pub acc_vgprs: u16,
    /// SGPRs, without special registers such as VCC.
    pub sgprs: u16,
}

impl From<Allocation> for Counts {
    fn from(allocation: Allocation) -> Counts {
        let Allocation { vgprs, acc_vgprs, sgprs, .. } = allocation;
        Counts { vgprs, acc_vgprs, sgprs: sgprs.into() }
    }
}

/// Registers used and left free by a kernel and all functions it may call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RegisterFacts {
    /// For the registers that the descriptor allocates.
    pub default: FreeFacts,
    /// For the maximal allocation of a wave.
    pub maximal: FreeFacts,
}

/// Free registers of an allocation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FreeFacts {
    /// The allocation.
    pub allocated: Counts,
    /// Registers that no instruction reads or writes.
    pub globally_free: Counts,
    /// Names of the globally free registers.
    pub globally_free_registers: String,
    /// Registers that are not live before an instruction: the distribution over all instructions.
    pub locally_free: Spread,
    /// Registers that are live before every instruction.
    pub persistent: Counts,
    /// Names of the persistent registers.
    pub persistent_registers: String,
}

/// Minimum, median and maximum over all instructions, separately for each register file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Spread {
    /// Minimum.
    pub least: Counts,
    /// Median; the lower one of two.
    pub median: Counts,
    /// Maximum.
    pub most: Counts,
}

/// Registers that are live before an instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LiveFacts {
    /// Numbers of live registers.
    pub counts: Counts,
    /// Vector registers that are live in lanes selected by EXEC, and live scalar registers.
    pub active: String,
    /// Vector registers that are live in lanes not selected by EXEC.
    pub masked: String,
    /// Registers of the descriptor's allocation that are not live. In a device function, the allocation
    /// is the part common to all kernels that may call it.
    pub free_default: Counts,
    /// Registers of the maximal allocation that are not live.
    pub free_maximal: Counts,
}

/// The two allocations for which free registers are counted.
#[derive(Clone, Copy)]
pub(super) struct Allocations {
    /// The descriptor's allocation; in device functions, the part common to all callers.
    pub default: Allocation,
    /// The largest allocation of a wave.
    pub maximal: Allocation,
}

impl LiveFacts {
    pub(super) fn new(live: &Live, allocations: Allocations) -> LiveFacts {
        let free = |allocation: Allocation| {
            Allocation::count(allocation.registers().difference(live.any())).into()
        };
        LiveFacts {
            free_default: free(allocations.default),
            free_maximal: free(allocations.maximal),
            counts: Allocation::count(live.any()).into(),
            active: live.active.to_string(),
            masked: live.masked.to_string(),
        }
    }
}

/// Collects the facts about the registers of a kernel.
pub(super) fn register_facts(
    liveness: &Liveness<'_>,
    function: FunctionIndex,
    kernel: &Kernel,
    target: &Target,
) -> RegisterFacts {
    RegisterFacts {
        default: free_facts(liveness, function, Allocation::of(kernel, target)),
        maximal: free_facts(liveness, function, Allocation::maximal(target)),
    }
}

fn free_facts(
    liveness: &Liveness<'_>,
    function: FunctionIndex,
    allocation: Allocation,
) -> FreeFacts {
    let program = liveness.program();
    let used = RegisterUse::of(liveness, function, allocation);
    let reachable = program.reachable(function);
    let functions = reachable.iter().map(|index| &program.functions[*index]);
    let local: Vec<Counts> = functions
        .flat_map(|function| function.instructions.iter())
        .map(|index| Allocation::count(used.locally_free(&liveness.before(index))).into())
        .collect();
    FreeFacts {
        allocated: allocation.into(),
        globally_free: Allocation::count(used.globally_free).into(),
        globally_free_registers: used.globally_free.to_string(),
        locally_free: spread(&local),
        persistent: Allocation::count(used.persistent).into(),
        persistent_registers: used.persistent.to_string(),
    }
}

fn spread(counts: &[Counts]) -> Spread {
    let file = |count: fn(&Counts) -> u16| {
        let mut sorted: Vec<u16> = counts.iter().map(count).collect();
        sorted.sort_unstable();
        let at = |index: usize| sorted.get(index).copied().unwrap_or_default();
        let last = sorted.len().saturating_sub(1);
        [at(0), at(last / 2), at(last)]
    };
    let files =
        [file(|counts| counts.vgprs), file(|counts| counts.acc_vgprs), file(|counts| counts.sgprs)];
    let [least, median, most] = std::array::from_fn(|at| Counts {
        vgprs: files[0][at],
        acc_vgprs: files[1][at],
        sgprs: files[2][at],
    });
    Spread { least, median, most }
}
