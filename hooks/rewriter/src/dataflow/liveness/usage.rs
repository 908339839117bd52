//! Registers that a kernel uses, leaves free, and keeps live throughout.

use super::{Live, Liveness};
use crate::flow::FunctionIndex;
use crate::registers::Allocation;
use flipwave_isa::RegisterSet;

/// The use of an allocation's registers by a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterUse {
    /// All registers of the allocation.
    pub allocated: RegisterSet,
    /// Registers that neither the kernel nor any function it may call reads or writes.
    pub globally_free: RegisterSet,
    /// Registers that are live at every instruction where any register of the allocation is live: they hold
    /// values from the beginning of the kernel to its end.
    pub persistent: RegisterSet,
}

impl RegisterUse {
    /// Computes the use of registers by the kernel `function`.
    pub fn of(
        liveness: &Liveness<'_>,
        function: FunctionIndex,
        allocation: Allocation,
    ) -> RegisterUse {
        let program = liveness.program();
        let allocated = allocation.registers();
        let reachable = program.reachable(function);
        let used = program.registers_named(&reachable).union(liveness.indexed(&reachable));
        let mut persistent = allocated;
        for function in reachable {
            for index in program.functions[function].instructions.iter() {
                let live = liveness.before(index).any().intersection(allocated);
                if !live.is_empty() {
                    persistent = persistent.intersection(live);
                }
            }
        }
        RegisterUse { allocated, globally_free: allocated.difference(used), persistent }
    }

    /// The registers of the allocation that are not live at a point.
    pub fn locally_free(&self, live: &Live) -> RegisterSet {
        self.allocated.difference(live.any())
    }
}
