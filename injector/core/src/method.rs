//! Parts of an injection that do not depend on its method, for methods other than the observer of this
//! crate.

pub use crate::fault_space::{Resources, Words, result_word, words};
pub use crate::inject::run::{check, conclude, run};
