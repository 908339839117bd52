//! Modules that clang compiles, read and written.

mod common;
mod corpus;
mod damage;
mod reading;
