//! Errors of control-flow analysis.

use flipwave_isa::{IsaError, Pc};

/// Errors returned when analyzing the code of a code object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FlowError {
    /// The target's code cannot be decoded.
    #[error(transparent)]
    Isa(#[from] IsaError),
    /// The code object's kernels have different wave sizes.
    #[error(
        "different wave sizes in one code object: {first_size} lanes in kernel `{first}`, \
         {second_size} in kernel `{second}`; compile them to separate code objects"
    )]
    WaveSizes {
        /// A kernel.
        first: String,
        /// The wave size of the first kernel.
        first_size: u32,
        /// Another kernel.
        second: String,
        /// The wave size of the second kernel.
        second_size: u32,
    },
    /// The bytes at a kernel's start are not an instruction.
    #[error("invalid {target} instruction at {start}, the start of kernel `{kernel}`")]
    NoInstruction {
        /// The kernel.
        kernel: String,
        /// Address at which waves start.
        start: Pc,
        /// The target.
        target: String,
    },
    /// Kernels disagree on which VGPRs are AccVGPRs.
    #[error(
        "conflicting accum_offset: v{offset} and higher VGPRs are AccVGPRs in kernel `{first}`, but \
         not in kernel `{second}`, which uses one at {pc}; use the same accum_offset, or separate \
         code objects"
    )]
    ConflictingAccumOffsets {
        /// A kernel whose code names AccVGPRs as VGPRs.
        first: String,
        /// The number of the first VGPR that is an AccVGPR in that kernel.
        offset: u16,
        /// A kernel with another accum_offset.
        second: String,
        /// An instruction of the second kernel that names such a VGPR.
        pc: Pc,
    },
    /// The code is too large for 32-bit indices.
    #[error("more than {limit} instructions in a code object")]
    TooLarge {
        /// The maximum.
        limit: u32,
    },
}

/// Error returned when rewriting code for a target whose rules are not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot rewrite code for {target} with waves of {wave_size} lanes: its wait counters and manual \
     hazards are not completely known; supported are gfx9 to gfx12, except gfx12.5"
)]
pub struct NoRules {
    /// The target.
    pub target: String,
    /// Number of lanes of a wave.
    pub wave_size: u8,
}
