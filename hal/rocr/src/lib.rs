//! AMD's runtime, ROCr, from both sides: [`RocrDevice`] runs kernels through it as any program
//! does; [`tools`] sits inside of an application and sees its code objects and dispatches.
//!
//! Whether a GPU of silicon is below the runtime or the embedded one makes no difference here.

mod device;
mod error;
mod fault;
pub mod tools;

pub use device::{OpenError, RocrDevice};
pub use error::HsaError;
