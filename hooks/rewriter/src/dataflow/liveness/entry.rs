//! Registers that the hardware initializes before a kernel starts.

use flipwave_codeobj::Kernel;
use flipwave_isa::{FlatScratch, Generation, Register, RegisterRange, RegisterSet, Target, Vgpr};

/// Registers that are initialized when a kernel starts (AMDGPUUsage, "Initial Kernel Execution
/// State").
pub fn initialised(kernel: &Kernel, target: &Target) -> RegisterSet {
    let descriptor = &kernel.descriptor;
    let mut set = RegisterSet::EMPTY;
    for initial in descriptor.initial_sgprs(target) {
        set.insert_range(RegisterRange::new(Register::Sgpr(initial.first), initial.words));
    }
    let work_item_ids = if target.packs_work_item_ids() {
        1
    } else {
        descriptor.rsrc2.vgpr_workitem_id.saturating_add(1).min(3)
    };
    (0..work_item_ids).for_each(|n| set.insert(Register::Vgpr(Vgpr(n.into()))));
    set.insert(Register::ExecLo);
    set.insert(Register::Mode);
    if descriptor.wavefront_size() == 64 {
        set.insert(Register::ExecHi);
    }
    if target.flat_scratch() == FlatScratch::Architected {
        set.insert(Register::FlatScratchLo);
        set.insert(Register::FlatScratchHi);
    }
    if target.generation() >= Generation::Gfx12 {
        // TTMPs hold the workgroup's indices (AMDGPUUsage, "SGPR Register Set Up Order").
        (0..16).for_each(|n| set.insert(Register::Ttmp(flipwave_isa::Ttmp(n))));
    }
    set
}
