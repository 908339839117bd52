//! Emulation in code that is instrumented with a tool.

use crate::{Instruction, Scan};
use flipwave_codeobj::CodeObject;
use flipwave_hooks::flow::Disassembly;
use flipwave_hooks::hook::HookCompiler;
use flipwave_hooks::rewrite::{Instrumentation, Report};
use flipwave_tools::{EmulatedInsts, Replacements, Replacer, ToolError};

/// Replaces the proxies of emulated instructions in the code that a tool instruments. Instructions without
/// proxies in the code are not an error.
#[derive(Clone, Copy, Debug)]
pub struct Emulator<'a> {
    /// The emulated instructions.
    pub instructions: &'a [Instruction],
    /// The compiler of their hooks.
    pub compiler: &'a HookCompiler,
}

/// The proxies in one code object.
struct ProxyReplacements<'a> {
    scan: Scan<'a>,
    emulated: EmulatedInsts,
}

impl Replacer for Emulator<'_> {
    fn find(
        &self,
        object: &CodeObject,
        program: &Disassembly,
    ) -> Result<Box<dyn Replacements + '_>, ToolError> {
        let scan = Scan::new(object, program, self.instructions, self.compiler)
            .map_err(|error| ToolError::Replacement(Box::new(error)))?;
        let emulated = scan.emulated_insts(program);
        Ok(Box::new(ProxyReplacements { scan, emulated }))
    }
}

impl Replacements for ProxyReplacements<'_> {
    fn emulated(&self) -> EmulatedInsts {
        self.emulated.clone()
    }

    fn request_hooks(&self, instrumentation: &mut Instrumentation<'_>) {
        self.scan.replace(instrumentation);
    }

    fn check(&self, program: &Disassembly, report: &Report) -> Result<(), ToolError> {
        let result = self.scan.check_replaced(program, report);
        result.map_err(|error| ToolError::Replacement(Box::new(error)))
    }
}
