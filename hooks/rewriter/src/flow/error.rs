//! Why a code object's code cannot be read.

use flipwave_isa::{IsaError, Pc};

/// Why a code object's code cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FlowError {
    /// The target's code cannot be decoded.
    #[error(transparent)]
    Isa(#[from] IsaError),
    /// Kernels for waves of different sizes share the code.
    #[error(
        "kernel `{first}` has waves of {first_size} lanes and kernel `{second}` of {second_size}; \
         expected one wave size in a code object: compile them apart"
    )]
    WaveSizes {
        /// A kernel.
        first: String,
        /// Lanes of its waves.
        first_size: u32,
        /// Another kernel.
        second: String,
        /// Lanes of its waves.
        second_size: u32,
    },
    /// A kernel that begins with no instruction.
    #[error("kernel `{kernel}` begins at {start} with bytes that are no instruction of {target}")]
    NoInstruction {
        /// The kernel.
        kernel: String,
        /// Where waves begin.
        start: Pc,
        /// The target.
        target: String,
    },
    /// Code that two kernels share names VGPRs that are AccVGPRs in one of them.
    #[error(
        "{pc}: kernel `{second}` comes here, which names VGPRs from v{offset} on; in kernel \
         `{first}` those are AccVGPRs and code names them so, too: expected the same \
         accum_offset in both, or kernels in code objects of their own"
    )]
    SharedVgprs {
        /// The kernel whose code names AccVGPRs as VGPRs.
        first: String,
        /// Where its AccVGPRs begin.
        offset: u16,
        /// A kernel where they begin elsewhere.
        second: String,
        /// An instruction of that.
        pc: Pc,
    },
    /// More code than indices can count.
    #[error("the code has more than {limit} instructions")]
    TooLarge {
        /// The most that are read.
        limit: u32,
    },
}

/// A target whose code may not be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "code for {target} with waves of {wave_size} lanes can be read, and not be changed: not all its \
     wait counters and manual hazards are known here, and nothing could be proven of new code; \
     expected a target of gfx9 to gfx12, and not of gfx12.5"
)]
pub struct NoRules {
    /// The target.
    pub target: String,
    /// Lanes of the waves.
    pub wave_size: u8,
}
