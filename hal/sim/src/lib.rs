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
mod environment;
mod execute;
mod fidelity;
mod instruction;
mod memory;
mod shadow;
pub mod strict;
mod translate;
mod wave;

#[cfg(test)]
mod tests;

pub use counts::{Counter, InstructionCount, WaveCounts};
pub use device::{EmbeddedGpu, StrictCheck, SurveyCheck, Unsupported};
pub use dispatch::execution::{Execution, Progress, StallReport};
pub use dispatch::leads::Leads;
pub use dispatch::observer::{Executed, Interest, Observer, StretchObserver, Unobserved, Watch};
pub use dispatch::policy::{Compiling, Policy, Stalls};
pub use dispatch::wave_state::WaveState;
pub use environment::{EnvironmentError, check_environment};
pub use execute::address_rules;
pub use execute::buffer::rules as buffer_rules;
pub use execute::lane::small_float::SmallFloat;
pub use execute::lane::{Accuracy, Denormals, Nans, Numerics, Rounding};
pub use execute::matrix_sum::{MatrixElement, ProductShape, SumPart, SumType, SummedElement};
pub use execute::operations::{matrix_shape, numerics};
pub use fidelity::{Doubt, DoubtfulDecision, Fidelity, FidelityCheck, OperationFidelity};
pub use instruction::{NotExecuted, Stretch};
pub use memory::{AddressSpace, ByteSet, Footprint, FootprintUnion, Footprints, WrittenByte};
pub use shadow::Purpose;
pub use translate::coverage::{Treatment, source, treatment};
