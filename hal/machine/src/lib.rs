//! Simulated GPUs of any instruction set: running dispatches, observers of waves, footprints of
//! workgroups.
//!
//! Fault injection runs programs on a [`Machine`]. A machine executes the code of one instruction set;
//! what its observers see is described in the terms of `flipwave_arch`.

mod byte_set;
mod check;
mod counts;
mod exactness;
mod execution;
mod fault_detail;
mod fidelity;
mod footprint;
mod machine;
mod observer;
mod stalls;
mod wave;

pub use byte_set::{ByteSet, ByteSetBuilder, LINE, Line, bits_of, line_of, lines_of};
pub use check::{FidelityCheck, OutsideSegment, Segment, Survey};
pub use counts::{Counts, InstructionCount, WaveCounts};
pub use exactness::{Exactness, NoExactness};
pub use execution::{DispatchState, Execution, Limited, Progress};
pub use fault_detail::FaultDetail;
pub use fidelity::{Doubt, DoubtfulDecision, Fidelity, OperationFidelity};
pub use footprint::{Footprint, FootprintBuilder, FootprintUnion, Footprints};
pub use machine::{Machine, Simulator};
pub use observer::{
    Executed, Interest, Observer, Stretch, StretchObserver, StretchPart, Unobserved, Watch,
};
pub use stalls::Stalls;
pub use wave::{SummedElement, WaveState, WrittenByte};
