//! One hook at one site: its registers, what is saved and given back around it, its arguments and
//! results.

mod call;
pub mod dialect;
mod emission;
mod homes;
mod indexed;
mod plan;
mod point;
mod pool;
mod value;

pub use call::{CallCode, CallGenerator, asked};
pub use homes::{Home, HomeWord, Homes};
pub use point::{InsertionPoint, SiteCall};
