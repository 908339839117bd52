//! Modules with the hooks of a tool.

use super::PtxReplacer;
use super::request::{PtxTool, Requested};
use super::scope::PtxScope;
use crate::code::ToolCode;
use crate::{Options, ToolError};
use flipwave_hooks::rewrite::Refused;
use flipwave_ptx::{Code, Module};
use flipwave_ptx_hooks::{Instrumentation, LibraryIndex, Rewritten};

/// A module with the hooks of a tool.
pub struct InstrumentedPtx {
    /// The module.
    pub rewritten: Rewritten,
    /// Hooks that could not be inserted.
    pub refused: Vec<Refused>,
    /// The original code.
    pub(super) original: Code,
    /// The meaning of the numbers in the hooks' memory.
    pub(super) code: ToolCode,
    /// Names of the tool's variables.
    pub(super) variables: Vec<String>,
    library: LibraryIndex,
}

impl InstrumentedPtx {
    /// Name in the module of a variable of the tool.
    pub fn symbol(&self, variable: &str) -> Option<&str> {
        self.rewritten.symbol(self.library, variable)
    }
}

impl PtxTool {
    /// Inserts the tool's hooks into a module. `replacer` replaces emulated instructions, which the tool sees as
    /// single instructions.
    ///
    /// # Errors
    /// [`ToolError`] if the tool fails, or a request does not match its hook.
    pub fn instrument(
        &self,
        module: &Module,
        options: &Options,
        replacer: Option<&dyn PtxReplacer>,
    ) -> Result<InstrumentedPtx, ToolError> {
        let mut instrumentation = Instrumentation::new(module).map_err(Box::new)?;
        let mut original = instrumentation.code().clone();
        let replacements = replacer.map(|replacer| replacer.find(module, &original)).transpose()?;
        if let Some(replacements) = &replacements {
            replacements.request_hooks(&mut instrumentation)?;
            for (number, inst) in replacements.emulated() {
                original.set_emulated(number, &inst);
            }
        }
        let scope = PtxScope::new(&original, options.kernel.as_deref());
        let requested = self.request_hooks(&mut instrumentation, options, &scope)?;
        let Requested { code, library, refused } = requested;
        let rewritten = instrumentation.rewrite().map_err(Box::new)?;
        let variables = instrumentation.variables(library);
        Ok(InstrumentedPtx { rewritten, refused, original, code, variables, library })
    }
}
