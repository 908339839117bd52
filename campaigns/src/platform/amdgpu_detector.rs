//! Detectors in AMD code objects.

use super::detector::{DetectorCounter, DetectorMethod, LoadedDetector};
use super::{amdgpu, amdgpu_mut};
use crate::platform::other_platform::OtherPlatformError;
use crate::program::error::{DetectorError, PrepareError};
use flipwave_codeobj::CodeObject;
use flipwave_device::{Device, ModuleId};
use flipwave_hooks::hook::HookCompiler;
use flipwave_hooks::rewrite::Instrumentation;
use flipwave_injector::Workload;
use flipwave_machine::Simulator;
use flipwave_tools::{
    EmulatedInsts, Guest, Options, Tool, ToolError, ToolFile, ToolScope, refusal_reasons, wave_size,
};
use std::sync::Arc;

/// A detector in AMD code objects.
pub(super) struct AmdgpuDetector {
    tool: Tool,
    compiler: HookCompiler,
}

impl AmdgpuDetector {
    /// Starts a tool for the code that a workload dispatches.
    pub fn start(file: &ToolFile, workload: &Workload) -> Result<AmdgpuDetector, PrepareError> {
        let compiler =
            HookCompiler::find().map_err(ToolError::Hook).map_err(DetectorError::Tool)?;
        let gpu = amdgpu(&workload.device)?;
        let mut modules = workload.program.dispatches.iter().map(|dispatch| dispatch.module);
        let wave_size = modules.find_map(|module| wave_size(gpu.code_object(module)?));
        let tool = Tool::start(file, &compiler, gpu.target(), wave_size.unwrap_or(64));
        Ok(AmdgpuDetector { tool: tool.map_err(DetectorError::Tool)?, compiler })
    }
}

impl DetectorMethod for AmdgpuDetector {
    fn tool(&self) -> &Tool {
        &self.tool
    }

    fn load(
        &self,
        machine: &mut Simulator,
        module: ModuleId,
    ) -> Result<LoadedDetector, PrepareError> {
        let object = amdgpu(machine)?.code_object(module).cloned();
        let other = || OtherPlatformError { target: machine.architecture().target().to_owned() };
        let object: CodeObject = object.ok_or_else(other)?;
        let mut instrumentation = Instrumentation::new(&object)
            .map_err(ToolError::Rewrite)
            .map_err(DetectorError::Tool)?;
        let program = instrumentation.program().clone();
        let scope = ToolScope::new(&object, &program, None);
        let lines = object.lines().unwrap_or_default();
        let (tool, compiler, options) = (&self.tool, &self.compiler, Options::default());
        tool.request_hooks(&mut instrumentation, compiler, &options, &scope, &lines)
            .map_err(DetectorError::Tool)?;
        let rewritten = instrumentation.rewrite(compiler).map_err(ToolError::Rewrite);
        let rewritten = rewritten.map_err(DetectorError::Tool)?;
        if !rewritten.report.refused.is_empty() {
            let reasons = refusal_reasons(&rewritten.report.refused).join("; ");
            return Err(DetectorError::Refused { file: tool.file().name.clone(), reasons }.into());
        }
        let guest =
            Guest::new(&object, &program, &rewritten, &EmulatedInsts::default(), |_| Vec::new());
        let gpu = amdgpu_mut(machine)?;
        let module = gpu.load(&rewritten.object)?;
        let mut counters = Vec::new();
        for name in tool.detectors() {
            let Some((start, data)) = rewritten.data.first() else { break };
            let Some(symbol) = data.symbols.get(name) else { continue };
            let address = gpu.address_of(module, start.0 + symbol.offset)?;
            let (name, bytes) = (name.to_owned(), symbol.size as usize);
            counters.push(DetectorCounter { name, address, bytes });
        }
        gpu.set_original(module, Arc::new(guest));
        Ok(LoadedDetector { module, counters })
    }
}
