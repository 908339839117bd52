//! The kernel descriptor: what the hardware is given when a kernel starts. Fields and their
//! positions are those of AMDGPUUsage, "Kernel Descriptor" and "compute_pgm_rsrc1" to 3.

mod encode;

pub use encode::FieldError;
use flipwave_isa::{Generation, Pc};

/// Size of a kernel descriptor in bytes.
pub const DESCRIPTOR_SIZE: usize = 64;

/// A decoded kernel descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// ELF virtual address of the descriptor.
    pub address: u64,
    /// LDS a workgroup always needs, in bytes.
    pub group_segment_fixed_size: u32,
    /// Scratch a lane always needs, in bytes.
    pub private_segment_fixed_size: u32,
    /// Size of the kernel arguments in bytes.
    pub kernarg_size: u32,
    /// Where the kernel's code lies. Waves begin there, or further on: see [`Descriptor::start`].
    pub entry: Pc,
    /// `compute_pgm_rsrc1`.
    pub rsrc1: Rsrc1,
    /// `compute_pgm_rsrc2`.
    pub rsrc2: Rsrc2,
    /// `compute_pgm_rsrc3`.
    pub rsrc3: Rsrc3,
    /// `kernel_code_properties`.
    pub properties: CodeProperties,
    /// Arguments that are in registers when the kernel starts (gfx90a, gfx940).
    pub kernarg_preload: KernargPreload,
}

/// Register allocation and floating-point state at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rsrc1 {
    /// Vector registers allocated, AccVGPRs included (gfx90a, gfx940).
    pub vgprs: u16,
    /// Scalar registers allocated, VCC and its like at their top included; always 128 from
    /// gfx10 on.
    pub sgprs: u16,
    /// Wave priority.
    pub priority: u8,
    /// Rounding and denormals.
    pub float_mode: FloatMode,
    /// Starts in privileged mode; firmware sets it, a descriptor must not.
    pub privileged: bool,
    /// Clamping turns NaN into zero (up to gfx11).
    pub dx10_clamp: bool,
    /// Starts in debug mode; firmware sets it.
    pub debug_mode: bool,
    /// Signalling NaNs are quieted (up to gfx11).
    pub ieee_mode: bool,
    /// Only one workgroup of a kind per compute unit; must be clear.
    pub bulky: bool,
    /// Debugger's own bit; must be clear.
    pub debugger_user: bool,
    /// 16-bit floating-point overflow clamps to the largest value (gfx9 and later).
    pub fp16_overflow: bool,
    /// Workgroups run on a work-group processor, not on one compute unit (gfx10 and later).
    pub workgroup_processor_mode: bool,
    /// Memory operations return in order (gfx10 and later).
    pub memory_ordered: bool,
    /// The oldest wave is preferred (gfx10 and later).
    pub forward_progress: bool,
    /// Waves of a workgroup are scheduled round-robin (gfx12).
    pub round_robin: bool,
    /// Performance counters do not count this kernel (gfx12).
    pub disable_performance_counters: bool,
}

/// Rounding and denormal modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloatMode {
    /// Rounding of 32-bit results.
    pub round_32: Rounding,
    /// Rounding of 16-bit and 64-bit results.
    pub round_16_64: Rounding,
    /// 32-bit denormals.
    pub denormals_32: Denormals,
    /// 16-bit and 64-bit denormals.
    pub denormals_16_64: Denormals,
}

impl FloatMode {
    /// Decodes the low eight bits of the MODE register, which `compute_pgm_rsrc1` has too.
    pub fn from_mode(bits: u8) -> FloatMode {
        FloatMode {
            round_32: Rounding::from_bits(bits),
            round_16_64: Rounding::from_bits(bits >> 2),
            denormals_32: Denormals::from_bits(bits >> 4),
            denormals_16_64: Denormals::from_bits(bits >> 6),
        }
    }

    /// The low eight bits of the MODE register.
    pub fn mode(self) -> u8 {
        self.round_32 as u8
            | (self.round_16_64 as u8) << 2
            | (self.denormals_32 as u8) << 4
            | (self.denormals_16_64 as u8) << 6
    }
}

/// "Floating Point Rounding Mode Enumeration Values".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// Ties to even.
    NearestEven = 0,
    /// Towards plus infinity.
    PlusInfinity = 1,
    /// Towards minus infinity.
    MinusInfinity = 2,
    /// Towards zero.
    Zero = 3,
}

impl Rounding {
    fn from_bits(bits: u8) -> Rounding {
        match bits & 3 {
            0 => Rounding::NearestEven,
            1 => Rounding::PlusInfinity,
            2 => Rounding::MinusInfinity,
            _ => Rounding::Zero,
        }
    }
}

/// "Floating Point Denorm Mode Enumeration Values".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Denormals {
    /// Sources and results become zero.
    FlushSourcesAndResults = 0,
    /// Results become zero.
    FlushResults = 1,
    /// Sources become zero.
    FlushSources = 2,
    /// Kept.
    Keep = 3,
}

impl Denormals {
    fn from_bits(bits: u8) -> Denormals {
        match bits & 3 {
            0 => Denormals::FlushSourcesAndResults,
            1 => Denormals::FlushResults,
            2 => Denormals::FlushSources,
            _ => Denormals::Keep,
        }
    }
}

/// What is set up in registers besides the user SGPRs, and exceptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rsrc2 {
    /// Scratch is set up.
    pub private_segment: bool,
    /// Scalar registers set up before those of the workgroup.
    pub user_sgprs: u8,
    /// A trap handler is wanted; must be clear. Before gfx1250.
    pub trap_handler: bool,
    /// The workgroup's index in x is in a scalar register.
    pub workgroup_id_x: bool,
    /// The workgroup's index in y is in a scalar register.
    pub workgroup_id_y: bool,
    /// The workgroup's index in z is in a scalar register.
    pub workgroup_id_z: bool,
    /// The workgroup information word is in a scalar register.
    pub workgroup_info: bool,
    /// Dimensions of the work-item's index that are in vector registers: 0 x, 1 x and y, 2 all.
    pub vgpr_workitem_id: u8,
    /// LDS that firmware allocates; must be 0, the dispatch packet says how much.
    pub granulated_lds_size: u16,
    /// Exceptions that are enabled.
    pub exceptions: Exceptions,
}

/// Exceptions that trap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exceptions {
    /// An address that is watched; firmware sets it.
    pub address_watch: bool,
    /// Memory violation; firmware sets it.
    pub memory: bool,
    /// Floating-point invalid operation.
    pub invalid_operation: bool,
    /// Floating-point denormal source.
    pub denormal_source: bool,
    /// Floating-point division by zero.
    pub division_by_zero: bool,
    /// Floating-point overflow.
    pub overflow: bool,
    /// Floating-point underflow.
    pub underflow: bool,
    /// Floating-point inexact result.
    pub inexact: bool,
    /// Integer division by zero.
    pub integer_division_by_zero: bool,
}

/// What only some generations have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rsrc3 {
    /// gfx6 to gfx9 have nothing there.
    None,
    /// gfx90a and gfx940.
    Gfx90a {
        /// Number of the vector register that AccVGPR 0 is: 4 to 256, a multiple of 4.
        accum_offset: u16,
        /// Waves of a workgroup may be on different compute units.
        threadgroup_split: bool,
    },
    /// gfx10 and gfx11.
    Gfx10 {
        /// Vector registers shared by the halves of a wave64, in granules of 8.
        shared_vgprs: u8,
        /// Instructions to prefetch, in units of 128 bytes (gfx11).
        instruction_prefetch: u8,
        /// Traps at the start (gfx11); must be clear.
        trap_on_start: bool,
        /// Traps at the end (gfx11); must be clear.
        trap_on_end: bool,
        /// Has image operations (gfx11).
        image_operations: bool,
    },
    /// gfx1200 and gfx1201.
    Gfx12 {
        /// Instructions to prefetch, in units of 128 bytes.
        instruction_prefetch: u8,
        /// Group launch guarantee; must be clear.
        group_launch_guarantee: bool,
        /// Has image operations.
        image_operations: bool,
    },
    /// gfx1250, which has more fields, that are kept.
    Gfx125 {
        /// Instructions to prefetch, in units of 128 bytes.
        instruction_prefetch: u8,
        /// Group launch guarantee; must be clear.
        group_launch_guarantee: bool,
        /// Named barriers of a workgroup, in fours.
        named_barriers: u8,
    },
}

/// Which values are in the user SGPRs, in this order, and how the code runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeProperties {
    /// Buffer resource of the scratch: 4 registers.
    pub sgpr_private_segment_buffer: bool,
    /// Address of the dispatch packet: 2 registers.
    pub sgpr_dispatch_ptr: bool,
    /// Address of the queue: 2 registers.
    pub sgpr_queue_ptr: bool,
    /// Address of the arguments: 2 registers.
    pub sgpr_kernarg_segment_ptr: bool,
    /// Identity of the dispatch: 2 registers.
    pub sgpr_dispatch_id: bool,
    /// Start value of flat scratch: 2 registers.
    pub sgpr_flat_scratch_init: bool,
    /// Scratch size of a lane in bytes: 1 register.
    pub sgpr_private_segment_size: bool,
    /// Waves have 32 lanes (gfx10 and later); 64 otherwise.
    pub wavefront_size_32: bool,
    /// The stack grows beyond what the descriptor states.
    pub uses_dynamic_stack: bool,
}

/// Arguments copied into user SGPRs before the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernargPreload {
    /// How many dwords; 0 for no preloading.
    pub length: u8,
    /// From which dword of the arguments on.
    pub offset: u16,
}

impl KernargPreload {
    /// No preloading.
    pub const NONE: KernargPreload = KernargPreload { length: 0, offset: 0 };

    /// Firmware that preloads skips this many bytes at the kernel's entry (AMDGPUUsage, "Preloaded
    /// Kernel Arguments").
    pub const ENTRY_SIZE: u64 = 256;

    /// Whether there is no preloading.
    pub fn is_none(self) -> bool {
        self.length == 0
    }

    /// Where in the arguments the dwords begin, in bytes.
    pub fn start_bytes(self) -> u64 {
        4 * u64::from(self.offset)
    }

    /// Where they end; 0 where there are none.
    pub fn end_bytes(self) -> u64 {
        if self.is_none() { 0 } else { self.start_bytes() + 4 * u64::from(self.length) }
    }

    /// Whether processors of a generation can preload (LLVM's `FeatureKernargPreload`). Elsewhere
    /// the descriptor's field is reserved.
    fn exists(generation: Generation) -> bool {
        matches!(generation, Generation::Gfx90a | Generation::Gfx940 | Generation::Gfx125)
    }

    fn decode(half: u16, generation: Generation) -> KernargPreload {
        if !KernargPreload::exists(generation) {
            return KernargPreload::NONE;
        }
        KernargPreload { length: (half & 0x7f) as u8, offset: half >> 7 }
    }
}

impl Descriptor {
    /// Decodes the descriptor of a kernel at ELF virtual address `address`. Every bit pattern
    /// means something; whether the entry is code is another question.
    pub fn decode(
        bytes: &[u8; DESCRIPTOR_SIZE],
        address: u64,
        generation: Generation,
    ) -> Descriptor {
        let properties = CodeProperties::decode(half(bytes, 56));
        Descriptor {
            address,
            group_segment_fixed_size: word(bytes, 0),
            private_segment_fixed_size: word(bytes, 4),
            kernarg_size: word(bytes, 8),
            entry: Pc(
                address.wrapping_add(u64::from(word(bytes, 16)) | u64::from(word(bytes, 20)) << 32)
            ),
            rsrc1: Rsrc1::decode(word(bytes, 48), generation, properties.wavefront_size_32),
            rsrc2: Rsrc2::decode(word(bytes, 52), generation),
            rsrc3: Rsrc3::decode(word(bytes, 44), generation),
            properties,
            kernarg_preload: KernargPreload::decode(half(bytes, 58), generation),
        }
    }

    /// Where waves begin: at the entry or, where arguments are preloaded, 256 bytes after it. What
    /// stands between the two is for firmware that cannot preload: it begins at the entry
    /// (AMDGPUUsage, "Preloaded Kernel Arguments"). For gfx1250 there is no such firmware (LLVM,
    /// `needsKernArgPreloadProlog`).
    pub fn start(&self) -> Pc {
        let has_prologue =
            !self.kernarg_preload.is_none() && !matches!(self.rsrc3, Rsrc3::Gfx125 { .. });
        let skipped = if has_prologue { KernargPreload::ENTRY_SIZE } else { 0 };
        Pc(self.entry.0.wrapping_add(skipped))
    }

    /// Where AccVGPRs begin in the file of VGPRs, if the kernel has any and they share it (gfx90a,
    /// gfx940): VGPRs from there on are AccVGPRs under another name.
    pub fn shared_vgprs_from(&self) -> Option<u16> {
        self.rsrc3.accum_offset().filter(|offset| *offset < self.rsrc1.vgprs)
    }

    /// Lanes of a wave: 32 or 64.
    pub fn wavefront_size(&self) -> u32 {
        if self.properties.wavefront_size_32 { 32 } else { 64 }
    }
}

impl Rsrc1 {
    fn decode(word: u32, generation: Generation, wave32: bool) -> Rsrc1 {
        let gfx10 = generation >= Generation::Gfx10;
        let gfx12 = generation >= Generation::Gfx12;
        let bit = |position| field(word, position, 1) == 1;
        Rsrc1 {
            vgprs: (field(word, 0, 6) + 1) * vgpr_granule(generation, wave32),
            sgprs: match sgpr_granule(generation) {
                // The field counts in eights.
                Some(granule) => ((field(word, 6, 4) + 1) * 8).next_multiple_of(granule),
                None => 128,
            },
            priority: field(word, 10, 2) as u8,
            float_mode: FloatMode::from_mode(field(word, 12, 8) as u8),
            privileged: bit(20),
            dx10_clamp: !gfx12 && bit(21),
            debug_mode: bit(22),
            ieee_mode: !gfx12 && bit(23),
            bulky: bit(24),
            debugger_user: bit(25),
            fp16_overflow: generation >= Generation::Gfx9 && bit(26),
            workgroup_processor_mode: gfx10 && bit(29),
            memory_ordered: gfx10 && bit(30),
            forward_progress: gfx10 && bit(31),
            round_robin: gfx12 && bit(21),
            disable_performance_counters: gfx12 && bit(23),
        }
    }
}

impl Rsrc2 {
    fn decode(word: u32, generation: Generation) -> Rsrc2 {
        let user_sgpr_bits = user_sgpr_bits(generation);
        let bit = |position| field(word, position, 1) == 1;
        Rsrc2 {
            private_segment: bit(0),
            user_sgprs: field(word, 1, user_sgpr_bits) as u8,
            trap_handler: user_sgpr_bits == 5 && bit(6),
            workgroup_id_x: bit(7),
            workgroup_id_y: bit(8),
            workgroup_id_z: bit(9),
            workgroup_info: bit(10),
            vgpr_workitem_id: field(word, 11, 2) as u8,
            granulated_lds_size: field(word, 15, 9),
            exceptions: Exceptions {
                address_watch: bit(13),
                memory: bit(14),
                invalid_operation: bit(24),
                denormal_source: bit(25),
                division_by_zero: bit(26),
                overflow: bit(27),
                underflow: bit(28),
                inexact: bit(29),
                integer_division_by_zero: bit(30),
            },
        }
    }
}

impl Rsrc3 {
    fn decode(word: u32, generation: Generation) -> Rsrc3 {
        let gfx11 = generation >= Generation::Gfx11;
        let bit = |position| field(word, position, 1) == 1;
        match generation {
            Generation::Gfx6 | Generation::Gfx7 | Generation::Gfx8 | Generation::Gfx9 => {
                Rsrc3::None
            }
            Generation::Gfx90a | Generation::Gfx940 => Rsrc3::Gfx90a {
                accum_offset: (field(word, 0, 6) + 1) * ACCUM_GRANULE,
                threadgroup_split: bit(16),
            },
            Generation::Gfx10 | Generation::Gfx11 => Rsrc3::Gfx10 {
                shared_vgprs: field(word, 0, 4) as u8,
                instruction_prefetch: if gfx11 { field(word, 4, 6) as u8 } else { 0 },
                trap_on_start: gfx11 && bit(10),
                trap_on_end: gfx11 && bit(11),
                image_operations: gfx11 && bit(31),
            },
            Generation::Gfx12 => Rsrc3::Gfx12 {
                instruction_prefetch: field(word, 4, 8) as u8,
                group_launch_guarantee: bit(13),
                image_operations: bit(31),
            },
            Generation::Gfx125 => Rsrc3::Gfx125 {
                instruction_prefetch: field(word, 4, 8) as u8,
                group_launch_guarantee: bit(13),
                named_barriers: field(word, 14, 3) as u8,
            },
        }
    }

    /// Number of the vector register that AccVGPR 0 is, where that is a choice.
    pub fn accum_offset(&self) -> Option<u16> {
        match self {
            Rsrc3::Gfx90a { accum_offset, .. } => Some(*accum_offset),
            _ => None,
        }
    }
}

impl CodeProperties {
    fn decode(half: u16) -> CodeProperties {
        let bit = |position| field(half.into(), position, 1) == 1;
        CodeProperties {
            sgpr_private_segment_buffer: bit(0),
            sgpr_dispatch_ptr: bit(1),
            sgpr_queue_ptr: bit(2),
            sgpr_kernarg_segment_ptr: bit(3),
            sgpr_dispatch_id: bit(4),
            sgpr_flat_scratch_init: bit(5),
            sgpr_private_segment_size: bit(6),
            wavefront_size_32: bit(10),
            uses_dynamic_stack: bit(11),
        }
    }
}

/// Bits of the number of user SGPRs: on gfx1250 one more, which was that of the trap handler
/// (AMDGPUUsage, "compute_pgm_rsrc2").
fn user_sgpr_bits(generation: Generation) -> u32 {
    if generation >= Generation::Gfx125 { 6 } else { 5 }
}

/// Vector registers are allocated in multiples of this.
fn vgpr_granule(generation: Generation, wave32: bool) -> u16 {
    generation.vgpr_granule(if wave32 { 32 } else { 64 }).into()
}

/// Scalar registers are allocated in multiples of this; nothing where every wave has all of them.
fn sgpr_granule(generation: Generation) -> Option<u16> {
    generation.sgpr_granule().map(u16::from)
}

/// AccVGPR 0 is at a multiple of this ("ACCUM_OFFSET").
const ACCUM_GRANULE: u16 = 4;

/// `width` bits from `position` on; at most 16.
fn field(word: u32, position: u32, width: u32) -> u16 {
    (word >> position & ((1 << width) - 1)) as u16
}

// The offsets are constants inside the descriptor, so the default is never taken.
fn word(bytes: &[u8; DESCRIPTOR_SIZE], offset: usize) -> u32 {
    crate::bytes::array(bytes, offset).map_or(0, u32::from_le_bytes)
}

fn half(bytes: &[u8; DESCRIPTOR_SIZE], offset: usize) -> u16 {
    crate::bytes::array(bytes, offset).map_or(0, u16::from_le_bytes)
}
