//! Executes PTX on a simulated GPU.
//!
//! A wave has 32 lanes. Lanes that take different ways at a branch execute one after the other, and meet
//! again at the immediate post-dominator of the branch: one of the schedules that PTX permits. A program whose
//! lanes wait for each other inside a wave may hang. Workgroups are executed one after another, and the waves
//! of a workgroup in turns.
//!
//! Exact results are those of the manual. Approximations are the exact functions, rounded: within the error
//! that the manual states. Instructions that are not implemented are [gaps](Gap), reported before any lane has
//! executed a part of them: textures and surfaces, `wmma` and `tcgen05`, bulk and tensor copies, `alloca`, video
//! instructions, and forms with types below 8 bits or sparse matrices. The test `coverage` lists them.
//!
//! Choices where the manual leaves a result open:
//!
//! - Sums of `mma` and `wgmma` add products one after the other, in the type of the sum.
//! - Integer division by zero gives all ones, the remainder is the dividend.
//! - Clocks count the instructions of a wave. Each workgroup is a cluster of its own.
//! - Asynchronous copies and products are complete before the next instruction.
//! - A wave arrives at a barrier as a whole, whichever of its lanes execute the instruction.
//! - Registers and shared memory are zero until they are written.
//!
//! Several of these choices hide errors of programs. The [strict level](StrictCheck) reports them.

mod address;
mod compile;
mod compute;
mod device;
mod execute;
mod gap;
mod host_memory;
mod memory;
mod program;
mod strict;
mod wave;

pub use device::PtxGpu;
pub use gap::Gap;
pub use program::{Inserted, Program};
pub use strict::{PtxRule, PtxViolation, StrictCheck};
