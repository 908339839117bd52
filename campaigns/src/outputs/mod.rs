//! Outputs of a faulty run, compared with those of the golden run.

pub mod compare;
pub mod compared;
pub mod extents;
