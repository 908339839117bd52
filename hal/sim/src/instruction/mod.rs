//! An instruction made ready for execution: the operation and its operands as places in the
//! register file. What makes it is `translate`, what runs it is `execute`.

pub mod control;
mod element;
pub mod lane_move;
pub mod lds;
mod op;
pub mod scalar_memory;
mod shared;
mod stretch;
pub mod sync;
pub mod tensor;
pub mod vector_memory;

pub use element::{Element, Half};
pub use op::{
    Adapt, Dual, Finish, Flow, Inner, NotExecuted, Op, Run, ScalarFunction, Source, SourceAdapt,
    VectorFunction, Word,
};
pub use shared::Shared;
pub use stretch::Stretch;
pub(crate) use stretch::{StretchMap, Traits};
