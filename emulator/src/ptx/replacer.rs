//! Emulation in modules that are instrumented with a tool.

use super::PtxScan;
use crate::{EmulateError, Instruction};
use flipwave_ptx::{Code, EmulatedInst, Module, Ptx};
use flipwave_ptx_hooks::{Instrumentation, PtxHookCompiler};
use flipwave_tools::{PtxReplacements, PtxReplacer, ToolError};
use std::collections::BTreeMap;

/// Replaces the proxies of emulated instructions in the modules that a tool instruments. Instructions without proxies
/// in a module are not an error.
#[derive(Clone, Debug)]
pub struct PtxEmulator<'a> {
    /// The emulated instructions.
    pub instructions: &'a [Instruction],
    /// The target of the modules.
    pub target: &'a Ptx,
    /// The compiler of their hooks.
    pub compiler: &'a PtxHookCompiler,
}

/// The proxies in one module.
struct ProxyReplacements<'a> {
    scan: PtxScan<'a>,
    emulated: BTreeMap<usize, EmulatedInst>,
}

/// The error of a tool.
fn replacement(error: EmulateError) -> ToolError {
    ToolError::Replacement(Box::new(error))
}

impl PtxReplacer for PtxEmulator<'_> {
    fn find(
        &self,
        module: &Module,
        code: &Code,
    ) -> Result<Box<dyn PtxReplacements + '_>, ToolError> {
        let PtxEmulator { instructions, target, compiler } = *self;
        let scan =
            PtxScan::new(module, code, target, instructions, compiler).map_err(replacement)?;
        let emulated = scan.emulated_insts(code);
        Ok(Box::new(ProxyReplacements { scan, emulated }))
    }
}

impl PtxReplacements for ProxyReplacements<'_> {
    fn emulated(&self) -> BTreeMap<usize, EmulatedInst> {
        self.emulated.clone()
    }

    fn request_hooks(&self, instrumentation: &mut Instrumentation) -> Result<(), ToolError> {
        self.scan.replace(instrumentation).map_err(replacement)
    }
}
