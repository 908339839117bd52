//! Device memory: the interface for instructions, its implementations, and the recording of
//! accesses.

mod access;
mod address_space;
mod aligned;
pub mod aperture;
pub mod atomic;
mod bytes;
mod lane_places;
mod recording;
mod sparse;
mod touched;
mod write_recorder;

pub use access::{Memory, modify, read_bytes, write_bytes};
pub use access::{Region, RegionMut, Window, WindowAccess, exchange};
pub use address_space::AddressSpace;
pub use aligned::AlignedBytes;
pub use lane_places::LanePlaces;
pub use recording::Recording;
pub use touched::{PrivateNotes, TouchedNotes, TouchedPrivate, TouchedRegion, TouchedRegions};
pub use write_recorder::WriteRecorder;
