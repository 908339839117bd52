//! Functions that call each other, and the registers they share.
//!
//! Registers that no function of a component names can hold what hooks need all the way through a
//! kernel. Where there are too few, the kernels' allocations grow; a component's kernels grow
//! together, since any of them may be on its way in a shared function.

use super::Allocation;
use crate::dataflow::IndexedRegisters;
use crate::flow::{Disassembly, FunctionIndex, Groups};
use flipwave_codeobj::{CodeObject, Kernel};
use flipwave_isa::{
    AccVgprs, FlatScratch, Opcode, Register, RegisterRange, RegisterSet, Target, Vgpr,
    WorkgroupShape,
};

/// Functions connected by calls.
#[derive(Clone, Debug)]
pub struct Component {
    /// Its functions, by ascending index.
    pub functions: Vec<FunctionIndex>,
    /// Indices of its kernels in the code object.
    pub kernels: Vec<usize>,
    /// Registers that its instructions name.
    pub named: RegisterSet,
    /// Registers that they may read or write, those reached by an index included.
    pub touched: RegisterSet,
    /// Registers that its kernels have now, in all of them.
    pub allocated: RegisterSet,
    /// Registers that its kernels can have at most, without the reserved ones.
    pub allocatable: RegisterSet,
    /// Registers that no function touches and that were set aside: hooks get others.
    pub reserved: RegisterSet,
    /// Whether its waves change how many VGPRs they have as they run (RDNA 4 ISA, "Dynamic VGPR
    /// allocation").
    pub resizes: bool,
    /// Bytes of each lane's scratch that its kernels use themselves; `None` where that is not
    /// known, or where scratch cannot be set up.
    pub scratch: Option<u32>,
}

impl Component {
    /// Registers that no function touches: first those that are allocated anyhow.
    pub fn free(&self) -> RegisterSet {
        self.allocatable.difference(self.touched)
    }

    /// Sets registers aside that no function touches; hooks get others from then on.
    pub fn reserve(&mut self, range: RegisterRange) {
        self.reserved.insert_range(range);
        self.allocatable = self.allocatable.difference(self.reserved);
        self.allocated = self.allocated.difference(self.reserved);
    }
}

/// The components of a program, by the lowest function of each.
pub fn components(object: &CodeObject, program: &Disassembly) -> Vec<Component> {
    let groups = Groups::of(program);
    let indexed = IndexedRegisters::of(program, &groups);
    let component = |group: &[FunctionIndex]| {
        let mut component = Component::new(&program.target);
        component.functions = group.to_vec();
        for kernel in group.iter().filter_map(|own| program.functions[*own].kernel) {
            component.add_kernel(kernel, &object.kernels()[kernel], &program.target);
        }
        if let Some(offset) = program.accum_offset {
            component.keep_below(offset);
        }
        component.named = program.registers_named(group);
        component.touched = component.named.union(indexed.of_functions(program, group));
        let functions = group.iter().map(|own| &program.functions[*own]);
        let mut insts = functions.flat_map(|own| &program.instructions[own.instructions]);
        component.resizes = insts.any(|own| own.operation.opcode() == Opcode::SAllocVgpr);
        component
    };
    groups.iter().map(component).collect()
}

impl Component {
    fn new(target: &Target) -> Component {
        let all = Allocation::maximal(target);
        Component {
            functions: Vec::new(),
            kernels: Vec::new(),
            named: RegisterSet::EMPTY,
            touched: RegisterSet::EMPTY,
            resizes: false,
            allocated: all.registers(),
            allocatable: all.registers(),
            reserved: RegisterSet::EMPTY,
            // Where the base goes through a hardware register there is no code for it.
            scratch: (target.flat_scratch() != FlatScratch::HardwareRegisters).then_some(0),
        }
    }

    /// VGPRs from `offset` on are AccVGPRs of those that name them: no more of the others.
    fn keep_below(&mut self, offset: u16) {
        let beyond = (offset..256).map(|n| Register::Vgpr(Vgpr(n)));
        let beyond: RegisterSet = beyond.collect();
        self.allocated = self.allocated.difference(beyond);
        self.allocatable = self.allocatable.difference(beyond);
    }

    fn add_kernel(&mut self, index: usize, kernel: &Kernel, target: &Target) {
        self.kernels.push(index);
        let own = Allocation::of(kernel, target);
        self.allocated = self.allocated.intersection(own.registers());
        let own_scratch = match kernel.descriptor.properties.uses_dynamic_stack {
            true => None,
            false => kernel.descriptor.private_segment_fixed_size.checked_next_multiple_of(4),
        };
        self.scratch = self.scratch.zip(own_scratch).map(|(all, own)| all.max(own));
        let wave_size = if kernel.descriptor.wavefront_size() == 32 { 32 } else { 64 };
        let items = kernel.metadata.max_flat_workgroup_size.unwrap_or(LARGEST_WORKGROUP);
        let most = target.max_vgprs_of_workgroup(WorkgroupShape {
            waves: items.div_ceil(wave_size.into()),
            wave_size,
            workgroup_processor_mode: kernel.descriptor.rsrc1.workgroup_processor_mode,
        });
        let sgprs = target.max_sgprs();
        let most = match target.acc_vgprs() {
            AccVgprs::None => Allocation { vgprs: most, acc_vgprs: 0, sgprs },
            AccVgprs::Separate => Allocation { vgprs: most, acc_vgprs: most, sgprs },
            // The two share one file: what architectural registers leave is for the others.
            AccVgprs::Unified => {
                let vgprs = most.saturating_sub(own.acc_vgprs).min(256);
                Allocation { vgprs, acc_vgprs: most - vgprs, sgprs }
            }
        };
        self.allocatable = self.allocatable.intersection(most.registers().union(own.registers()));
    }
}

/// Work-items of the largest workgroup there is.
const LARGEST_WORKGROUP: u32 = 1024;
