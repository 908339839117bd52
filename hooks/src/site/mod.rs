//! One hook at one site: its registers, what is saved and given back around it, its arguments and
//! results.

pub mod dialect;
mod emission;
mod homes;
mod indexed;
mod plan;
mod pool;
mod value;
mod weave;

pub use homes::{Home, Homes, Word};
pub use pool::{Lanes, Pool};
pub use weave::{Call, Refusal, Site, Weaver, Woven, asked};
