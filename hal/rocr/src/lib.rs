//! AMD's runtime, ROCr, from both sides: [`RocrDevice`] runs kernels through the runtime as any
//! program does; [`tools`] runs inside an application and intercepts its code objects and dispatches.
//!
//! The GPU below the runtime may be hardware or the embedded GPU.

mod device;
mod error;
mod fault;
pub mod tools;

pub use device::{OpenError, RocrDevice};
pub use error::HsaError;
