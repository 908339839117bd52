//! Decoding, assembling and the tables of hazards, against LLVM.

mod common;
mod facts;
mod hazards;
mod narrow;
mod round_trip;
mod threads;
mod unused;
