//! Injections in every way that there is, each against the others.

mod changes;
mod common;
mod paths;
mod queued;
mod variables;
