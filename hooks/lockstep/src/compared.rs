//! Determines the registers that are compared before each original instruction.

use super::comparison::Lockstep;
use super::difference::LockstepError;
use flipwave_hooks::dataflow::Live;
use flipwave_hooks::flow::{AddressChain, Disassembly, IndexRange, IndexVec, InstIndex};
use flipwave_hooks::registers::Allocation;
use flipwave_hooks::registers::components;
use flipwave_isa::{Register, RegisterSet};
use std::cell::OnceCell;
use std::collections::HashSet;

/// The registers to compare before an instruction.
#[derive(Debug)]
pub struct Registers {
    /// Registers that all lanes share.
    pub scalars: Vec<Register>,
    /// Registers with a value per lane.
    pub vectors: Vec<VectorRegister>,
}

/// A register to compare in some lanes.
#[derive(Debug)]
pub struct VectorRegister {
    /// The register.
    pub register: Register,
    /// Compares the lanes that EXEC selects.
    pub in_active: bool,
    /// Compares the other lanes.
    pub in_masked: bool,
}

/// The registers to compare before each original instruction, determined at its first execution.
pub struct Compared<'a> {
    live: &'a dyn Fn(InstIndex) -> Live,
    changed: RegisterSet,
    /// The allocated registers that the kernel and its functions access. Hooks use the others for their own
    /// values, so those are not compared even if code outside the code object could read them.
    touched: RegisterSet,
    /// Instructions before which SCC is not compared because it may hold the carry of an address
    /// computation, which depends on the addresses.
    carries: HashSet<InstIndex>,
    known: IndexVec<InstIndex, OnceCell<Registers>>,
    /// The number of lanes of a wave.
    pub wave_size: u8,
}

/// The instructions before which SCC may hold a carry of an address computation: between its two halves,
/// after it until SCC is written, and at the start of functions, where SCC is undefined (AMDGPUUsage,
/// "Non-Kernel Functions").
fn carries(program: &Disassembly) -> HashSet<InstIndex> {
    let halves = |chain: &AddressChain| IndexRange::new(chain.low.next(), chain.high.next()).iter();
    let mut carries: HashSet<InstIndex> = program.addresses.iter().flat_map(halves).collect();
    let called = program.functions.iter().filter(|function| function.kernel.is_none());
    let starts = program.addresses.iter().map(|chain| chain.high.next());
    for start in starts.chain(called.map(|function| function.instructions.start)) {
        let mut index = start;
        while let Some(inst) = program.instructions.get(index) {
            carries.insert(index);
            let writes_scc = inst.writes.iter().any(|range| range.first == Register::Scc);
            let leaves = inst.flags.branch || inst.flags.call || inst.flags.terminator;
            if writes_scc || leaves {
                break;
            }
            index = index.next();
        }
    }
    carries
}

impl<'a> Compared<'a> {
    pub fn new(lockstep: &Lockstep<'a>) -> Result<Compared<'a>, LockstepError> {
        let program = lockstep.program;
        let module = lockstep.original.module;
        let object = lockstep.gpu.code_object(module).ok_or(LockstepError::NotLoaded)?;
        let kernels = object.kernels();
        let kernel = kernels.iter().position(|kernel| *kernel.name == *lockstep.original.kernel);
        let component = components(object, program)
            .into_iter()
            .find(|component| kernel.is_some_and(|index| component.kernels.contains(&index)));
        let files = RegisterSet::VGPRS.union(RegisterSet::ACC_VGPRS).union(RegisterSet::SGPRS);
        let allocated = kernel
            .map(|index| &kernels[index])
            .map_or(files, |kernel| Allocation::of(kernel, &program.target).registers());
        let unallocated = files.difference(allocated);
        let touched = component.map_or(RegisterSet::EMPTY, |component| component.touched);
        Ok(Compared {
            live: lockstep.live,
            changed: lockstep.changed,
            touched: touched.difference(unallocated),
            carries: carries(program),
            known: program.insts().map(|_| OnceCell::new()).collect(),
            wave_size: program.wave_size,
        })
    }

    /// The registers to compare before an instruction.
    pub fn before(&self, index: InstIndex) -> &Registers {
        self.known[index].get_or_init(|| self.registers(index))
    }

    fn registers(&self, index: InstIndex) -> Registers {
        let live = (self.live)(index);
        let is_compared = |register: &Register| {
            let is_carry = *register == Register::Scc && self.carries.contains(&index);
            !is_carry && !self.changed.contains(*register)
        };
        let mut registers = Registers { scalars: Vec::new(), vectors: Vec::new() };
        for register in live.any().intersection(self.touched).iter().filter(is_compared) {
            if register.is_per_lane() {
                registers.vectors.push(VectorRegister {
                    register,
                    in_active: live.active.contains(register),
                    in_masked: live.masked.contains(register),
                });
            } else {
                registers.scalars.push(register);
            }
        }
        registers
    }
}
