//! Running dispatches: their start, the order in which waves execute, and their observers.

pub mod checker;
pub mod execution;
pub mod global_sync;
pub mod launch;
pub mod leads;
pub mod observer;
pub mod policy;
pub mod schedule;
pub mod slots;
pub mod spare;
pub(crate) mod stall;
pub mod turns;
mod watched;
pub mod wave_state;
mod workgroup;
pub mod workgroup_barrier;
