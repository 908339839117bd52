//! GPU simulator: executes AMDGPU machine code, functionally exact and deterministic.
//!
//! Code objects are loaded unchanged. Instructions are decoded once, when they are first reached,
//! and executed on whole waves; the tables of `operations` and `scalar` define the semantics of one
//! lane. A program produces the same bits on every host.

#![allow(clippy::needless_range_loop, reason = "a lane is an index into several rows at once")]

mod compile;
mod counts;
mod device;
mod dispatch;
mod execute;
mod fault;
mod fidelity;
mod instruction;
mod machine;
mod memory;
mod module;
mod shadow;
pub mod strict;
mod translate;
mod wave;

#[cfg(test)]
mod tests;

pub use counts::Counter;
pub use device::{EmbeddedGpu, StrictCheck, SurveyCheck, Unsupported};
pub use dispatch::execution::{Execution, StallReport};
pub use dispatch::leads::Leads;
pub use dispatch::observer::{Executed, Interest, Observer, StretchObserver, Unobserved};
pub use dispatch::policy::Policy;
pub use dispatch::wave_state::WaveState;
pub use execute::address_rules;
pub use execute::buffer::rules as buffer_rules;
pub use execute::lane::small_float::SmallFloat;
pub use execute::lane::{Accuracy, Denormals, Nans, Numerics, Rounding};
pub use execute::matrix_sum::SummedElement;
pub use execute::operations::{matrix_shape, numerics};
pub use fidelity::FidelityCheck;
pub use flipwave_arch::{MatrixElement, ProductShape, SumPart, SumType};
pub use flipwave_jit::{Compiling, EnvironmentError, check_environment};
pub use flipwave_machine::{
    ByteSet, FaultDetail, Footprint, FootprintUnion, Footprints, InstructionCount, Progress,
    Stalls, Watch, WaveCounts, WrittenByte,
};
pub use instruction::{NotExecuted, Stretch};
pub use machine::{Amdgpu, MachineObserver, OriginalCode, OriginalView};
pub use memory::AddressSpace;
pub use shadow::Purpose;
pub use translate::coverage::{Treatment, source, treatment};
