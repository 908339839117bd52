//! What one lane computes with: values as they lie in rows of words, floating-point formats, and
//! how results are rounded and written.

pub mod binary16;
pub mod brain;
mod float;
mod numerics;
pub mod ocp8;
mod result;
pub mod rounding;
mod value;

pub use float::{Float, settle};
pub use numerics::{Accuracy, Denormals, Nans, Numerics, Rounding};
pub use result::{LaneResult, PerLane, ResultKind};
pub use value::{Arguments, HighHalf, Kind, LaneValue, LowHalf, Mixed, Pair, SourceRows};
