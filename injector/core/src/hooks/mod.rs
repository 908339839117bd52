//! Hooks that inject faults, as far as they are the same on all instruction sets: the C sources of the change and of
//! the struck executions, the values that the host writes into their variables, and the results that it reads.

mod found;
mod launch;
mod orders;
mod sources;

pub use found::{WAVE_BYTES, WAVES, found_in, together};
pub use launch::LaunchShape;
pub use orders::{MissingLanes, is_active, orders};
pub use sources::{
    ComposedSource, PREFIX, SourceFunction, SourceRequest, SourceSet, change_sources,
    name_in_source,
};

use crate::site::{Place, Site};
use flipwave_device::Address;

/// The address, or the offset in LDS or scratch memory, of the struck memory; 0 for sites in registers. `buffer`
/// returns the address of the program's buffer with an index. `None` if the memory does not exist.
pub fn place_of(
    site: &Site,
    shape: &LaunchShape,
    buffer: impl FnOnce(u32) -> Option<Address>,
) -> Option<u64> {
    match site.place {
        Place::Memory { buffer: number, offset } => buffer(number)?.0.checked_add(offset),
        Place::Lds(offset) => {
            let offset = u64::from(offset);
            Some(offset).filter(|offset| offset + 4 <= shape.lds_bytes.into())
        }
        Place::Scratch(offset) => Some(offset.into()),
        _ => Some(0),
    }
}
