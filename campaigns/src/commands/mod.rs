//! Commands on a campaign other than running it.

pub mod doctor;
pub mod dry_run;
pub mod emulate;
pub mod fidelity;
pub mod profile;
pub mod replay;
pub mod strict;
pub mod tool;
pub mod trace;
