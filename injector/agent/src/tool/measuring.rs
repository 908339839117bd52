//! A tool of the engine, put into each code object that an application loads.

use super::output::Output;
use crate::codes::HookedCodes;
use crate::inside::report_dispatches;
use flipwave_codeobj::CodeObject;
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

/// A tool at work.
pub struct Measuring<T> {
    options: Options,
    output: Arc<Output>,
    compiler: OnceLock<HookCompiler>,
    codes: HookedCodes<Code<T>>,
    /// Kernels without hooks that were to have them.
    without: Mutex<BTreeSet<(CodeId, Arc<str>)>>,
}

/// A code object with the tool in it.
struct Code<T> {
    tool: T,
    original: CodeObject,
    program: Disassembly,
    not_counted: NotCounted,
    /// The variables of its hooks.
    data: Vec<(Pc, HookData)>,
    /// Of each: how many bytes may be others than at the start. Nothing while that is not known;
    /// the loader has put there what they start with. Room for records is large, and few are
    /// written by most dispatches.
    changed: Mutex<Option<Vec<usize>>>,
    /// The version of its kernels that has the hooks.
    version: Version,
}

/// Why a dispatch has no rows.
#[derive(Debug, thiserror::Error)]
enum NoRows {
    #[error(transparent)]
    Tool(#[from] ToolError),
    #[error(transparent)]
    Hsa(#[from] HsaError),
}

impl<T: Tool> Measuring<T> {
    pub fn new(options: Options, output: Arc<Output>) -> Measuring<T> {
        Measuring {
            options,
            output,
            compiler: OnceLock::new(),
            codes: HookedCodes::default(),
            without: Mutex::default(),
        }
    }

    fn wants(&self, kernel: &str) -> bool {
        self.options.kernel.as_ref().is_none_or(|own| own == kernel)
    }

    fn compiler(&self) -> Result<&HookCompiler, ToolError> {
        if let Some(own) = self.compiler.get() {
            return Ok(own);
        }
        let found = HookCompiler::find()?;
        Ok(self.compiler.get_or_init(|| found))
    }

    /// Puts the tool into a kernel of a code object, which is loaded beside that.
    fn instrument_kernel(
        &self,
        object: &CodeObject,
        kernel: &str,
    ) -> Result<(Code<T>, CodeObject), ToolError> {
        let index = object.kernels().iter().position(|own| *own.name == *kernel);
        let small = index.map(|index| alone(object, index)).transpose()?.flatten();
        let original = small.unwrap_or_else(|| object.clone());
        let (code, rewritten) = self.put_in(&original, Some(kernel))?;
        Ok((Code { version: Version::Alternate, ..code }, rewritten.object))
    }

    /// Puts the tool into a code object.
    fn instrument(&self, object: &CodeObject) -> Result<(Code<T>, Replacement), ToolError> {
        let (code, rewritten) = self.put_in(object, self.options.kernel.as_deref())?;
        // Where there can be only one version of the code, it is the one with hooks, for every
        // dispatch: variables are shared then, too.
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

    /// Code with the tool in one kernel or in all.
    fn put_in(
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
        let mut asking = ToolRequests::new(&mut instrumentation, compiler, &self.options, scope);
        let tool = T::request_hooks(&mut asking)?;
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

    /// The code of a dispatch, if hooks run in it.
    fn code(&self, dispatch: &Dispatch) -> Option<Arc<Code<T>>> {
        let code = self.codes.of(dispatch.code, &dispatch.kernel);
        code.filter(|code| code.version == dispatch.version)
    }

    fn rows(
        &self,
        code: &Code<T>,
        dispatch: &Dispatch,
        memory: &Memory,
    ) -> Result<Vec<T::Row>, NoRows> {
        let bytes = code.read(dispatch, memory)?;
        let data = code.data.iter().map(|(_, data)| data);
        let variables: Vec<Variables<'_>> =
            data.zip(bytes).map(|(data, bytes)| Variables::new(data, bytes)).collect();
        let lost = code.tool.lost_records(&variables)?;
        self.output.lost(dispatch.number, &dispatch.kernel, lost);
        let scope = code.scope(&dispatch.kernel);
        Ok(code.tool.rows(&scope, &variables)?)
    }

    /// Notes that a kernel has no hooks, and why.
    fn lacks(&self, id: CodeId, kernel: &Arc<str>, reason: &dyn std::fmt::Display) {
        self.without().insert((id, Arc::clone(kernel)));
        let remark = format!("not counted: kernel {kernel}: {reason}");
        self.output.not_counted(format!("kernel {kernel}"), [remark]);
    }

    /// Notes that the kernels of a code object have no hooks, and why.
    fn all_lack(&self, id: CodeId, object: &CodeObject, reason: &dyn std::fmt::Display) {
        for kernel in object.kernels().iter().filter(|own| self.wants(&own.name)) {
            self.lacks(id, &kernel.name, reason);
        }
    }

    fn without(&self) -> MutexGuard<'_, BTreeSet<(CodeId, Arc<str>)>> {
        self.without.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Code<T> {
    /// What is looked at of a kernel.
    fn scope(&self, kernel: &str) -> ToolScope<'_> {
        ToolScope::new(&self.original, &self.program, Some(kernel)).without(&self.not_counted)
    }

    fn changed(&self) -> MutexGuard<'_, Option<Vec<usize>>> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the hooks of a dispatch have left.
    fn read(&self, dispatch: &Dispatch, memory: &Memory) -> Result<Vec<Vec<u8>>, HsaError> {
        let read = |(place, data): &(Pc, HookData)| {
            let mut bytes = vec![0; data.size() as usize];
            memory.read(dispatch.address_of(*place), &mut bytes)?;
            Ok(bytes)
        };
        let all = self.data.iter().map(read).collect::<Result<Vec<_>, HsaError>>()?;
        let after = |bytes: &Vec<u8>| bytes.iter().rposition(|byte| *byte != 0);
        let known = |(bytes, (_, data)): (&Vec<u8>, &(Pc, HookData))| {
            after(bytes).map_or(0, |last| last + 1).max(data.bytes.len())
        };
        *self.changed() = Some(all.iter().zip(&self.data).map(known).collect());
        Ok(all)
    }

    /// Gives the variables of the hooks the values that they start with.
    fn reset(&self, dispatch: &Dispatch, memory: &Memory) -> Result<(), HsaError> {
        let changed = self.changed().take();
        for (index, (place, data)) in self.data.iter().enumerate() {
            let all = data.size() as usize;
            let bytes = changed.as_ref().and_then(|own| own.get(index)).map_or(all, |own| *own);
            let mut start = data.bytes.clone();
            start.resize(bytes, 0);
            memory.write(dispatch.address_of(*place), &start)?;
        }
        Ok(())
    }
}

impl<T: Tool + Send + Sync> Interceptor for Measuring<T> {
    fn load(&self, id: CodeId, object: &CodeObject) -> Option<Replacement> {
        let mut kernels = object.kernels().iter().map(|kernel| &*kernel.name);
        if !kernels.any(|kernel| self.wants(kernel)) {
            return None;
        }
        // Kernels are looked at one by one, when they are dispatched, where that may be.
        if object.can_extract_kernels() {
            return None;
        }
        match self.instrument(object) {
            Ok((code, replacement)) => {
                self.codes.add(id, None, code);
                Some(replacement)
            }
            Err(reason) => {
                self.all_lack(id, object, &reason);
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
                self.lacks(id, kernel, &reason);
                None
            }
        }
    }

    fn alternate_rejected(&self, id: CodeId, kernel: &Arc<str>, reason: &HsaError) {
        if self.codes.remove(id, Some(Arc::clone(kernel))).is_some() {
            self.lacks(id, kernel, reason);
        }
    }

    fn replacement_rejected(&self, id: CodeId, reason: &HsaError) {
        if let Some(code) = self.codes.remove(id, None) {
            self.all_lack(id, &code.original, reason);
        }
    }

    fn version(&self, code: CodeId, kernel: &str) -> Version {
        let has_hooks = self.wants(kernel) && self.codes.of(code, &Arc::from(kernel)).is_some();
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
            if self.without().contains(&(dispatch.code, Arc::clone(kernel))) {
                self.output.marked::<T>(number, kernel);
            }
            return;
        };
        match self.rows(&code, dispatch, memory) {
            Ok(rows) => {
                let not_counted = T::uncounted_rows(&code.scope(kernel));
                self.output.rows::<T>(number, kernel, &rows, &not_counted);
            }
            Err(reason) => {
                self.output.marked::<T>(number, kernel);
                let remark = format!("not counted: dispatch {number}: {reason}");
                self.output.not_counted(format!("kernel {kernel}"), [remark]);
            }
        }
    }

    fn finish(&self) {
        self.output.finish();
    }
}
