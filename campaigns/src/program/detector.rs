//! Detectors: tools whose hooks check the program, and report faults that they find.

use crate::file::element::ElementType;
use crate::outputs::compare::{OutputFormat, OutputRole};
use crate::platform::{amdgpu, amdgpu_mut};
use crate::program::error::{DetectorError, PrepareError};
use flipwave_codeobj::CodeObject;
use flipwave_device::{Device, ModuleId};
use flipwave_hooks::hook::HookCompiler;
use flipwave_hooks::rewrite::{Instrumentation, Rewritten};
use flipwave_injector::{Buffer, Workload};
use flipwave_tools::{
    DispatchFacts, EmulatedInsts, Guest, Options, Tool, ToolError, ToolFile, ToolScope,
    refusal_reasons, wave_size,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Upper bound of instructions executed per instruction of the program.
const MAX_COST: u64 = 1000;

/// Inserts the hooks of a detector into the code that a workload dispatches, and returns the formats of its
/// counters, which become the last outputs. Fault sites and locations remain those of the original code.
///
/// # Errors
/// [`PrepareError`] if the tool fails, or a hook cannot be inserted.
pub(super) fn insert(
    file: &ToolFile,
    workload: &mut Workload,
) -> Result<Vec<OutputFormat>, PrepareError> {
    let compiler = HookCompiler::find().map_err(ToolError::Hook).map_err(DetectorError::Tool)?;
    let gpu = amdgpu(&workload.device)?;
    let objects: BTreeMap<u32, CodeObject> = workload
        .program
        .dispatches
        .iter()
        .filter_map(|dispatch| Some((dispatch.module.0, gpu.code_object(dispatch.module)?.clone())))
        .collect();
    let wave_size = objects.values().find_map(wave_size).unwrap_or(64);
    let tool =
        Tool::start(file, &compiler, gpu.target(), wave_size).map_err(DetectorError::Tool)?;
    if tool.detectors().next().is_none() {
        return Err(DetectorError::NoDetector { file: file.name.clone() }.into());
    }
    let mut versions: BTreeMap<u32, ModuleId> = BTreeMap::new();
    let mut formats = Vec::new();
    for (number, dispatch) in (0..).zip(&mut workload.program.dispatches) {
        let facts = DispatchFacts {
            number,
            kernel: dispatch.kernel.clone(),
            grid: dispatch.grid,
            workgroup: dispatch.workgroup,
            launch: tool.count_launch(&dispatch.kernel),
        };
        let Some(object) = objects.get(&dispatch.module.0) else { continue };
        if !tool.chooses(&facts).map_err(DetectorError::Tool)? {
            continue;
        }
        let module = match versions.get(&dispatch.module.0) {
            Some(module) => *module,
            None => {
                let instrumented = Instrumented::new(&tool, object, &compiler)?;
                let gpu = amdgpu_mut(&mut workload.device)?;
                let module = gpu.load(&instrumented.rewritten.object)?;
                for (name, counter) in instrumented.counters(&tool) {
                    let address = gpu.address_of(module, counter.address)?;
                    let bytes = counter.bytes;
                    workload.program.outputs.push(Buffer { name: name.to_owned(), address, bytes });
                    formats.push(OutputFormat {
                        element: ElementType::U64,
                        role: OutputRole::Detector(name.to_owned()),
                        extents: None,
                    });
                }
                gpu.set_original(module, Arc::new(instrumented.guest));
                versions.insert(dispatch.module.0, module);
                module
            }
        };
        dispatch.module = module;
        // The limit is for the original program.
        dispatch.instruction_limit = dispatch.instruction_limit.saturating_mul(MAX_COST);
    }
    Ok(formats)
}

/// Code with the hooks of a detector.
struct Instrumented {
    rewritten: Rewritten,
    guest: Guest,
}

/// The counter of a detector in a code object.
struct Counter {
    /// ELF virtual address.
    address: u64,
    bytes: usize,
}

impl Instrumented {
    fn new(
        tool: &Tool,
        object: &CodeObject,
        compiler: &HookCompiler,
    ) -> Result<Instrumented, DetectorError> {
        let mut instrumentation = Instrumentation::new(object).map_err(ToolError::Rewrite)?;
        let program = instrumentation.program().clone();
        let scope = ToolScope::new(object, &program, None);
        let lines = object.lines().unwrap_or_default();
        let options = Options::default();
        tool.request_hooks(&mut instrumentation, compiler, &options, &scope, &lines)?;
        let rewritten = instrumentation.rewrite(compiler).map_err(ToolError::Rewrite)?;
        if !rewritten.report.refused.is_empty() {
            let reasons = refusal_reasons(&rewritten.report.refused).join("; ");
            return Err(DetectorError::Refused { file: tool.file().name.clone(), reasons });
        }
        let guest =
            Guest::new(object, &program, &rewritten, &EmulatedInsts::default(), |_| Vec::new());
        Ok(Instrumented { rewritten, guest })
    }

    /// The counters of the detectors that the hooks use.
    fn counters<'a>(&self, tool: &'a Tool) -> Vec<(&'a str, Counter)> {
        let Some((start, data)) = self.rewritten.data.first() else { return Vec::new() };
        let counter = |name: &'a str| {
            let symbol = data.symbols.get(name)?;
            let address = start.0 + symbol.offset;
            Some((name, Counter { address, bytes: symbol.size as usize }))
        };
        tool.detectors().filter_map(counter).collect()
    }
}
