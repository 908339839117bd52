//! Resolving of drawn indices to fault sites.

pub mod def_use;
pub mod landmarks;
pub mod resolving;
pub mod site_analysis;
pub mod stream;
