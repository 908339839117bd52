//! One hook at one site: its registers, what is saved and given back around it, its arguments and
//! results.

mod dialect;
mod indexed;
mod pool;
mod weave;

pub use dialect::Dialect;
pub use pool::{Lanes, Pool};
pub use weave::{Call, Home, Homes, Refusal, Site, Weaver, Word, Woven, asked};
