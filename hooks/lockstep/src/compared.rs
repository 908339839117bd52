//! What is compared before each original instruction.

use super::{Lockstep, LockstepError};
use flipwave_hooks::dataflow::Live;
use flipwave_hooks::flow::{AddressChain, Disassembly, IndexRange, IndexVec, InstIndex};
use flipwave_hooks::registers::Allocation;
use flipwave_hooks::registers::components;
use flipwave_isa::{Register, RegisterSet};
use std::cell::OnceCell;
use std::collections::HashSet;

/// Registers that are compared at a point.
#[derive(Debug)]
pub struct Registers {
    /// Those that all lanes share.
    pub scalars: Vec<Register>,
    /// Those of lanes: whether in the lanes that EXEC selects, and whether in the others.
    pub vectors: Vec<(Register, bool, bool)>,
}

/// What is compared before each original instruction, worked out when it is first executed.
pub struct Compared<'a> {
    live: &'a dyn Fn(InstIndex) -> Live,
    changed: RegisterSet,
    /// Registers of the original's waves that code which runs with the kernel can get at. What
    /// code outside the code object might find in others is nobody's: there hooks keep what is
    /// their own.
    touched: RegisterSet,
    /// Instructions before which SCC holds the carry of an address computation, which depends on
    /// the address, or may hold it where a function was called.
    carries: HashSet<InstIndex>,
    known: IndexVec<InstIndex, OnceCell<Registers>>,
    /// Lanes of a wave.
    pub wave_size: u8,
}

/// The instructions before which SCC may hold a carry of an address computation: between its
/// halves, after it until SCC is written, and at the beginning of functions, to which SCC passes
/// nothing (AMDGPUUsage, "Non-Kernel Functions").
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
        let kernel = kernels.iter().position(|own| *own.name == *lockstep.original.kernel);
        let mut components = components(object, program).into_iter();
        let component = components.find(|own| kernel.is_some_and(|at| own.kernels.contains(&at)));
        let files = RegisterSet::VGPRS.union(RegisterSet::ACC_VGPRS).union(RegisterSet::SGPRS);
        let allocated = kernel
            .map(|at| &kernels[at])
            .map_or(files, |kernel| Allocation::of(kernel, &program.target).registers());
        let missing = files.difference(allocated);
        Ok(Compared {
            live: lockstep.live,
            changed: lockstep.changed,
            touched: component.map_or(RegisterSet::EMPTY, |own| own.touched.difference(missing)),
            carries: carries(program),
            known: program.insts().map(|_| OnceCell::new()).collect(),
            wave_size: program.wave_size,
        })
    }

    /// What is compared before an instruction.
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
                let (active, masked) =
                    (live.active.contains(register), live.masked.contains(register));
                registers.vectors.push((register, active, masked));
            } else {
                registers.scalars.push(register);
            }
        }
        registers
    }
}
