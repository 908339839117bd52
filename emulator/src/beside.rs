//! Emulation beside tools.

use crate::{Instruction, Scan};
use flipwave_codeobj::CodeObject;
use flipwave_hooks::flow::Disassembly;
use flipwave_hooks::hook::HookCompiler;
use flipwave_hooks::rewrite::{Instrumentation, Report};
use flipwave_tools::{Beside, Replacement, Substitutes, ToolError};

/// Instructions to be emulated in all code that a tool is put into. That some of them are in none
/// of it is no error here.
#[derive(Clone, Copy, Debug)]
pub struct Emulator<'a> {
    /// The instructions.
    pub instructions: &'a [Instruction],
    /// Compiles their hooks.
    pub compiler: &'a HookCompiler,
}

/// Emulation in one code object.
struct InObject<'a> {
    scan: Scan<'a>,
    substitutes: Substitutes,
}

impl Beside for Emulator<'_> {
    fn read(
        &self,
        object: &CodeObject,
        program: &Disassembly,
    ) -> Result<Box<dyn Replacement + '_>, ToolError> {
        let scan = Scan::new(object, program, self.instructions, self.compiler)
            .map_err(|error| ToolError::Beside(Box::new(error)))?;
        let substitutes = scan.substitutes(program);
        Ok(Box::new(InObject { scan, substitutes }))
    }
}

impl Replacement for InObject<'_> {
    fn substitutes(&self) -> Substitutes {
        self.substitutes.clone()
    }

    fn ask(&self, instrumentation: &mut Instrumentation<'_>) {
        self.scan.replace(instrumentation);
    }

    fn look_at(&self, program: &Disassembly, report: &Report) -> Result<(), ToolError> {
        let result = self.scan.demand(program, report);
        result.map_err(|error| ToolError::Beside(Box::new(error)))
    }
}
