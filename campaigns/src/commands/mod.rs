//! Commands on campaigns, except for running them.

pub mod doctor;
pub mod dry_run;
pub mod emulate;
pub mod fidelity;
pub mod profile;
pub mod replay;
pub mod strict;
pub mod tool;
pub mod trace;
