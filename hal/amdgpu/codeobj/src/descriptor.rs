//! The kernel descriptor: register allocation and initial state of a kernel. Fields and positions
//! follow AMDGPUUsage, "Kernel Descriptor" and "compute_pgm_rsrc1" to 3.

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
    /// Static LDS of a workgroup, in bytes.
    pub group_segment_fixed_size: u32,
    /// Static scratch of a lane, in bytes.
    pub private_segment_fixed_size: u32,
    /// Size of the kernel arguments, in bytes.
    pub kernarg_size: u32,
    /// Address of the kernel's code. Waves may start at a later address: see [`Descriptor::start`].
    pub entry: Pc,
    /// `compute_pgm_rsrc1`.
    pub rsrc1: Rsrc1,
    /// `compute_pgm_rsrc2`.
    pub rsrc2: Rsrc2,
    /// `compute_pgm_rsrc3`.
    pub rsrc3: Rsrc3,
    /// `kernel_code_properties`.
    pub properties: CodeProperties,
    /// Kernel arguments preloaded into registers (gfx90a, gfx940, gfx1250).
    pub kernarg_preload: KernargPreload,
}

/// `compute_pgm_rsrc1`: register allocation and initial floating-point mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rsrc1 {
    /// Vector registers allocated, including AccVGPRs (gfx90a, gfx940).
    pub vgprs: u16,
    /// Scalar registers allocated, including VCC and the other special registers at the top; always
    /// 128 from gfx10 on.
    pub sgprs: u16,
    /// Wave priority.
    pub priority: u8,
    /// Initial rounding and denormal modes.
    pub float_mode: FloatMode,
    /// Waves start in privileged mode; set by firmware, must be clear in a descriptor.
    pub privileged: bool,
    /// Clamping converts NaN to zero (up to gfx11).
    pub dx10_clamp: bool,
    /// Waves start in debug mode; set by firmware.
    pub debug_mode: bool,
    /// Signaling NaNs are quieted (up to gfx11).
    pub ieee_mode: bool,
    /// At most one workgroup of the kernel per compute unit; must be clear.
    pub bulky: bool,
    /// Reserved for debuggers; must be clear.
    pub debugger_user: bool,
    /// 16-bit floating-point overflow clamps to the largest finite value (gfx9 and later).
    pub fp16_overflow: bool,
    /// Workgroups run on a work-group processor, not on a single compute unit (gfx10 and later).
    pub workgroup_processor_mode: bool,
    /// Memory operations return in order (gfx10 and later).
    pub memory_ordered: bool,
    /// The scheduler prefers the oldest wave (gfx10 and later).
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
    /// Decodes the low eight bits of the MODE register, whose layout `compute_pgm_rsrc1` shares.
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

/// Rounding mode ("Floating Point Rounding Mode Enumeration Values").
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

/// Denormal mode ("Floating Point Denorm Mode Enumeration Values").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Denormals {
    /// Flush sources and results to zero.
    FlushSourcesAndResults = 0,
    /// Flush results to zero.
    FlushResults = 1,
    /// Flush sources to zero.
    FlushSources = 2,
    /// Keep denormals.
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

/// `compute_pgm_rsrc2`: system registers and exceptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rsrc2 {
    /// Scratch is set up.
    pub private_segment: bool,
    /// Number of user SGPRs.
    pub user_sgprs: u8,
    /// Trap handler enabled; must be clear. Before gfx1250.
    pub trap_handler: bool,
    /// The workgroup ID in x is in a system SGPR.
    pub workgroup_id_x: bool,
    /// The workgroup ID in y is in a system SGPR.
    pub workgroup_id_y: bool,
    /// The workgroup ID in z is in a system SGPR.
    pub workgroup_id_z: bool,
    /// The workgroup information word is in a system SGPR.
    pub workgroup_info: bool,
    /// Work-item IDs in system VGPRs: 0 for x, 1 for x and y, 2 for x, y and z.
    pub vgpr_workitem_id: u8,
    /// LDS size; must be 0, because the dispatch packet has the size.
    pub granulated_lds_size: u16,
    /// Exceptions that trap.
    pub exceptions: Exceptions,
}

/// Exception enable bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exceptions {
    /// Address watch; set by firmware.
    pub address_watch: bool,
    /// Memory violation; set by firmware.
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

/// `compute_pgm_rsrc3`: fields that depend on the generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rsrc3 {
    /// gfx6 to gfx9, which have no fields.
    None,
    /// gfx90a and gfx940.
    Gfx90a {
        /// Index of the vector register that is AccVGPR 0: 4 to 256, a multiple of 4.
        accum_offset: u16,
        /// Waves of a workgroup may run on different compute units.
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
        /// The kernel has image operations (gfx11).
        image_operations: bool,
    },
    /// gfx1200 and gfx1201.
    Gfx12 {
        /// Instructions to prefetch, in units of 128 bytes.
        instruction_prefetch: u8,
        /// Group launch guarantee; must be clear.
        group_launch_guarantee: bool,
        /// The kernel has image operations.
        image_operations: bool,
    },
    /// gfx1250. Its other fields are not decoded; encoding preserves them.
    Gfx125 {
        /// Instructions to prefetch, in units of 128 bytes.
        instruction_prefetch: u8,
        /// Group launch guarantee; must be clear.
        group_launch_guarantee: bool,
        /// Named barriers of a workgroup, in units of 4.
        named_barriers: u8,
    },
}

/// `kernel_code_properties`: the values in user SGPRs, in register order, and execution properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeProperties {
    /// Buffer resource of the scratch memory: 4 registers.
    pub sgpr_private_segment_buffer: bool,
    /// Address of the dispatch packet: 2 registers.
    pub sgpr_dispatch_ptr: bool,
    /// Address of the queue: 2 registers.
    pub sgpr_queue_ptr: bool,
    /// Address of the kernarg segment: 2 registers.
    pub sgpr_kernarg_segment_ptr: bool,
    /// Dispatch ID: 2 registers.
    pub sgpr_dispatch_id: bool,
    /// Initial value of flat scratch: 2 registers.
    pub sgpr_flat_scratch_init: bool,
    /// Scratch size per lane, in bytes: 1 register.
    pub sgpr_private_segment_size: bool,
    /// Waves have 32 lanes (gfx10 and later); 64 otherwise.
    pub wavefront_size_32: bool,
    /// The stack may grow beyond the descriptor's private segment size.
    pub uses_dynamic_stack: bool,
}

/// Range of the kernarg segment that firmware copies to user SGPRs before waves start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernargPreload {
    /// Number of dwords; 0 for no preloading.
    pub length: u8,
    /// Offset of the first dword, in dwords.
    pub offset: u16,
}

impl KernargPreload {
    /// No preloading.
    pub const NONE: KernargPreload = KernargPreload { length: 0, offset: 0 };

    /// Size of the prologue at the kernel's entry that firmware with preloading skips, in bytes
    /// (AMDGPUUsage, "Preloaded Kernel Arguments").
    pub const ENTRY_SIZE: u64 = 256;

    /// Returns `true` if nothing is preloaded.
    pub fn is_none(self) -> bool {
        self.length == 0
    }

    /// Start of the preloaded range in the kernarg segment, in bytes.
    pub fn start_bytes(self) -> u64 {
        4 * u64::from(self.offset)
    }

    /// End of the preloaded range in the kernarg segment, in bytes; 0 without preloading.
    pub fn end_bytes(self) -> u64 {
        if self.is_none() { 0 } else { self.start_bytes() + 4 * u64::from(self.length) }
    }

    /// Returns `true` if processors of a generation can preload (LLVM's `FeatureKernargPreload`). On
    /// others the descriptor's field is reserved.
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
    /// Decodes the kernel descriptor at ELF virtual address `address`. Every bit pattern is valid;
    /// the entry is not checked.
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
            rsrc1: Rsrc1::decode(word(bytes, 48), generation, properties.wavefront_size()),
            rsrc2: Rsrc2::decode(word(bytes, 52), generation),
            rsrc3: Rsrc3::decode(word(bytes, 44), generation),
            properties,
            kernarg_preload: KernargPreload::decode(half(bytes, 58), generation),
        }
    }

    /// Address at which waves start: the entry or, with preloaded arguments, 256 bytes after it. The
    /// prologue in between loads the arguments on firmware that cannot preload, which starts waves at
    /// the entry (AMDGPUUsage, "Preloaded Kernel Arguments"). gfx1250 has no such firmware and no
    /// prologue (LLVM, `needsKernArgPreloadProlog`).
    pub fn start(&self) -> Pc {
        let has_prologue =
            !self.kernarg_preload.is_none() && !matches!(self.rsrc3, Rsrc3::Gfx125 { .. });
        let skipped = if has_prologue { KernargPreload::ENTRY_SIZE } else { 0 };
        Pc(self.entry.0.wrapping_add(skipped))
    }

    /// Index of the VGPR that is AccVGPR 0, if the kernel has AccVGPRs and they share the VGPR file
    /// (gfx90a, gfx940): VGPRs from this index on alias AccVGPRs.
    pub fn acc_vgpr_base(&self) -> Option<u16> {
        self.rsrc3.accum_offset().filter(|offset| *offset < self.rsrc1.vgprs)
    }

    /// Lanes of a wave: 32 or 64.
    pub fn wavefront_size(&self) -> u32 {
        self.properties.wavefront_size().into()
    }
}

impl Rsrc1 {
    fn decode(word: u32, generation: Generation, wavefront_size: u8) -> Rsrc1 {
        let gfx10 = generation >= Generation::Gfx10;
        let gfx12 = generation >= Generation::Gfx12;
        let bit = |position| field(word, position, 1) == 1;
        Rsrc1 {
            vgprs: (field(word, 0, 6) + 1) * vgpr_granule(generation, wavefront_size),
            sgprs: match sgpr_granule(generation) {
                // The field is in units of 8.
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

    /// Index of the vector register that is AccVGPR 0, on generations where it is configurable.
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

    /// These properties without values in user SGPRs.
    #[must_use]
    pub fn without_user_sgprs(self) -> CodeProperties {
        CodeProperties {
            sgpr_private_segment_buffer: false,
            sgpr_dispatch_ptr: false,
            sgpr_queue_ptr: false,
            sgpr_kernarg_segment_ptr: false,
            sgpr_dispatch_id: false,
            sgpr_flat_scratch_init: false,
            sgpr_private_segment_size: false,
            ..self
        }
    }

    fn wavefront_size(self) -> u8 {
        if self.wavefront_size_32 { 32 } else { 64 }
    }
}

/// Width of the user SGPR count, in bits. On gfx1250 the field includes the former trap handler bit
/// (AMDGPUUsage, "compute_pgm_rsrc2").
fn user_sgpr_bits(generation: Generation) -> u32 {
    if generation >= Generation::Gfx125 { 6 } else { 5 }
}

/// Allocation granule of vector registers.
fn vgpr_granule(generation: Generation, wavefront_size: u8) -> u16 {
    generation.vgpr_granule(wavefront_size).into()
}

/// Allocation granule of scalar registers; `None` on generations where every wave has all of them.
fn sgpr_granule(generation: Generation) -> Option<u16> {
    generation.sgpr_granule().map(u16::from)
}

/// Granule of the index of AccVGPR 0 ("ACCUM_OFFSET").
const ACCUM_GRANULE: u16 = 4;

/// Extracts `width` bits, at most 16, at bit `position`.
fn field(word: u32, position: u32, width: u32) -> u16 {
    (word >> position & ((1 << width) - 1)) as u16
}

// All callers pass constant offsets inside the descriptor, so the default is never used.
fn word(bytes: &[u8; DESCRIPTOR_SIZE], offset: usize) -> u32 {
    crate::bytes::array(bytes, offset).map_or(0, u32::from_le_bytes)
}

fn half(bytes: &[u8; DESCRIPTOR_SIZE], offset: usize) -> u16 {
    crate::bytes::array(bytes, offset).map_or(0, u16::from_le_bytes)
}
