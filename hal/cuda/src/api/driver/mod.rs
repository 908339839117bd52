//! The driver API.

mod contexts;
mod copies;
mod devices;
mod events;
mod graphs;
mod kernels;
mod memory;
mod modules;
mod procedures;
mod streams;

pub use kernels::{LaunchRequest, launch};
pub use modules::{image_bytes, read_image};

use crate::status::Status;

/// The code of a result.
fn code(result: Result<(), Status>) -> i32 {
    result.map_or_else(|status| status.0, |()| 0)
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
