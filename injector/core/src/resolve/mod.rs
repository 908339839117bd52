//! Resolving of drawn indices to fault sites.

pub mod fate;
pub mod foresight;
pub mod landmarks;
pub mod rehearsal;
pub mod stream;
