//! Execution of single instructions.

mod access;
mod calls;
mod memory;
mod reach;
mod special;
mod step;
mod warpgroup;

pub(crate) use calls::MOST_LOCAL_BYTES;
pub(crate) use memory::record;
pub(crate) use reach::{Reach, Rows};
pub(crate) use special::Launch;
pub(crate) use step::Effect;
