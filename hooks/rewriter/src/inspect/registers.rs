//! Which registers are live and free.

use crate::dataflow::{Live, Liveness, RegisterUse};
use crate::flow::FunctionIndex;
use crate::registers::Allocation;
use flipwave_codeobj::Kernel;
use flipwave_isa::Target;
use serde::Serialize;

/// So many registers of each file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// VGPRs.
    pub vgprs: u16,
    /// AccVGPRs.
    pub acc_vgprs: u16,
    /// SGPRs, without VCC and the like.
    pub sgprs: u16,
}

impl From<Allocation> for Counts {
    fn from(own: Allocation) -> Counts {
        Counts { vgprs: own.vgprs, acc_vgprs: own.acc_vgprs, sgprs: own.sgprs.into() }
    }
}

/// What a kernel, with all that it may call, uses and leaves of the registers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RegisterFacts {
    /// Of the registers that the descriptor asks for.
    pub default: FreeFacts,
    /// Of the registers that a wave can have.
    pub maximal: FreeFacts,
}

/// Free registers of an allocation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FreeFacts {
    /// The allocation.
    pub allocated: Counts,
    /// Registers that no instruction reads or writes.
    pub globally_free: Counts,
    /// The same registers by name.
    pub globally_free_registers: String,
    /// Registers that are not live before an instruction, over all instructions.
    pub locally_free: Spread,
    /// Registers that are live wherever any is.
    pub persistent: Counts,
    /// The same registers by name.
    pub persistent_registers: String,
}

/// Least, median and most over all instructions, each file for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Spread {
    /// Least.
    pub least: Counts,
    /// Median; of two, the lower.
    pub median: Counts,
    /// Most.
    pub most: Counts,
}

/// What is live before an instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LiveFacts {
    /// How many registers of each file.
    pub counts: Counts,
    /// Live in lanes that EXEC selects, and registers that are not per lane.
    pub active: String,
    /// Live in lanes that EXEC does not select.
    pub masked: String,
    /// Registers that are not live, of those that the descriptor asks for. In a device function:
    /// of those that all kernels have that may call it.
    pub free_default: Counts,
    /// Registers that are not live, of those that a wave can have.
    pub free_maximal: Counts,
}

impl LiveFacts {
    pub(super) fn of(live: &Live, allocations: [Allocation; 2]) -> LiveFacts {
        let [free_default, free_maximal] = allocations.map(|allocation| {
            Allocation::count(allocation.registers().difference(live.any())).into()
        });
        LiveFacts {
            free_default,
            free_maximal,
            counts: Allocation::count(live.any()).into(),
            active: live.active.to_string(),
            masked: live.masked.to_string(),
        }
    }
}

pub(super) fn of(
    liveness: &Liveness<'_>,
    function: FunctionIndex,
    kernel: &Kernel,
    target: &Target,
) -> RegisterFacts {
    RegisterFacts {
        default: free(liveness, function, Allocation::of(kernel, target)),
        maximal: free(liveness, function, Allocation::maximal(target)),
    }
}

fn free(liveness: &Liveness<'_>, function: FunctionIndex, allocation: Allocation) -> FreeFacts {
    let program = liveness.program();
    let used = RegisterUse::of(liveness, function, allocation);
    let reachable = program.reachable(function);
    let functions = reachable.iter().map(|own| &program.functions[*own]);
    let local: Vec<Counts> = functions
        .flat_map(|own| own.instructions.iter())
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
    let file = |of: fn(&Counts) -> u16| {
        let mut sorted: Vec<u16> = counts.iter().map(of).collect();
        sorted.sort_unstable();
        let at = |index: usize| sorted.get(index).copied().unwrap_or_default();
        let last = sorted.len().saturating_sub(1);
        [at(0), at(last / 2), at(last)]
    };
    let files = [file(|own| own.vgprs), file(|own| own.acc_vgprs), file(|own| own.sgprs)];
    let [least, median, most] = std::array::from_fn(|at| Counts {
        vgprs: files[0][at],
        acc_vgprs: files[1][at],
        sgprs: files[2][at],
    });
    Spread { least, median, most }
}
