//! How many registers a kernel leaves free: globally, locally, and which it never lets go.

use super::{Live, Liveness};
use crate::flow::FunctionIndex;
use crate::registers::Allocation;
use flipwave_isa::RegisterSet;

/// The registers that a kernel uses and those it leaves, of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterUse {
    /// The registers there are.
    pub allocated: RegisterSet,
    /// Registers that neither the kernel nor anything it may call reads or writes.
    pub globally_free: RegisterSet,
    /// Registers that are live wherever any register of the allocation is: those that a kernel
    /// keeps a value in from its beginning to its end.
    pub persistent: RegisterSet,
}

impl RegisterUse {
    /// The use of a kernel's registers, where `function` is the kernel.
    pub fn of(
        liveness: &Liveness<'_>,
        function: FunctionIndex,
        allocation: Allocation,
    ) -> RegisterUse {
        let program = liveness.program();
        let allocated = allocation.registers();
        let reachable = program.reachable(function);
        let touched = program.registers_named(&reachable).union(liveness.indexed(&reachable));
        let mut persistent = allocated;
        for function in reachable {
            for index in program.functions[function].instructions.iter() {
                let live = liveness.before(index).any().intersection(allocated);
                if !live.is_empty() {
                    persistent = persistent.intersection(live);
                }
            }
        }
        RegisterUse { allocated, globally_free: allocated.difference(touched), persistent }
    }

    /// The registers that are not live at a point.
    pub fn locally_free(&self, live: &Live) -> RegisterSet {
        self.allocated.difference(live.any())
    }
}
