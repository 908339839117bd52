//! Tests of hooks compiled by clang and run on the embedded GPU, with random registers.

mod arguments;
mod bench;
mod bodies;
mod data;
mod errors;
mod library;
mod run;

use bench::{Bench, bench};
