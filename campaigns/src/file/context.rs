//! What the values of a campaign file depend on beside themselves.

use crate::golden::suspicion::Suspicion;
use flipwave_isa::Target;
use std::path::Path;

/// What the values of a campaign file depend on beside themselves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    /// The file's folder, from which relative paths begin.
    pub directory: &'a Path,
    /// The campaign's GPU, by which some types are named.
    pub target: &'a Target,
    /// What the campaign may do though it is suspicious.
    pub allow: &'a [Suspicion],
}
