//! Instruments the code objects that an application loads with a tool.

use super::output::Output;
use super::record_taker::RecordTaker;
use crate::in_process::report_dispatches;
use crate::instrumented_codes::InstrumentedCodes;
use flipwave_codeobj::CodeObject;
use flipwave_device::{KernelPacket, kernel_matches};
use flipwave_hooks::flow::Disassembly;
use flipwave_hooks::hook::Variables;
use flipwave_hooks::hook::{HookCompiler, HookData};
use flipwave_hooks::rewrite::{Instrumentation, Rewritten, alone};
use flipwave_isa::Pc;
use flipwave_rocr::HsaError;
use flipwave_rocr::tools::{CodeId, Dispatch, Interceptor, Memory, Replacement, Version};
use flipwave_tools::{
    DISPATCH_NUMBER, DispatchColumns, DispatchFacts, LoadedStreams, Options, Recorded, TableRows,
    Tool, ToolCode, ToolError, ToolFile, ToolScope, refusal_reasons, refused_sites,
    uncounted_dispatch,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Interceptor that instruments kernels with a tool and writes its table.
pub struct ToolInterceptor {
    file: ToolFile,
    options: Options,
    output: Arc<Output>,
    compiler: OnceLock<HookCompiler>,
    /// The tool, started for the first code object.
    tool: Mutex<Option<Arc<Tool>>>,
    codes: InstrumentedCodes<Code>,
    submitted: Mutex<Submitted>,
    /// Kernels that could not be instrumented.
    uninstrumented: Mutex<BTreeSet<(CodeId, Arc<str>)>>,
    /// Takes the records of the running dispatch.
    taker: Mutex<Option<RecordTaker>>,
}

/// Numbers of submitted dispatches.
#[derive(Default)]
struct Submitted {
    all: u32,
    by_kernel: BTreeMap<Arc<str>, u32>,
}

/// A code object instrumented with the tool.
struct Code {
    tool: Arc<Tool>,
    hooks: ToolCode,
    original: CodeObject,
    program: Disassembly,
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

/// Errors returned when preparing the hooks' memory for a dispatch.
#[derive(Debug, thiserror::Error)]
enum RecordsError {
    #[error(transparent)]
    Hsa(#[from] HsaError),
    #[error("records beyond the space for them are lost: {0}")]
    Taker(#[from] std::io::Error),
}

impl ToolInterceptor {
    pub fn new(file: ToolFile, options: Options, output: Arc<Output>) -> ToolInterceptor {
        ToolInterceptor {
            file,
            options,
            output,
            compiler: OnceLock::new(),
            tool: Mutex::default(),
            submitted: Mutex::default(),
            codes: InstrumentedCodes::default(),
            uninstrumented: Mutex::default(),
            taker: Mutex::default(),
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

    /// The tool, which is started for the first code object.
    fn tool(&self, program: &Disassembly) -> Result<Arc<Tool>, ToolError> {
        let mut started = self.tool.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tool) = &*started {
            return Ok(Arc::clone(tool));
        }
        let compiler = self.compiler()?;
        let tool = Tool::start(&self.file, compiler, &program.target, program.wave_size)?;
        Ok(Arc::clone(started.insert(Arc::new(tool))))
    }

    /// The facts about a dispatch that has ended.
    fn facts(&self, tool: &Tool, dispatch: &Dispatch) -> DispatchFacts {
        DispatchFacts {
            number: dispatch.number,
            kernel: dispatch.kernel.to_string(),
            grid: dispatch.packet.grid,
            workgroup: dispatch.packet.workgroup,
            launch: tool.count_launch(&dispatch.kernel),
        }
    }

    /// Writes the rows of a dispatch.
    fn write(&self, tool: &Tool, dispatch: &Dispatch, found: Result<TableRows, RowsError>) {
        let kernel = &dispatch.kernel;
        let columns = DispatchColumns { dispatch: dispatch.number as usize, kernel };
        self.output.table(tool, columns, found);
    }

    /// Instruments one kernel of a code object; the result is loaded in addition to the code object.
    fn instrument_kernel(
        &self,
        object: &CodeObject,
        kernel: &str,
    ) -> Result<(Code, CodeObject), ToolError> {
        let mut names = object.kernels().iter().map(|kernel| &kernel.name);
        let index = names.position(|name| **name == *kernel);
        let reduced = index.map(|index| alone(object, index)).transpose()?.flatten();
        let original = reduced.unwrap_or_else(|| object.clone());
        let (code, rewritten) = self.rewrite(&original, Some(kernel))?;
        Ok((Code { version: Version::Alternate, ..code }, rewritten.object))
    }

    /// Instruments a whole code object; the result is loaded in place of it.
    fn instrument(&self, object: &CodeObject) -> Result<(Code, Replacement), ToolError> {
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
    ) -> Result<(Code, Rewritten), ToolError> {
        let compiler = self.compiler()?;
        let mut instrumentation = Instrumentation::new(object)?;
        if let Some(placement) = self.options.placement {
            instrumentation.place_all(placement);
        }
        let program = instrumentation.program().clone();
        let scope = ToolScope::new(object, &program, kernel);
        let tool = self.tool(&program)?;
        let lines = object.lines().unwrap_or_default();
        let mut hooks =
            tool.request_hooks(&mut instrumentation, compiler, &self.options, &scope, &lines)?;
        let rewritten = instrumentation.rewrite(compiler)?;
        let refused = &rewritten.report.refused;
        if !refused.is_empty() {
            let what = format!("{} sites", refused_sites(refused));
            self.output.not_counted(what, refusal_reasons(refused));
        }
        hooks.set_refused(&program, refused);
        let (original, data) = (object.clone(), rewritten.data.clone());
        let changed = Mutex::new(Some(vec![0; data.len()]));
        let version = Version::Primary;
        Ok((Code { tool, hooks, original, program, data, changed, version }, rewritten))
    }

    /// The code of a dispatch, if it runs with hooks.
    fn code(&self, dispatch: &Dispatch) -> Option<Arc<Code>> {
        let code = self.codes.get(dispatch.code, &dispatch.kernel);
        code.filter(|code| code.version == dispatch.version)
    }

    /// Builds the rows of a dispatch that has ended.
    fn rows(
        &self,
        code: &Code,
        dispatch: &Dispatch,
        memory: &Memory,
    ) -> Result<TableRows, RowsError> {
        let taken = self.taker().take().map(RecordTaker::finish).unwrap_or_default();
        if let Some(reason) = &taken.error {
            self.output.remark(format!("dispatch {}: records: {reason}", dispatch.number));
        }
        let bytes = code.read(dispatch, memory)?;
        let data = code.data.iter().map(|(_, data)| data);
        let variables = data.zip(bytes).map(|(data, bytes)| Variables::new(data, bytes)).next();
        let scope = code.scope(&dispatch.kernel);
        let recorded = variables.as_ref().map(|variables| Recorded {
            code: &code.hooks,
            scope: &scope,
            variables,
            taken: taken.records,
        });
        let facts = self.facts(&code.tool, dispatch);
        Ok(code.tool.rows(&facts, recorded)?)
    }

    fn taker(&self) -> MutexGuard<'_, Option<RecordTaker>> {
        self.taker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts to take the records of a dispatch's streams, if there are any.
    fn take_records(&self, code: &Code, dispatch: &Dispatch) -> Result<(), RecordsError> {
        let address_of = |pc: Pc| -> Result<_, HsaError> { Ok(dispatch.address_of(pc)) };
        let find = |data| code.hooks.streams(&code.tool, data, address_of);
        let streams = code.data.first().map(find).transpose()?;
        let Some(streams) = streams.filter(LoadedStreams::can_wait) else { return Ok(()) };
        *self.taker() = Some(RecordTaker::start(streams, dispatch)?);
        Ok(())
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

impl Code {
    /// The instrumented code of a kernel.
    fn scope(&self, kernel: &str) -> ToolScope<'_> {
        ToolScope::new(&self.original, &self.program, Some(kernel))
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
        if let Some((address, data)) = self.data.first()
            && let Some(symbol) = data.symbols.get(DISPATCH_NUMBER)
        {
            let at = Pc(address.0 + symbol.offset);
            memory.write(dispatch.address_of(at), &dispatch.number.to_le_bytes())?;
        }
        Ok(())
    }
}

impl Interceptor for ToolInterceptor {
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

    fn version(&self, code: CodeId, kernel: &Arc<str>, packet: &KernelPacket) -> Version {
        let (number, launch) = {
            let submitted = &mut *self.submitted.lock().unwrap_or_else(PoisonError::into_inner);
            let launch = submitted.by_kernel.entry(Arc::clone(kernel)).or_default();
            let numbers = (submitted.all, *launch);
            submitted.all += 1;
            *launch += 1;
            numbers
        };
        let Some(code) = self.codes.get(code, kernel).filter(|_| self.wants(kernel)) else {
            return Version::Primary;
        };
        let (grid, workgroup) = (packet.grid, packet.workgroup);
        let kernel = kernel.to_string();
        let facts = DispatchFacts { number, kernel, grid, workgroup, launch };
        match code.tool.chooses(&facts) {
            Ok(true) => Version::Alternate,
            Ok(false) => Version::Primary,
            Err(reason) => {
                self.output.not_counted(format!("kernel {}", facts.kernel), [reason.to_string()]);
                Version::Primary
            }
        }
    }

    fn begin(&self, dispatch: &Dispatch, memory: &Memory) {
        report_dispatches();
        self.output.dispatched(&dispatch.kernel);
        let Some(code) = self.code(dispatch) else { return };
        let reset = code.reset(dispatch, memory).map_err(RecordsError::from);
        if let Err(reason) = reset.and_then(|()| self.take_records(&code, dispatch)) {
            self.output.remark(format!("dispatch {}: {reason}", dispatch.number));
        }
    }

    fn end(&self, dispatch: &Dispatch, memory: &Memory) {
        let kernel = &dispatch.kernel;
        if !self.wants(kernel) {
            return;
        }
        if let Some(code) = self.code(dispatch) {
            let found = self.rows(&code, dispatch, memory);
            return self.write(&code.tool, dispatch, found);
        }
        let tool = self.tool.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(tool) = tool else { return };
        if self.uninstrumented().contains(&(dispatch.code, Arc::clone(kernel))) {
            let columns = DispatchColumns { dispatch: dispatch.number as usize, kernel };
            self.output.rows(columns, &tool.columns(), &[], &[uncounted_dispatch(&tool)]);
        } else if self.codes.get(dispatch.code, kernel).is_some() {
            // The tool chose the original code.
            let facts = self.facts(&tool, dispatch);
            self.write(&tool, dispatch, tool.rows(&facts, None).map_err(RowsError::from));
        }
    }

    fn finish(&self) {
        self.output.finish();
    }
}
