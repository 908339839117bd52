//! Hooks compiled by clang, run on the embedded GPU with registers of all sorts.

mod arguments;
mod bench;
mod bodies;
mod data;
mod errors;
mod library;
mod run;

use bench::{Bench, bench};
