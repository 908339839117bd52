//! The driver API.

pub(super) mod contexts;
pub(super) mod copies;
mod devices;
pub(super) mod events;
pub(super) mod graphs;
pub(super) mod kernels;
pub(super) mod memory;
pub(super) mod modules;
pub(super) mod procedures;
pub(super) mod streams;

use crate::status::Status;

/// Executes a call and returns its code.
fn code(body: impl FnOnce() -> Result<(), Status>) -> i32 {
    body().map_or_else(|status| status.0, |()| 0)
}

/// Names and addresses of all functions.
fn entries() -> Vec<(&'static str, usize)> {
    [
        contexts::entries(),
        copies::entries(),
        devices::entries(),
        events::entries(),
        graphs::entries(),
        kernels::entries(),
        memory::entries(),
        modules::entries(),
        procedures::entries(),
        streams::entries(),
    ]
    .concat()
}
