//! Emulated instructions in tables of tools: hooks replace their proxies while a tool instruments the code.

use super::ToolError;
use flipwave_codeobj::CodeObject;
use flipwave_hooks::flow::{Disassembly, InstIndex};
use flipwave_hooks::rewrite::{Instrumentation, Report};
use std::collections::BTreeMap;

/// An emulated instruction, which tables show in place of its proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmulatedInst {
    /// The name of the operation.
    pub operation: String,
    /// The instruction in assembly syntax.
    pub text: String,
}

/// The emulated instructions of a code object, by their proxies.
pub type EmulatedInsts = BTreeMap<InstIndex, EmulatedInst>;

/// Replaces instructions in code objects that are instrumented with a tool.
pub trait Replacer {
    /// Finds the instructions to replace in a code object, whose disassembly is `program`.
    ///
    /// # Errors
    /// [`ToolError::Replacement`].
    fn find(
        &self,
        object: &CodeObject,
        program: &Disassembly,
    ) -> Result<Box<dyn Replacements + '_>, ToolError>;
}

/// The instructions to replace in one code object.
pub trait Replacements {
    /// The proxies with their emulated instructions.
    fn emulated(&self) -> EmulatedInsts;

    /// Requests the hooks that replace the instructions.
    fn request_hooks(&self, instrumentation: &mut Instrumentation<'_>);

    /// Checks in the engine's report that the instructions were replaced.
    ///
    /// # Errors
    /// [`ToolError::Replacement`].
    fn check(&self, program: &Disassembly, report: &Report) -> Result<(), ToolError>;
}
