//! Values of one lane: their layout in rows of words, floating-point formats, rounding, and writing
//! of results.

pub mod binary16;
mod float;
mod result;
pub mod rounding;
pub mod small_float;
mod value;

pub use crate::instruction::{Accuracy, Denormals, Kind, Nans, Numerics, ResultKind, Rounding};
pub use float::{Float, settle};
pub use result::{LaneResult, PerLane};
pub use value::{Arguments, HighHalf, LaneValue, LowHalf, Mixed, MixedBrain, Pair, SourceRows};
