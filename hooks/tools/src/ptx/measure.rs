//! Instruments the modules of a list of dispatches with a tool and runs them.

use super::PtxReplacer;
use super::request::{PtxTool, Requested};
use super::scope::PtxScope;
use crate::measure::complete;
use crate::{
    CodeScope, DISPATCH_NUMBER, DispatchFacts, DispatchTable, HookVariables, LoadedStreams,
    Measurement, Options, Recorded, StreamMemory, TakenRecords, ToolError, ToolFile,
};
use flipwave_device::{
    Address, Completion, DeviceError, DeviceFault, Dispatch, ModuleId, WaveLocation,
};
use flipwave_hooks::hook::VariableError;
use flipwave_ptx::{Code, Module, Origin, Ptx};
use flipwave_ptx_hooks::{Instrumentation, PtxHookCompiler, Rewritten};
use std::collections::BTreeMap;

/// A GPU that executes PTX modules with hooks.
pub trait PtxDevice {
    /// The target of its code.
    fn target(&self) -> &Ptx;

    /// A loaded module.
    fn module(&self, module: ModuleId) -> Option<&Module>;

    /// Loads a module with hooks, which is executed in place of the module `original`. Instructions of hooks count
    /// as others.
    ///
    /// # Errors
    /// [`DeviceError::Load`], [`DeviceError::OutOfMemory`].
    fn load(&mut self, original: ModuleId, rewritten: &Rewritten) -> Result<ModuleId, DeviceError>;

    /// Address and size in bytes of a variable in device memory.
    fn variable(&self, module: ModuleId, name: &str) -> Option<(Address, u64)>;

    /// Copies from device memory.
    ///
    /// # Errors
    /// [`DeviceError::NotAllocated`].
    fn read(&self, address: Address, bytes: &mut [u8]) -> Result<(), DeviceError>;

    /// Copies to device memory.
    ///
    /// # Errors
    /// [`DeviceError::NotAllocated`].
    fn write(&mut self, address: Address, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Executes a dispatch, and calls `between` again and again meanwhile.
    ///
    /// # Errors
    /// [`DeviceError`], also those of `between`.
    fn dispatch(
        &mut self,
        dispatch: &Dispatch,
        between: &mut dyn FnMut(&mut Self) -> Result<(), DeviceError>,
    ) -> Result<Completion, DeviceError>;
}

/// Memory of a device.
struct Memory<'a, D>(&'a mut D);

impl<D: PtxDevice> StreamMemory for Memory<'_, D> {
    type Error = DeviceError;

    fn read(&mut self, address: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.0.read(address, bytes)
    }

    fn write(&mut self, address: Address, bytes: &[u8]) -> Result<(), DeviceError> {
        self.0.write(address, bytes)
    }
}

/// A variable of hooks in device memory.
#[derive(Clone, Debug)]
struct Variable {
    address: Address,
    /// The content that each dispatch starts with.
    initial: Vec<u8>,
}

/// The content of variables after a dispatch.
#[derive(Debug)]
struct Variables(BTreeMap<String, Vec<u8>>);

impl HookVariables for Variables {
    fn bytes(&self, name: &str) -> Result<&[u8], ToolError> {
        self.0.get(name).map(Vec::as_slice).ok_or_else(|| {
            let present = self.0.keys().cloned().collect();
            VariableError::Unknown { wanted: name.to_owned(), present }.into()
        })
    }
}

/// A module instrumented with a tool.
struct InstrumentedModule {
    hooks: Requested,
    /// The original code.
    code: Code,
    rewritten: Rewritten,
    module: ModuleId,
    variables: BTreeMap<String, Variable>,
}

/// Instruments the modules of `dispatches` with a tool, loads them in addition to the original ones, and runs the
/// dispatches. See [`measure`](crate::measure()). `replacer` replaces emulated instructions, which the tool sees as
/// single instructions.
///
/// # Errors
/// [`ToolError`].
pub fn measure_ptx<D: PtxDevice>(
    device: &mut D,
    dispatches: &[Dispatch],
    file: &ToolFile,
    options: &Options,
    compiler: &PtxHookCompiler,
    replacer: Option<&dyn PtxReplacer>,
) -> Result<Measurement, ToolError> {
    if options.placement.is_some() {
        let target = flipwave_arch::Architecture::target(device.target()).to_owned();
        return Err(ToolError::AmdgpuOnly { option: "--placement", target });
    }
    options.check_kernel(dispatches)?;
    let target = device.target().clone();
    let tool = PtxTool::start(file, compiler, &target)?;
    let mut modules: BTreeMap<u32, InstrumentedModule> = BTreeMap::new();
    let mut tables = Vec::new();
    for (index, dispatch) in dispatches.iter().enumerate() {
        let facts = options.wants(dispatch).then(|| tool.tool.dispatch_facts(index, dispatch));
        let is_chosen = match &facts {
            Some(facts) => tool.tool.chooses(facts)?,
            None => false,
        };
        let Some(facts) = facts.as_ref().filter(|_| is_chosen) else {
            let end = device.dispatch(dispatch, &mut |_| Ok(()))?;
            let statistics = complete(index, dispatch, end)?;
            let rows = facts.map(|facts| tool.tool.rows(&facts, None)).transpose()?;
            tables.extend(rows.map(|found| DispatchTable::new(index, dispatch, found, statistics)));
            continue;
        };
        let original = dispatch.module;
        let module = match modules.remove(&original.0) {
            Some(module) => module,
            None => {
                let code = device.module(original).cloned();
                let module = original.0;
                let code = code.ok_or(ToolError::NoCode { dispatch: index, module })?;
                InstrumentedModule::load(device, original, &code, &tool, options, replacer)?
            }
        };
        tables.push(module.run(device, &tool, dispatch, facts)?);
        modules.insert(original.0, module);
    }
    let refused = modules.into_values().map(|module| module.hooks.refused).collect();
    Ok(Measurement { columns: tool.tool.columns(), tables, instrumented: Vec::new(), refused })
}

impl InstrumentedModule {
    /// Instruments a module and loads the result.
    fn load<D: PtxDevice>(
        device: &mut D,
        original: ModuleId,
        module: &Module,
        tool: &PtxTool<'_>,
        options: &Options,
        replacer: Option<&dyn PtxReplacer>,
    ) -> Result<InstrumentedModule, ToolError> {
        let mut instrumentation = Instrumentation::new(module).map_err(Box::new)?;
        let mut code = instrumentation.code().clone();
        let replacements = replacer.map(|replacer| replacer.find(module, &code)).transpose()?;
        if let Some(replacements) = &replacements {
            replacements.request_hooks(&mut instrumentation)?;
            for (number, inst) in replacements.emulated() {
                code.set_emulated(number, &inst);
            }
        }
        let scope = PtxScope::new(&code, options.kernel.as_deref());
        let hooks = tool.request_hooks(&mut instrumentation, options, &scope)?;
        let rewritten = instrumentation.rewrite().map_err(Box::new)?;
        let module = device.load(original, &rewritten)?;
        let mut variables = BTreeMap::new();
        for name in instrumentation.variables(hooks.library) {
            let symbol = rewritten.symbol(hooks.library, &name);
            let Some((address, bytes)) = symbol.and_then(|name| device.variable(module, name))
            else {
                continue;
            };
            let mut initial = vec![0; bytes as usize];
            device.read(address, &mut initial)?;
            variables.insert(name, Variable { address, initial });
        }
        Ok(InstrumentedModule { hooks, code, rewritten, module, variables })
    }

    /// Runs a dispatch and builds its table.
    fn run<D: PtxDevice>(
        &self,
        device: &mut D,
        tool: &PtxTool<'_>,
        dispatch: &Dispatch,
        facts: &DispatchFacts,
    ) -> Result<DispatchTable, ToolError> {
        for variable in self.variables.values() {
            device.write(variable.address, &variable.initial)?;
        }
        if let Some(number) = self.variables.get(DISPATCH_NUMBER) {
            device.write(number.address, &facts.number.to_le_bytes())?;
        }
        let address_of = |name: &str| Some(Ok(self.variables.get(name)?.address));
        let streams = self.hooks.code.streams_at::<DeviceError>(&tool.tool, address_of)?;
        let streams = Some(streams).filter(LoadedStreams::can_wait);
        if let Some(streams) = &streams {
            streams.set_waits(&mut Memory(device), true)?;
        }
        let mut taken = TakenRecords::default();
        let mut between = |device: &mut D| match &streams {
            Some(streams) => streams.take(&mut Memory(device), &mut taken),
            None => Ok(()),
        };
        let instrumented = Dispatch { module: self.module, ..dispatch.clone() };
        let end = device.dispatch(&instrumented, &mut between)?;
        let index = facts.number as usize;
        if let Completion::Faulted(fault) = end {
            return Err(self.failure(tool, index, dispatch, fault));
        }
        let statistics = complete(index, dispatch, end)?;
        let mut content = BTreeMap::new();
        for (name, variable) in &self.variables {
            let mut bytes = vec![0; variable.initial.len()];
            device.read(variable.address, &mut bytes)?;
            content.insert(name.clone(), bytes);
        }
        let scope: &dyn CodeScope = &PtxScope::new(&self.code, Some(&dispatch.kernel));
        let variables = &Variables(content);
        let recorded = Recorded { code: &self.hooks.code, scope, variables, taken };
        let found = tool.tool.rows(facts, Some(recorded))?;
        Ok(DispatchTable::new(index, dispatch, found, statistics))
    }

    /// The error for a fault, with its location in the original code.
    fn failure(
        &self,
        tool: &PtxTool<'_>,
        index: usize,
        dispatch: &Dispatch,
        fault: DeviceFault,
    ) -> ToolError {
        let origin = |location: WaveLocation| {
            let number = location.pc.0 / u64::from(flipwave_ptx::INSTRUCTION_BYTES);
            self.rewritten.origins.get(number as usize).copied()
        };
        let is_in_hook = origin(fault.place).is_some_and(Origin::is_inserted);
        let fault = fault.map_locations(|location| {
            let pc = self.rewritten.original(location.pc).unwrap_or(location.pc);
            WaveLocation { pc, ..location }
        });
        let kernel = dispatch.kernel.clone();
        if is_in_hook {
            let (name, fault) = (tool.tool.file().name.clone(), Box::new(fault));
            ToolError::PtxHookFaulted { dispatch: index, kernel, name, fault }
        } else {
            ToolError::Faulted { dispatch: index, kernel, fault }
        }
    }
}
