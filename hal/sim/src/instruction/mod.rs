//! Instructions ready for execution: the operation, and its operands resolved to register storage.
//! Module `translate` creates them, `execute` runs them.

pub mod control;
mod element;
mod kind;
pub mod lane_move;
pub mod lds;
mod numerics;
mod op;
mod operation;
pub mod scalar_memory;
mod shared;
mod stretch;
pub mod sync;
pub mod tensor;
pub mod vector_memory;

pub use element::{Element, Half};
pub use kind::{Kind, ResultKind};
pub use numerics::{Accuracy, Denormals, Nans, Numerics, Rounding};
pub use op::{
    Adapt, Dual, Finish, Flow, Inner, NotExecuted, Op, Run, ScalarFunction, Source, SourceAdapt,
    TableRow, Word,
};
pub use operation::{ScalarOperation, VectorOperation};
pub use shared::Shared;
pub use stretch::Stretch;
pub(crate) use stretch::{StretchMap, Traits};
