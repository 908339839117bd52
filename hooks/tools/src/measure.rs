//! Instruments the code of a list of dispatches with a tool and runs them.

use super::stream::LoadedStreams;
use super::{
    DispatchFacts, EmulatedInsts, Options, Recorded, Replacer, Row, TableRows, TakenRecords, Tool,
    ToolCode, ToolError, ToolFile, ToolScope,
};
use flipwave_codeobj::CodeObject;
use flipwave_device::{
    Completion, Device, DeviceError, DeviceFault, Dispatch, ModuleId, Statistics, kernel_matches,
};
use flipwave_hooks::flow::Disassembly;
use flipwave_hooks::hook::{HookCompiler, Variables};
use flipwave_hooks::rewrite::{Instrumentation, Refused, Rewritten};
use flipwave_isa::Pc;
use std::collections::BTreeMap;

/// The results of a tool for a list of dispatches.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// The names of the columns, after those of the dispatch.
    pub columns: Vec<String>,
    /// The tables of the measured dispatches, in their order.
    pub tables: Vec<DispatchTable>,
    /// The instrumented code objects of AMD GPUs.
    pub instrumented: Vec<Instrumented>,
    /// Calls of hooks that could not be inserted, by code object or module.
    pub refused: Vec<Vec<Refused>>,
}

/// A code object instrumented with a tool.
#[derive(Clone, Debug)]
pub struct Instrumented {
    /// The module of the original code.
    pub original: ModuleId,
    /// The module of the instrumented code.
    pub module: ModuleId,
    /// The result of rewriting, whose report lists the refused sites.
    pub rewritten: Rewritten,
}

/// The table of a tool for one dispatch.
#[derive(Clone, Debug)]
pub struct DispatchTable {
    /// The index of the dispatch in the list.
    pub dispatch: usize,
    /// The dispatched kernel.
    pub kernel: String,
    /// The rows of the table.
    pub rows: Vec<Row>,
    /// Rows for what could not be counted, with [`Cell::NotCounted`](super::Cell::NotCounted).
    pub not_counted: Vec<Row>,
    /// The number of records missing in the rows because a buffer was full.
    pub lost: u64,
    /// Statistics of the dispatch, including the hooks.
    pub statistics: Statistics,
}

/// A tool and the code object that it instruments.
struct InstrumentedCode<'a> {
    tool: ToolCode,
    object: &'a CodeObject,
    program: Disassembly,
    emulated: EmulatedInsts,
    code: Instrumented,
}

/// Instruments the code of `dispatches` with a tool, loads it in addition to the original code, and runs
/// the dispatches.
///
/// `code_of` returns the code object of a loaded module. Dispatches of kernels other than
/// [`Options::kernel`] run the original code. Refused sites are listed in the reports of
/// [`Measurement::instrumented`].
///
/// # Errors
/// [`ToolError`].
pub fn measure<'a, D: Device>(
    device: &mut D,
    code_of: impl Fn(ModuleId) -> Option<&'a CodeObject>,
    dispatches: &[Dispatch],
    file: &ToolFile,
    options: &Options,
    compiler: &HookCompiler,
) -> Result<Measurement, ToolError> {
    measure_with(device, code_of, dispatches, file, options, compiler, None)
}

/// Works like [`measure()`], and also lets `replacer` replace instructions in the code of all kernels.
///
/// # Errors
/// [`ToolError`].
pub fn measure_with<'a, D: Device>(
    device: &mut D,
    code_of: impl Fn(ModuleId) -> Option<&'a CodeObject>,
    dispatches: &[Dispatch],
    file: &ToolFile,
    options: &Options,
    compiler: &HookCompiler,
    replacer: Option<&dyn Replacer>,
) -> Result<Measurement, ToolError> {
    options.check_kernel(dispatches)?;
    let wave_size = dispatches.iter().find_map(|dispatch| wave_size(code_of(dispatch.module)?));
    let tool = Tool::start(file, compiler, device.target(), wave_size.unwrap_or(64))?;
    let mut codes: BTreeMap<u32, InstrumentedCode<'a>> = BTreeMap::new();
    let mut tables = Vec::new();
    for (index, dispatch) in dispatches.iter().enumerate() {
        let facts = options.wants(dispatch).then(|| tool.dispatch_facts(index, dispatch));
        let is_chosen = match &facts {
            Some(facts) => tool.chooses(facts)?,
            None => false,
        };
        if !is_chosen && replacer.is_none() {
            let statistics = complete(index, dispatch, device.dispatch(dispatch)?)?;
            let rows = facts.map(|facts| tool.rows(&facts, None)).transpose()?;
            tables.extend(rows.map(|found| DispatchTable::new(index, dispatch, found, statistics)));
            continue;
        }
        let module = dispatch.module.0;
        let code = match codes.remove(&module) {
            Some(code) => code,
            None => {
                let object = code_of(dispatch.module)
                    .ok_or(ToolError::NoCode { dispatch: index, module })?;
                instrument(device, dispatch.module, object, &tool, options, compiler, replacer)?
            }
        };
        let facts = facts.filter(|_| is_chosen);
        tables.extend(code.run(device, &tool, index, dispatch, facts.as_ref())?);
        codes.insert(module, code);
    }
    let instrumented: Vec<_> = codes.into_values().map(|code| code.code).collect();
    let refused = instrumented.iter().map(|code| code.rewritten.report.refused.clone()).collect();
    Ok(Measurement { columns: tool.columns(), tables, instrumented, refused })
}

impl Options {
    /// Returns `true` if the kernel of a dispatch is to be instrumented.
    pub(super) fn wants(&self, dispatch: &Dispatch) -> bool {
        self.kernel.as_ref().is_none_or(|pattern| kernel_matches(&dispatch.kernel, pattern))
    }

    /// Checks that some kernel is to be instrumented.
    ///
    /// # Errors
    /// [`ToolError::NoKernel`].
    pub(super) fn check_kernel(&self, dispatches: &[Dispatch]) -> Result<(), ToolError> {
        let Some(wanted) = &self.kernel else { return Ok(()) };
        if dispatches.iter().any(|dispatch| self.wants(dispatch)) {
            return Ok(());
        }
        let kernels = dispatches.iter().map(|dispatch| dispatch.kernel.clone());
        let mut present: Vec<String> = kernels.collect();
        present.sort();
        present.dedup();
        Err(ToolError::NoKernel { wanted: wanted.clone(), present })
    }
}

impl Tool {
    /// Counts a dispatch of a list, and returns the facts about it.
    pub(super) fn dispatch_facts(&self, index: usize, dispatch: &Dispatch) -> DispatchFacts {
        DispatchFacts {
            number: index as u32,
            kernel: dispatch.kernel.clone(),
            grid: dispatch.grid,
            workgroup: dispatch.workgroup,
            launch: self.count_launch(&dispatch.kernel),
        }
    }
}

impl DispatchTable {
    /// The table of a dispatch with these rows.
    pub(super) fn new(
        index: usize,
        dispatch: &Dispatch,
        found: TableRows,
        statistics: Statistics,
    ) -> DispatchTable {
        DispatchTable {
            dispatch: index,
            kernel: dispatch.kernel.clone(),
            rows: found.rows,
            not_counted: found.not_counted,
            lost: found.lost,
            statistics,
        }
    }
}

/// The wave size of the first kernel of a code object, if it has one.
pub fn wave_size(object: &CodeObject) -> Option<u8> {
    Some(Disassembly::of_kernel(object, 0).ok()?.wave_size)
}

/// Instruments a code object and loads the result.
fn instrument<'a>(
    device: &mut impl Device,
    original: ModuleId,
    object: &'a CodeObject,
    tool: &Tool,
    options: &Options,
    compiler: &HookCompiler,
    replacer: Option<&dyn Replacer>,
) -> Result<InstrumentedCode<'a>, ToolError> {
    let mut instrumentation = Instrumentation::new(object)?;
    if let Some(placement) = options.placement {
        instrumentation.place_all(placement);
    }
    let program = instrumentation.program().clone();
    let replacements = replacer.map(|replacer| replacer.find(object, &program)).transpose()?;
    let emulated =
        replacements.as_ref().map(|replacements| replacements.emulated()).unwrap_or_default();
    let scope =
        ToolScope::new(object, &program, options.kernel.as_deref()).with_emulated(&emulated);
    let lines = object.lines().unwrap_or_default();
    // The tool's variables are those of the first source, so its hooks are requested first.
    let mut hooks = tool.request_hooks(&mut instrumentation, compiler, options, &scope, &lines)?;
    if let Some(replacements) = &replacements {
        replacements.request_hooks(&mut instrumentation);
    }
    let rewritten = instrumentation.rewrite(compiler)?;
    if let Some(replacements) = &replacements {
        replacements.check(&program, &rewritten.report)?;
    }
    let module = device.load(&rewritten.object)?;
    hooks.set_refused(&program, &rewritten.report.refused);
    let code = Instrumented { original, module, rewritten };
    Ok(InstrumentedCode { tool: hooks, object, program, emulated, code })
}

impl InstrumentedCode<'_> {
    /// Runs a dispatch on the instrumented code and builds its table, if there are facts for the tool.
    fn run(
        &self,
        device: &mut impl Device,
        tool: &Tool,
        index: usize,
        dispatch: &Dispatch,
        facts: Option<&DispatchFacts>,
    ) -> Result<Option<DispatchTable>, ToolError> {
        for data in &self.code.rewritten.data {
            Variables::reset(device, self.code.module, data)?;
        }
        if let Some(data) = self.code.rewritten.data.first()
            && data.1.symbols.contains_key(DISPATCH_NUMBER)
        {
            let number = (index as u32).to_le_bytes();
            Variables::write(device, self.code.module, data, DISPATCH_NUMBER, &number)?;
        }
        let instrumented = Dispatch { module: self.code.module, ..dispatch.clone() };
        let mut taken = TakenRecords::default();
        let end = self.dispatch(device, tool, &instrumented, &mut taken)?;
        let end = match end {
            Completion::Faulted(fault) => return Err(self.failure(tool, index, dispatch, fault)),
            end => end,
        };
        let statistics = complete(index, dispatch, end)?;
        let Some(facts) = facts else { return Ok(None) };
        let scope = ToolScope::new(self.object, &self.program, Some(&dispatch.kernel));
        let scope = scope.with_emulated(&self.emulated);
        let read = |data| Variables::read(device, self.code.module, data);
        let variables = self.code.rewritten.data.first().map(read).transpose()?;
        let recorded = variables.as_ref().map(|variables| {
            let (code, scope) = (&self.tool, &scope);
            Recorded { code, scope, variables, taken }
        });
        let found = tool.rows(facts, recorded)?;
        Ok(Some(DispatchTable::new(index, dispatch, found, statistics)))
    }

    /// Runs a dispatch of the instrumented code. If the device can, takes the records of streams meanwhile, so
    /// that none is lost.
    fn dispatch(
        &self,
        device: &mut impl Device,
        tool: &Tool,
        dispatch: &Dispatch,
        taken: &mut TakenRecords,
    ) -> Result<Completion, DeviceError> {
        let address_of = |pc: Pc| device.address_of(self.code.module, pc.0);
        let find = |data| self.tool.streams(tool, data, address_of);
        let streams = self.code.rewritten.data.first().map(find).transpose()?;
        if let Some(streams) = streams.filter(LoadedStreams::can_wait) {
            streams.set_waits(device, true)?;
            let between = &mut |device: &mut _| streams.take(device, taken);
            if let Some(end) = device.dispatch_attended(dispatch, between)? {
                return Ok(end);
            }
            streams.set_waits(device, false)?;
        }
        device.dispatch(dispatch)
    }

    /// The error for a fault, with its location in the original code, and with the hook if it occurred there.
    fn failure(
        &self,
        tool: &Tool,
        index: usize,
        dispatch: &Dispatch,
        fault: DeviceFault,
    ) -> ToolError {
        let Rewritten { layout, claims, .. } = &self.code.rewritten;
        let at = claims.inserted_for(fault.place.pc);
        let fault = fault.map_locations(|location| layout.original_location(location));
        let kernel = dispatch.kernel.clone();
        let hooked = at.and_then(|at| Some((self.tool.hooks_at(at), self.program.inst(at)?)));
        match hooked {
            Some((hooks, inst)) if !hooks.is_empty() => {
                let hooks = hooks.iter().map(|hook| tool.file().describe_hook(hook));
                let hook = hooks.collect::<Vec<_>>().join(" or ");
                let instruction = inst.text.trim().to_owned();
                let fault = Box::new(fault);
                ToolError::HookFaulted { dispatch: index, kernel, hook, instruction, fault }
            }
            _ => ToolError::Faulted { dispatch: index, kernel, fault },
        }
    }
}

/// The variable of hooks with the number of the dispatch (`flipwave_tool.h`).
pub const DISPATCH_NUMBER: &str = "flipwave_dispatch_number";

/// Returns the statistics of a completed dispatch.
pub(super) fn complete(
    index: usize,
    dispatch: &Dispatch,
    end: Completion,
) -> Result<Statistics, ToolError> {
    match end {
        Completion::Completed(statistics) => Ok(statistics),
        Completion::Faulted(fault) => {
            let kernel = dispatch.kernel.clone();
            Err(ToolError::Faulted { dispatch: index, kernel, fault })
        }
    }
}
