//! What the values of a campaign file depend on beside themselves.

use flipwave_isa::Target;
use std::path::Path;

/// What the values of a campaign file depend on beside themselves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    /// The file's folder, from which relative paths begin.
    pub directory: &'a Path,
    /// The campaign's GPU, by which some types are named.
    pub target: &'a Target,
}
