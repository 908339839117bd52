//! Kernels with two entries: where arguments are preloaded into registers, firmware that knows of
//! it begins 256 bytes behind the entry; firmware that does not begins at the entry, with code
//! that loads them (AMDGPUUsage, "Preloaded Kernel Arguments").

use super::{LayoutError, lookup::Lookup};
use crate::flow::{Function, InstIndex, Program};
use flipwave_codeobj::CodeObject;
use flipwave_isa::Pc;

/// From the first entry to the second, in bytes.
pub(super) const ENTRY_DISTANCE: u64 = 256;

/// The instruction at the second entry of a kernel that has two.
///
/// # Errors
/// [`LayoutError::PreloadEntry`] where no instruction begins there.
pub(super) fn body(
    object: &CodeObject,
    program: &Program,
    lookup: &Lookup<'_>,
    function: &Function,
) -> Result<Option<InstIndex>, LayoutError> {
    let kernel = function.kernel.and_then(|kernel| object.kernels().get(kernel));
    if kernel.is_none_or(|kernel| kernel.descriptor.kernarg_preload.length == 0) {
        return Ok(None);
    }
    let start = program.instructions.get(function.instructions.start as usize);
    let expected = Pc(start.map_or(0, |inst| inst.pc.0).saturating_add(ENTRY_DISTANCE));
    let found = lookup.at(expected).filter(|index| function.instructions.contains(&index.0));
    match found {
        Some(index) => Ok(Some(index)),
        None => Err(LayoutError::PreloadEntry { function: function.name.clone(), expected }),
    }
}
