//! Instruments the code objects that an application loads with a tool.

use super::output::Output;
use crate::in_process::report_dispatches;
use crate::instrumented_codes::InstrumentedCodes;
use flipwave_codeobj::CodeObject;
use flipwave_device::kernel_matches;
use flipwave_hooks::flow::Disassembly;
use flipwave_hooks::hook::Variables;
use flipwave_hooks::hook::{HookCompiler, HookData};
use flipwave_hooks::rewrite::{Instrumentation, Rewritten, alone};
use flipwave_isa::Pc;
use flipwave_rocr::HsaError;
use flipwave_rocr::tools::{CodeId, Dispatch, Interceptor, Memory, Replacement, Version};
use flipwave_tools::{
    NotCounted, Options, Tool, ToolError, ToolRequests, ToolScope, refusal_reasons, refused_sites,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Interceptor that instruments kernels with a tool and writes its table.
pub struct ToolInterceptor<T> {
    options: Options,
    output: Arc<Output>,
    compiler: OnceLock<HookCompiler>,
    codes: InstrumentedCodes<Code<T>>,
    /// Kernels that could not be instrumented.
    uninstrumented: Mutex<BTreeSet<(CodeId, Arc<str>)>>,
}

/// A code object instrumented with the tool.
struct Code<T> {
    tool: T,
    original: CodeObject,
    program: Disassembly,
    not_counted: NotCounted,
    /// The variables of the hooks and their addresses.
    data: Vec<(Pc, HookData)>,
    /// For each variable, the number of leading bytes that may differ from the initial value; `None` if
    /// unknown. Resetting only these bytes saves time, since record buffers are large and most dispatches
    /// write few records.
    changed: Mutex<Option<Vec<usize>>>,
    /// The version of the kernels that has the hooks.
    version: Version,
}

/// Errors returned when building the rows of a dispatch.
#[derive(Debug, thiserror::Error)]
enum RowsError {
    #[error(transparent)]
    Tool(#[from] ToolError),
    #[error(transparent)]
    Hsa(#[from] HsaError),
}

impl<T: Tool> ToolInterceptor<T> {
    pub fn new(options: Options, output: Arc<Output>) -> ToolInterceptor<T> {
        ToolInterceptor {
            options,
            output,
            compiler: OnceLock::new(),
            codes: InstrumentedCodes::default(),
            uninstrumented: Mutex::default(),
        }
    }

    /// Returns `true` if the options select a kernel.
    fn wants(&self, kernel: &str) -> bool {
        self.options.kernel.as_ref().is_none_or(|pattern| kernel_matches(kernel, pattern))
    }

    /// The hook compiler, located at the first call.
    fn compiler(&self) -> Result<&HookCompiler, ToolError> {
        if let Some(compiler) = self.compiler.get() {
            return Ok(compiler);
        }
        let compiler = HookCompiler::find()?;
        Ok(self.compiler.get_or_init(|| compiler))
    }

    /// Instruments one kernel of a code object; the result is loaded in addition to the code object.
    fn instrument_kernel(
        &self,
        object: &CodeObject,
        kernel: &str,
    ) -> Result<(Code<T>, CodeObject), ToolError> {
        let mut names = object.kernels().iter().map(|kernel| &kernel.name);
        let index = names.position(|name| **name == *kernel);
        let reduced = index.map(|index| alone(object, index)).transpose()?.flatten();
        let original = reduced.unwrap_or_else(|| object.clone());
        let (code, rewritten) = self.rewrite(&original, Some(kernel))?;
        Ok((Code { version: Version::Alternate, ..code }, rewritten.object))
    }

    /// Instruments a whole code object; the result is loaded in place of it.
    fn instrument(&self, object: &CodeObject) -> Result<(Code<T>, Replacement), ToolError> {
        let (code, rewritten) = self.rewrite(object, self.options.kernel.as_deref())?;
        // If the original version cannot be included, every dispatch runs the instrumented one.
        Ok(match rewritten.beside(object, &code.program) {
            Ok(both) => {
                let replacement = Replacement { object: both.object, alternates: both.rewritten };
                (Code { version: Version::Alternate, ..code }, replacement)
            }
            Err(_) => {
                let alternates = BTreeMap::new();
                (code, Replacement { object: rewritten.object, alternates })
            }
        })
    }

    /// Instruments one kernel or all kernels of a code object.
    fn rewrite(
        &self,
        object: &CodeObject,
        kernel: Option<&str>,
    ) -> Result<(Code<T>, Rewritten), ToolError> {
        let compiler = self.compiler()?;
        let mut instrumentation = Instrumentation::new(object)?;
        if let Some(placement) = self.options.placement {
            instrumentation.place_all(placement);
        }
        let program = instrumentation.program().clone();
        let scope = ToolScope::new(object, &program, kernel);
        let mut requests = ToolRequests::new(&mut instrumentation, compiler, &self.options, scope);
        let tool = T::request_hooks(&mut requests)?;
        let rewritten = instrumentation.rewrite(compiler)?;
        let refused = &rewritten.report.refused;
        if !refused.is_empty() {
            let what = format!("{} sites", refused_sites(refused));
            self.output.not_counted(what, refusal_reasons(refused));
        }
        let not_counted = NotCounted::of(&tool, &program, refused);
        let (original, data) = (object.clone(), rewritten.data.clone());
        let changed = Mutex::new(Some(vec![0; data.len()]));
        let version = Version::Primary;
        Ok((Code { tool, original, program, not_counted, data, changed, version }, rewritten))
    }

    /// The code of a dispatch, if it runs with hooks.
    fn code(&self, dispatch: &Dispatch) -> Option<Arc<Code<T>>> {
        let code = self.codes.get(dispatch.code, &dispatch.kernel);
        code.filter(|code| code.version == dispatch.version)
    }

    /// Builds the rows of a dispatch that has ended.
    fn rows(
        &self,
        code: &Code<T>,
        dispatch: &Dispatch,
        memory: &Memory,
    ) -> Result<Vec<T::Row>, RowsError> {
        let bytes = code.read(dispatch, memory)?;
        let data = code.data.iter().map(|(_, data)| data);
        let variables: Vec<Variables<'_>> =
            data.zip(bytes).map(|(data, bytes)| Variables::new(data, bytes)).collect();
        let lost = code.tool.lost_records(&variables)?;
        self.output.lost(dispatch.number, &dispatch.kernel, lost);
        let scope = code.scope(&dispatch.kernel);
        Ok(code.tool.rows(&scope, &variables)?)
    }

    /// Records that a kernel could not be instrumented.
    fn add_uninstrumented(&self, id: CodeId, kernel: &Arc<str>, reason: &dyn std::fmt::Display) {
        self.uninstrumented().insert((id, Arc::clone(kernel)));
        let remark = format!("not counted: kernel {kernel}: {reason}");
        self.output.not_counted(format!("kernel {kernel}"), [remark]);
    }

    /// Records that the selected kernels of a code object could not be instrumented.
    fn add_all_uninstrumented(
        &self,
        id: CodeId,
        object: &CodeObject,
        reason: &dyn std::fmt::Display,
    ) {
        for kernel in object.kernels().iter().filter(|kernel| self.wants(&kernel.name)) {
            self.add_uninstrumented(id, &kernel.name, reason);
        }
    }

    fn uninstrumented(&self) -> MutexGuard<'_, BTreeSet<(CodeId, Arc<str>)>> {
        self.uninstrumented.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Code<T> {
    /// The instrumented code of a kernel.
    fn scope(&self, kernel: &str) -> ToolScope<'_> {
        ToolScope::new(&self.original, &self.program, Some(kernel)).without(&self.not_counted)
    }

    fn changed(&self) -> MutexGuard<'_, Option<Vec<usize>>> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the variables of the hooks after a dispatch.
    fn read(&self, dispatch: &Dispatch, memory: &Memory) -> Result<Vec<Vec<u8>>, HsaError> {
        let read = |(address, data): &(Pc, HookData)| {
            let mut bytes = vec![0; data.size() as usize];
            memory.read(dispatch.address_of(*address), &mut bytes)?;
            Ok(bytes)
        };
        let all = self.data.iter().map(read).collect::<Result<Vec<_>, HsaError>>()?;
        let last_nonzero = |bytes: &Vec<u8>| bytes.iter().rposition(|byte| *byte != 0);
        let changed = |(bytes, (_, data)): (&Vec<u8>, &(Pc, HookData))| {
            last_nonzero(bytes).map_or(0, |last| last + 1).max(data.bytes.len())
        };
        *self.changed() = Some(all.iter().zip(&self.data).map(changed).collect());
        Ok(all)
    }

    /// Resets the variables of the hooks to their initial values.
    fn reset(&self, dispatch: &Dispatch, memory: &Memory) -> Result<(), HsaError> {
        let changed = self.changed().take();
        for (index, (address, data)) in self.data.iter().enumerate() {
            let size = data.size() as usize;
            let changed = changed.as_ref().and_then(|sizes| sizes.get(index).copied());
            let mut initial = data.bytes.clone();
            initial.resize(changed.unwrap_or(size), 0);
            memory.write(dispatch.address_of(*address), &initial)?;
        }
        Ok(())
    }
}

impl<T: Tool + Send + Sync> Interceptor for ToolInterceptor<T> {
    fn load(&self, id: CodeId, object: &CodeObject) -> Option<Replacement> {
        let mut kernels = object.kernels().iter().map(|kernel| &*kernel.name);
        if !kernels.any(|kernel| self.wants(kernel)) {
            return None;
        }
        // If possible, kernels are instrumented one by one when they are dispatched.
        if object.can_extract_kernels() {
            return None;
        }
        match self.instrument(object) {
            Ok((code, replacement)) => {
                self.codes.add(id, None, code);
                Some(replacement)
            }
            Err(reason) => {
                self.add_all_uninstrumented(id, object, &reason);
                None
            }
        }
    }

    fn load_alternate(
        &self,
        id: CodeId,
        object: &CodeObject,
        kernel: &Arc<str>,
    ) -> Option<CodeObject> {
        if !self.wants(kernel) || !object.can_extract_kernels() {
            return None;
        }
        match self.instrument_kernel(object, kernel) {
            Ok((code, rewritten)) => {
                self.codes.add(id, Some(Arc::clone(kernel)), code);
                Some(rewritten)
            }
            Err(reason) => {
                self.add_uninstrumented(id, kernel, &reason);
                None
            }
        }
    }

    fn alternate_rejected(&self, id: CodeId, kernel: &Arc<str>, reason: &HsaError) {
        if self.codes.remove(id, Some(Arc::clone(kernel))).is_some() {
            self.add_uninstrumented(id, kernel, reason);
        }
    }

    fn replacement_rejected(&self, id: CodeId, reason: &HsaError) {
        if let Some(code) = self.codes.remove(id, None) {
            self.add_all_uninstrumented(id, &code.original, reason);
        }
    }

    fn version(&self, code: CodeId, kernel: &str) -> Version {
        let has_hooks = self.wants(kernel) && self.codes.get(code, &Arc::from(kernel)).is_some();
        if has_hooks { Version::Alternate } else { Version::Primary }
    }

    fn begin(&self, dispatch: &Dispatch, memory: &Memory) {
        report_dispatches();
        self.output.dispatched(&dispatch.kernel);
        let Some(code) = self.code(dispatch) else { return };
        if let Err(reason) = code.reset(dispatch, memory) {
            self.output.remark(format!("dispatch {}: {reason}", dispatch.number));
        }
    }

    fn end(&self, dispatch: &Dispatch, memory: &Memory) {
        let (number, kernel) = (dispatch.number, &dispatch.kernel);
        let code = self.code(dispatch).filter(|_| self.wants(kernel));
        let Some(code) = code else {
            if self.uninstrumented().contains(&(dispatch.code, Arc::clone(kernel))) {
                self.output.uncounted_dispatch::<T>(number, kernel);
            }
            return;
        };
        match self.rows(&code, dispatch, memory) {
            Ok(rows) => {
                let not_counted = T::uncounted_rows(&code.scope(kernel));
                self.output.rows::<T>(number, kernel, &rows, &not_counted);
            }
            Err(reason) => {
                self.output.uncounted_dispatch::<T>(number, kernel);
                let remark = format!("not counted: dispatch {number}: {reason}");
                self.output.not_counted(format!("kernel {kernel}"), [remark]);
            }
        }
    }

    fn finish(&self) {
        self.output.finish();
    }
}
