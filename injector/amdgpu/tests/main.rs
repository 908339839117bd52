//! Injections with every method, compared with one another.

mod changes;
mod common;
mod paths;
mod queued;
mod variables;
