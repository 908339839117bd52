//! A PTX module that a tool has instrumented, on a device.

use super::PtxReplacer;
use super::instrumented::InstrumentedPtx;
use super::request::PtxTool;
use super::scope::PtxScope;
use crate::{
    CodeScope, DISPATCH_NUMBER, DispatchFacts, HookVariables, LoadedStreams, Options, Recorded,
    StreamMemory, TableRows, TakenRecords, ToolError,
};
use flipwave_device::{Address, DeviceError, ModuleId};
use flipwave_hooks::hook::VariableError;
use flipwave_hooks::rewrite::Refused;
use flipwave_machine::Machine;
use flipwave_ptx::{Module, Origin};
use flipwave_ptx_hooks::Rewritten;
use flipwave_ptx_sim::{Inserted, PtxGpu};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A GPU that executes PTX modules with hooks.
pub trait PtxDevice {
    /// A loaded module.
    fn module(&self, module: ModuleId) -> Option<Arc<Module>>;

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

    /// Frees the memory of a variable.
    ///
    /// # Errors
    /// [`DeviceError::NotAllocated`].
    fn free(&mut self, address: Address) -> Result<(), DeviceError>;
}

impl PtxDevice for PtxGpu {
    fn module(&self, module: ModuleId) -> Option<Arc<Module>> {
        self.program(module).map(|program| Arc::clone(&program.module))
    }

    fn load(&mut self, original: ModuleId, rewritten: &Rewritten) -> Result<ModuleId, DeviceError> {
        let Rewritten { module, origins, .. } = rewritten;
        self.load_rewritten(original, module, origins, Inserted::Counted)
    }

    fn variable(&self, module: ModuleId, name: &str) -> Option<(Address, u64)> {
        PtxGpu::variable(self, module, name)
    }

    fn read(&self, address: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        Machine::read(self, address, bytes)
    }

    fn write(&mut self, address: Address, bytes: &[u8]) -> Result<(), DeviceError> {
        Machine::write(self, address, bytes)
    }

    fn free(&mut self, address: Address) -> Result<(), DeviceError> {
        Machine::free(self, address)
    }
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

/// The records of a dispatch that runs.
#[derive(Debug)]
pub struct RunningRecords {
    /// The streams whose records are taken meanwhile, if there are any.
    streams: Option<LoadedStreams>,
    taken: TakenRecords,
}

impl RunningRecords {
    /// Takes the records that waves have written so far. To be called again and again while the dispatch runs: waves
    /// wait for space.
    ///
    /// # Errors
    /// [`DeviceError::NotAllocated`].
    pub fn take<D: PtxDevice>(&mut self, device: &mut D) -> Result<(), DeviceError> {
        match &self.streams {
            Some(streams) => streams.take(&mut Memory(device), &mut self.taken),
            None => Ok(()),
        }
    }
}

/// A module instrumented with a tool, loaded in addition to the original one.
pub struct InstrumentedModule {
    hooks: InstrumentedPtx,
    module: ModuleId,
    variables: BTreeMap<String, Variable>,
}

impl InstrumentedModule {
    /// Instruments the module `original` and loads the result. `replacer` replaces emulated instructions.
    ///
    /// # Errors
    /// [`ToolError`].
    pub fn load<D: PtxDevice>(
        device: &mut D,
        original: ModuleId,
        module: &Module,
        tool: &PtxTool,
        options: &Options,
        replacer: Option<&dyn PtxReplacer>,
    ) -> Result<InstrumentedModule, ToolError> {
        let hooks = tool.instrument(module, options, replacer)?;
        let module = device.load(original, &hooks.rewritten)?;
        let mut variables = BTreeMap::new();
        for name in &hooks.variables {
            let symbol = hooks.symbol(name);
            let Some((address, bytes)) = symbol.and_then(|name| device.variable(module, name))
            else {
                continue;
            };
            let mut initial = vec![0; bytes as usize];
            device.read(address, &mut initial)?;
            variables.insert(name.clone(), Variable { address, initial });
        }
        Ok(InstrumentedModule { hooks, module, variables })
    }

    /// The loaded module.
    pub fn module(&self) -> ModuleId {
        self.module
    }

    /// Calls of hooks that could not be inserted.
    pub fn refused(&self) -> &[Refused] {
        &self.hooks.refused
    }

    /// Prepares the memory of the hooks for the dispatch with this number.
    ///
    /// # Errors
    /// [`DeviceError::NotAllocated`].
    pub fn begin<D: PtxDevice>(
        &self,
        device: &mut D,
        tool: &PtxTool,
        number: u32,
    ) -> Result<RunningRecords, DeviceError> {
        for variable in self.variables.values() {
            device.write(variable.address, &variable.initial)?;
        }
        if let Some(variable) = self.variables.get(DISPATCH_NUMBER) {
            device.write(variable.address, &number.to_le_bytes())?;
        }
        let address_of = |name: &str| Some(Ok(self.variables.get(name)?.address));
        let streams = self.hooks.code.streams_at::<DeviceError>(&tool.tool, address_of)?;
        let streams = Some(streams).filter(LoadedStreams::can_wait);
        if let Some(streams) = &streams {
            streams.set_waits(&mut Memory(device), true)?;
        }
        Ok(RunningRecords { streams, taken: TakenRecords::default() })
    }

    /// The rows of a dispatch that has ended.
    ///
    /// # Errors
    /// [`ToolError`].
    pub fn rows<D: PtxDevice>(
        &self,
        device: &D,
        tool: &PtxTool,
        facts: &DispatchFacts,
        records: RunningRecords,
    ) -> Result<TableRows, ToolError> {
        let mut content = BTreeMap::new();
        for (name, variable) in &self.variables {
            let mut bytes = vec![0; variable.initial.len()];
            device.read(variable.address, &mut bytes)?;
            content.insert(name.clone(), bytes);
        }
        let scope: &dyn CodeScope = &PtxScope::new(&self.hooks.original, Some(&facts.kernel));
        let (variables, taken) = (&Variables(content), records.taken);
        let recorded = Recorded { code: &self.hooks.code, scope, variables, taken };
        tool.tool.rows(facts, Some(recorded))
    }

    /// Origin of the instruction at an address of the loaded module; `None` outside its code.
    pub fn origin(&self, pc: flipwave_arch::Pc) -> Option<Origin> {
        let number = pc.0 / u64::from(flipwave_ptx::INSTRUCTION_BYTES);
        self.hooks.rewritten.origins.get(usize::try_from(number).ok()?).copied()
    }

    /// Address in the original code of an instruction of the loaded module, see [`Rewritten::original`].
    pub fn original(&self, pc: flipwave_arch::Pc) -> Option<flipwave_arch::Pc> {
        self.hooks.rewritten.original(pc)
    }

    /// Frees the memory of the hooks, after which the module cannot run.
    pub fn free<D: PtxDevice>(&self, device: &mut D) {
        for variable in self.variables.values() {
            // Allocated by `load`.
            let _ = device.free(variable.address);
        }
    }
}
