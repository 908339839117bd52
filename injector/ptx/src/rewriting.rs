//! Code with the hooks of a request.

use crate::calls::calls;
use crate::library::{library_name, source};
use crate::request::Request;
use crate::{Refusal, library};
use flipwave_device::{Address, DeviceError, ModuleId};
use flipwave_injector::Workload;
use flipwave_machine::Machine;
use flipwave_ptx::{Module, Ptx};
use flipwave_ptx_hooks::{
    HookCall, Instrumentation, Lanes, PtxHookCompiler, PtxHookError, Rewritten,
};
use flipwave_ptx_sim::{Inserted, PtxGpu};
use std::collections::BTreeMap;

/// A rewritten module on a device.
pub(crate) struct Rewriting {
    /// The workload, on whose device the rewritten module is loaded.
    pub workload: Workload,
    /// The rewritten module.
    pub module: ModuleId,
    /// The code.
    pub rewritten: Rewritten,
    /// The hooks' variables.
    pub variables: Variables,
    /// `true` if hooks also strike lanes that do not reach the instruction.
    pub is_deferred: bool,
}

/// Result of rewriting for a request.
pub(crate) enum Outcome {
    /// The rewritten code.
    Code(Box<Rewriting>),
    /// The module does not contain the instruction.
    Nothing,
    /// Hooks cannot do it.
    Refused(Refusal),
}

/// Variables of hooks in device memory, by their names in the library.
pub(crate) struct Variables(BTreeMap<String, (Address, Vec<u8>)>);

impl Variables {
    /// Sets all variables to their initial values.
    pub fn reset(&self, gpu: &mut PtxGpu) -> Result<(), DeviceError> {
        self.0.values().try_for_each(|(address, content)| Machine::write(gpu, *address, content))
    }

    /// Writes a variable.
    pub fn write(&self, gpu: &mut PtxGpu, name: &str, bytes: &[u8]) -> Result<(), DeviceError> {
        let (address, content) = self.find(name)?;
        if content.len() != bytes.len() {
            let reason = format!("hooks expect {} bytes in `{name}`", content.len());
            return Err(DeviceError::Internal(reason));
        }
        Machine::write(gpu, *address, bytes)
    }

    /// Reads a variable as numbers of 64 bits.
    pub fn numbers(&self, gpu: &PtxGpu, name: &str) -> Result<Vec<u64>, DeviceError> {
        let (address, content) = self.find(name)?;
        let mut bytes = vec![0; content.len()];
        Machine::read(gpu, *address, &mut bytes)?;
        let (numbers, _) = bytes.as_chunks();
        Ok(numbers.iter().map(|number| u64::from_le_bytes(*number)).collect())
    }

    fn find(&self, name: &str) -> Result<&(Address, Vec<u8>), DeviceError> {
        let missing = || DeviceError::Internal(format!("hooks have no variable `{name}`"));
        self.0.get(name).ok_or_else(missing)
    }
}

/// The module of a request with its hooks, which keep the state of this many waves.
///
/// # Errors
/// [`PtxHookError`], also for hooks that do not compile.
pub(crate) fn rewrite(
    module: &Module,
    request: &Request,
    waves: u64,
    compiler: &PtxHookCompiler,
) -> Result<Result<Option<HookedModule>, Refusal>, PtxHookError> {
    let mut instrumentation = Instrumentation::new(module)?;
    let calls = match calls(&instrumentation, request) {
        Ok(calls) if calls.is_empty() => return Ok(Ok(None)),
        Ok(calls) => calls,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let target = instrumentation.target().and_then(Ptx::new).ok_or_else(|| {
        PtxHookError::Module("the module's `.target` is not one like sm_80".to_owned())
    })?;
    let compiled = compiler.compile(&source(request, waves), &target)?;
    let names: Vec<String> = compiled.variables().map(str::to_owned).collect();
    let library = instrumentation.add_library(compiled);
    for call in calls {
        if let Some((number, word)) = call.kept {
            instrumentation.keep_read(number, word);
        }
        let hook = HookCall {
            library,
            function: library_name(request, call.function),
            arguments: call.arguments,
            results: call.result.into_iter().collect(),
            lanes: Lanes::Active,
        };
        instrumentation.call(call.point, hook)?;
    }
    let rewritten = instrumentation.rewrite()?;
    let symbols = names.into_iter().filter_map(|name| {
        let symbol = rewritten.symbol(library, &name)?.to_owned();
        let known = name.strip_prefix(library::PREFIX).unwrap_or(&name).to_owned();
        Some((known, symbol))
    });
    let symbols = symbols.collect();
    Ok(Ok(Some(HookedModule { rewritten, symbols })))
}

/// A rewritten module.
pub(crate) struct HookedModule {
    /// The code.
    pub rewritten: Rewritten,
    /// Names of variables in the module by their names in the library.
    symbols: BTreeMap<String, String>,
}

impl HookedModule {
    /// Loads the module to a clone of the workload's device.
    pub fn load(self, workload: &Workload, request: &Request) -> Result<Rewriting, DeviceError> {
        let mut workload = workload.clone();
        let other = || DeviceError::Internal("hooks in PTX run only on a GPU for PTX".into());
        let gpu = workload.device.downcast_mut::<PtxGpu>().ok_or_else(other)?;
        let HookedModule { rewritten, symbols } = self;
        let module = gpu.load_rewritten(
            request.module,
            &rewritten.module,
            &rewritten.origins,
            Inserted::Free,
        )?;
        let mut variables = BTreeMap::new();
        for (name, symbol) in symbols {
            let Some((address, bytes)) = gpu.variable(module, &symbol) else { continue };
            let mut content = vec![0; bytes as usize];
            Machine::read(gpu, address, &mut content)?;
            variables.insert(name, (address, content));
        }
        let (variables, is_deferred) = (Variables(variables), request.is_deferred);
        Ok(Rewriting { workload, module, rewritten, variables, is_deferred })
    }
}
