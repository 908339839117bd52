//! Code of one hook call at one program point: register allocation, saves and restores, arguments and
//! results.

mod call;
pub mod dialect;
mod emission;
mod indexed;
mod plan;
mod point;
mod pool;
mod reserved;
mod value;

pub use call::{CallCode, CallGenerator, accessed_registers};
pub use point::{InsertionPoint, SiteCall};
pub use reserved::{ReservedRegisters, ReservedValue, ReservedWord};
