//! What is in the scalar registers when a wave starts.

use crate::Descriptor;
use flipwave_isa::{FlatScratch, Sgpr, Target};

/// A value that hardware and firmware put into scalar registers before a wave's first
/// instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InitialValue {
    /// Buffer resource of the scratch.
    PrivateSegmentBuffer,
    /// Address of the dispatch packet.
    DispatchPointer,
    /// Address of the queue.
    QueuePointer,
    /// Address of the arguments.
    KernargPointer,
    /// Identity of the dispatch.
    DispatchId,
    /// Start value of flat scratch.
    FlatScratchInit,
    /// Scratch size of a lane in bytes.
    PrivateSegmentSize,
    /// Arguments that are preloaded.
    Arguments,
    /// The workgroup's index in x.
    WorkgroupIdX,
    /// The workgroup's index in y.
    WorkgroupIdY,
    /// The workgroup's index in z.
    WorkgroupIdZ,
    /// The workgroup information word.
    WorkgroupInfo,
    /// Offset of the wave's scratch.
    ScratchOffset,
}

impl InitialValue {
    /// Registers it takes; `None` for [`InitialValue::Arguments`], as many as the descriptor says.
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

/// A value and its registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Initial {
    /// What.
    pub value: InitialValue,
    /// Its first register.
    pub first: Sgpr,
    /// How many registers it takes.
    pub words: u8,
}

impl Descriptor {
    /// The values in scalar registers at the start, by register (AMDGPUUsage, "SGPR Register Set
    /// Up Order"): user registers, then system registers after all of them. Between the two there
    /// may be user registers for nothing. From gfx12 on no general register has the workgroup's
    /// position: trap registers do.
    pub fn initial_sgprs(&self, target: &Target) -> Vec<Initial> {
        let properties = &self.properties;
        let rsrc2 = &self.rsrc2;
        let mut initial = Vec::new();
        let mut put = |value: InitialValue, first: u8, words: u8| {
            initial.push(Initial { value, first: Sgpr(first), words });
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
        // From gfx12 on trap registers have the workgroup's position.
        let in_trap_registers = target.has_architected_sgprs();
        // Else the hardware has added the offset (AMDGPUUsage, "Flat Scratch").
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
