//! Facts that the validation of a campaign file's values depends on.

use crate::golden::suspicion::Suspicion;
use flipwave_arch::Architecture;
use std::path::Path;

/// Facts that the validation of a campaign file's values depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    /// Folder of the file. Relative paths start there.
    pub directory: &'a Path,
    /// Instruction set of the target, which determines the format of some types.
    pub target: &'a dyn Architecture,
    /// Suspicious properties that are permitted.
    pub allow: &'a [Suspicion],
}
