//! Emulated instructions in tables of tools on PTX.

use crate::ToolError;
use flipwave_ptx::{Code, EmulatedInst, Module};
use flipwave_ptx_hooks::Instrumentation;
use std::collections::BTreeMap;

/// Replaces instructions in modules that are instrumented with a tool.
pub trait PtxReplacer {
    /// Finds the instructions to replace in a module with this code.
    ///
    /// # Errors
    /// [`ToolError::Replacement`].
    fn find(
        &self,
        module: &Module,
        code: &Code,
    ) -> Result<Box<dyn PtxReplacements + '_>, ToolError>;
}

/// The instructions to replace in one module.
pub trait PtxReplacements {
    /// The emulated instructions by number of the instruction that represents them.
    fn emulated(&self) -> BTreeMap<usize, EmulatedInst>;

    /// Requests the hooks that replace the instructions.
    ///
    /// # Errors
    /// [`ToolError::Replacement`].
    fn request_hooks(&self, instrumentation: &mut Instrumentation) -> Result<(), ToolError>;
}
