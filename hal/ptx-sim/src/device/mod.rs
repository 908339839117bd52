//! The device: loaded modules, dispatches, and the interface of simulated GPUs.

mod barrier;
mod fidelity;
mod gpu;
mod machine;
mod run;
mod running;
mod stretch;
mod survey;

pub use gpu::PtxGpu;
