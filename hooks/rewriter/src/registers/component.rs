//! Functions connected by calls, and the registers they share.
//!
//! Registers that no function of a component names can hold values for hooks throughout a kernel. If there are
//! too few, the allocations of all kernels of the component grow, because each of them may execute the shared
//! functions.

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
    /// Functions, by ascending index.
    pub functions: Vec<FunctionIndex>,
    /// Indices of the kernels in the code object.
    pub kernels: Vec<usize>,
    /// Registers that the instructions name.
    pub named: RegisterSet,
    /// Registers that the instructions may read or write, including through an index.
    pub touched: RegisterSet,
    /// Registers that all kernels allocate now.
    pub allocated: RegisterSet,
    /// Registers that all kernels could allocate, without the reserved ones.
    pub allocatable: RegisterSet,
    /// Unused registers that are reserved for the whole component. Hooks use others.
    pub reserved: RegisterSet,
    /// Waves change their number of VGPRs while they run (RDNA 4 ISA, "Dynamic VGPR allocation").
    pub resizes: bool,
    /// Bytes of scratch that the kernels use in each lane; `None` if the number is unknown, or if scratch
    /// cannot be set up.
    pub scratch: Option<u32>,
}

impl Component {
    /// Registers that could be allocated and that no function reads or writes.
    pub fn free(&self) -> RegisterSet {
        self.allocatable.difference(self.touched)
    }

    /// Reserves unused registers, so that hooks use others.
    pub fn reserve(&mut self, range: RegisterRange) {
        self.reserved.insert_range(range);
        self.allocatable = self.allocatable.difference(self.reserved);
        self.allocated = self.allocated.difference(self.reserved);
    }
}

/// The components of a program, in the order of their first functions.
pub fn components(object: &CodeObject, program: &Disassembly) -> Vec<Component> {
    let groups = Groups::of(program);
    let indexed = IndexedRegisters::of(program, &groups);
    let component = |group: &[FunctionIndex]| {
        let mut component = Component::new(&program.target);
        component.functions = group.to_vec();
        for kernel in group.iter().filter_map(|index| program.functions[*index].kernel) {
            component.add_kernel(kernel, &object.kernels()[kernel], &program.target);
        }
        if let Some(offset) = program.accum_offset {
            component.exclude_vgprs_from(offset);
        }
        component.named = program.registers_named(group);
        component.touched = component.named.union(indexed.of_functions(program, group));
        let functions = group.iter().map(|index| &program.functions[*index]);
        let mut insts = functions.flat_map(|function| &program.instructions[function.instructions]);
        component.resizes = insts.any(|inst| inst.operation.opcode() == Opcode::SAllocVgpr);
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
            // Setting FLAT_SCRATCH through hardware registers is not supported.
            scratch: (target.flat_scratch() != FlatScratch::HardwareRegisters).then_some(0),
        }
    }

    /// Excludes the VGPRs from `offset` upwards, which are AccVGPRs.
    fn exclude_vgprs_from(&mut self, offset: u16) {
        let excluded: RegisterSet = (offset..256).map(|n| Register::Vgpr(Vgpr(n))).collect();
        self.allocated = self.allocated.difference(excluded);
        self.allocatable = self.allocatable.difference(excluded);
    }

    fn add_kernel(&mut self, index: usize, kernel: &Kernel, target: &Target) {
        self.kernels.push(index);
        let current = Allocation::of(kernel, target);
        self.allocated = self.allocated.intersection(current.registers());
        let scratch = if kernel.descriptor.properties.uses_dynamic_stack {
            None
        } else {
            kernel.descriptor.private_segment_fixed_size.checked_next_multiple_of(4)
        };
        self.scratch = self.scratch.zip(scratch).map(|(most, scratch)| most.max(scratch));
        let wave_size = if kernel.descriptor.wavefront_size() == 32 { 32 } else { 64 };
        let items = kernel.metadata.max_flat_workgroup_size.unwrap_or(MAX_WORKGROUP_SIZE);
        let max_vgprs = target.max_vgprs_of_workgroup(WorkgroupShape {
            waves: items.div_ceil(wave_size.into()),
            wave_size,
            workgroup_processor_mode: kernel.descriptor.rsrc1.workgroup_processor_mode,
        });
        let sgprs = target.max_sgprs();
        let maximal = match target.acc_vgprs() {
            AccVgprs::None => Allocation { vgprs: max_vgprs, acc_vgprs: 0, sgprs },
            AccVgprs::Separate => Allocation { vgprs: max_vgprs, acc_vgprs: max_vgprs, sgprs },
            // VGPRs and AccVGPRs share one file: VGPRs grow first, up to 256, and AccVGPRs get the rest.
            AccVgprs::Unified => {
                let vgprs = max_vgprs.saturating_sub(current.acc_vgprs).min(256);
                Allocation { vgprs, acc_vgprs: max_vgprs - vgprs, sgprs }
            }
        };
        self.allocatable =
            self.allocatable.intersection(maximal.registers().union(current.registers()));
    }
}

/// Most work-items of a workgroup.
const MAX_WORKGROUP_SIZE: u32 = 1024;
