//! Initial values of a wave's scalar registers.

use crate::Descriptor;
use flipwave_isa::{FlatScratch, Sgpr, Target};

/// A value that hardware or firmware writes to scalar registers before a wave's first instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InitialValue {
    /// Buffer resource of the scratch memory.
    PrivateSegmentBuffer,
    /// Address of the dispatch packet.
    DispatchPointer,
    /// Address of the queue.
    QueuePointer,
    /// Address of the kernarg segment.
    KernargPointer,
    /// Dispatch ID.
    DispatchId,
    /// Initial value of the flat scratch register.
    FlatScratchInit,
    /// Scratch size per lane, in bytes.
    PrivateSegmentSize,
    /// Preloaded kernel arguments.
    Arguments,
    /// Workgroup ID in x.
    WorkgroupIdX,
    /// Workgroup ID in y.
    WorkgroupIdY,
    /// Workgroup ID in z.
    WorkgroupIdZ,
    /// Workgroup information word.
    WorkgroupInfo,
    /// Offset of the wave's scratch memory.
    ScratchOffset,
}

impl InitialValue {
    /// Number of registers; `None` for [`InitialValue::Arguments`], whose number the descriptor has.
    pub fn words(self) -> Option<u8> {
        Some(match self {
            InitialValue::PrivateSegmentBuffer => 4,
            InitialValue::DispatchPointer
            | InitialValue::QueuePointer
            | InitialValue::KernargPointer
            | InitialValue::DispatchId
            | InitialValue::FlatScratchInit => 2,
            InitialValue::Arguments => return None,
            _ => 1,
        })
    }
}

/// An initial value and its registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitialSgprs {
    /// The value.
    pub value: InitialValue,
    /// The first register.
    pub first: Sgpr,
    /// Number of registers.
    pub words: u8,
}

impl Descriptor {
    /// Initial values of scalar registers by ascending register (AMDGPUUsage, "SGPR Register Set Up
    /// Order"): user SGPRs, then system SGPRs. Unused user SGPRs may lie between them. From gfx12 on
    /// the workgroup ID is in trap registers, not in general ones.
    pub fn initial_sgprs(&self, target: &Target) -> Vec<InitialSgprs> {
        let properties = &self.properties;
        let rsrc2 = &self.rsrc2;
        let mut initial = Vec::new();
        let mut put = |value: InitialValue, first: u8, words: u8| {
            initial.push(InitialSgprs { value, first: Sgpr(first), words });
            first.saturating_add(words)
        };
        let mut next = 0;
        for (enabled, value) in [
            (properties.sgpr_private_segment_buffer, InitialValue::PrivateSegmentBuffer),
            (properties.sgpr_dispatch_ptr, InitialValue::DispatchPointer),
            (properties.sgpr_queue_ptr, InitialValue::QueuePointer),
            (properties.sgpr_kernarg_segment_ptr, InitialValue::KernargPointer),
            (properties.sgpr_dispatch_id, InitialValue::DispatchId),
            (properties.sgpr_flat_scratch_init, InitialValue::FlatScratchInit),
            (properties.sgpr_private_segment_size, InitialValue::PrivateSegmentSize),
        ] {
            if let (true, Some(words)) = (enabled, value.words()) {
                next = put(value, next, words);
            }
        }
        let preloaded = self.kernarg_preload.length.min(rsrc2.user_sgprs.saturating_sub(next));
        if preloaded > 0 {
            put(InitialValue::Arguments, next, preloaded);
        }
        let mut next = rsrc2.user_sgprs.max(next);
        // From gfx12 on the workgroup ID is in trap registers.
        let in_trap_registers = target.has_architected_sgprs();
        // With architected flat scratch the hardware has added the offset (AMDGPUUsage, "Flat
        // Scratch").
        let architected = target.flat_scratch() == FlatScratch::Architected;
        for (enabled, value) in [
            (rsrc2.workgroup_id_x && !in_trap_registers, InitialValue::WorkgroupIdX),
            (rsrc2.workgroup_id_y && !in_trap_registers, InitialValue::WorkgroupIdY),
            (rsrc2.workgroup_id_z && !in_trap_registers, InitialValue::WorkgroupIdZ),
            (rsrc2.workgroup_info, InitialValue::WorkgroupInfo),
            (rsrc2.private_segment && !architected, InitialValue::ScratchOffset),
        ] {
            if enabled {
                next = put(value, next, 1);
            }
        }
        initial
    }
}
