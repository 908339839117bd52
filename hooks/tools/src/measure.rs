//! Instruments the code of a list of dispatches with a tool and runs them.

use super::{
    Cells, EmulatedInsts, NotCounted, Options, Replacer, Tool, ToolError, ToolRequests, ToolScope,
};
use flipwave_codeobj::CodeObject;
use flipwave_device::{
    Completion, Device, DeviceFault, Dispatch, ModuleId, Statistics, kernel_matches,
};
use flipwave_hooks::flow::Disassembly;
use flipwave_hooks::hook::{HookCompiler, Variables};
use flipwave_hooks::rewrite::{Instrumentation, Rewritten};
use std::collections::BTreeMap;

/// The results of a tool for a list of dispatches.
#[derive(Clone, Debug)]
pub struct Measurement<R> {
    /// The tables of the measured dispatches, in their order.
    pub tables: Vec<DispatchTable<R>>,
    /// The instrumented code objects.
    pub instrumented: Vec<Instrumented>,
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
pub struct DispatchTable<R> {
    /// The index of the dispatch in the list.
    pub dispatch: usize,
    /// The dispatched kernel.
    pub kernel: String,
    /// The rows of the table.
    pub rows: Vec<R>,
    /// Rows for the instructions that could not be counted, see [`Tool::uncounted_rows`].
    pub not_counted: Vec<Cells>,
    /// The number of records missing in the rows because the record buffer was full.
    pub lost: u64,
    /// Statistics of the dispatch, including the hooks.
    pub statistics: Statistics,
}

/// A tool and the code object that it instruments.
struct InstrumentedCode<'a, T> {
    tool: T,
    object: &'a CodeObject,
    program: Disassembly,
    emulated: EmulatedInsts,
    not_counted: NotCounted,
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
pub fn measure<'a, T: Tool, D: Device>(
    device: &mut D,
    code_of: impl Fn(ModuleId) -> Option<&'a CodeObject>,
    dispatches: &[Dispatch],
    options: &Options,
    compiler: &HookCompiler,
) -> Result<Measurement<T::Row>, ToolError> {
    measure_with::<T, D>(device, code_of, dispatches, options, compiler, None)
}

/// Works like [`measure()`], and also lets `replacer` replace instructions in the code of all kernels.
///
/// # Errors
/// [`ToolError`].
pub fn measure_with<'a, T: Tool, D: Device>(
    device: &mut D,
    code_of: impl Fn(ModuleId) -> Option<&'a CodeObject>,
    dispatches: &[Dispatch],
    options: &Options,
    compiler: &HookCompiler,
    replacer: Option<&dyn Replacer>,
) -> Result<Measurement<T::Row>, ToolError> {
    let is_wanted = |dispatch: &Dispatch| {
        options.kernel.as_ref().is_none_or(|pattern| kernel_matches(&dispatch.kernel, pattern))
    };
    if let Some(wanted) = &options.kernel
        && !dispatches.iter().any(is_wanted)
    {
        let kernels = dispatches.iter().map(|dispatch| dispatch.kernel.clone());
        let mut present: Vec<String> = kernels.collect();
        present.sort();
        present.dedup();
        return Err(ToolError::NoKernel { wanted: wanted.clone(), present });
    }
    let mut codes: BTreeMap<u32, InstrumentedCode<'a, T>> = BTreeMap::new();
    let mut tables = Vec::new();
    for (index, dispatch) in dispatches.iter().enumerate() {
        if !is_wanted(dispatch) && replacer.is_none() {
            complete(index, dispatch, device.dispatch(dispatch)?, |fault| fault)?;
            continue;
        }
        let module = dispatch.module.0;
        let code = match codes.remove(&module) {
            Some(code) => code,
            None => {
                let object = code_of(dispatch.module)
                    .ok_or(ToolError::NoCode { dispatch: index, module })?;
                instrument(device, dispatch.module, object, options, compiler, replacer)?
            }
        };
        tables.extend(Some(code.run(device, index, dispatch)?).filter(|_| is_wanted(dispatch)));
        codes.insert(module, code);
    }
    let instrumented = codes.into_values().map(|code| code.code).collect();
    Ok(Measurement { tables, instrumented })
}

/// Instruments a code object and loads the result.
fn instrument<'a, T: Tool>(
    device: &mut impl Device,
    original: ModuleId,
    object: &'a CodeObject,
    options: &Options,
    compiler: &HookCompiler,
    replacer: Option<&dyn Replacer>,
) -> Result<InstrumentedCode<'a, T>, ToolError> {
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
    // The tool reads its variables from the first source, so its hooks are requested first.
    let requests = &mut ToolRequests::new(&mut instrumentation, compiler, options, scope);
    let tool = T::request_hooks(requests)?;
    if let Some(replacements) = &replacements {
        replacements.request_hooks(&mut instrumentation);
    }
    let rewritten = instrumentation.rewrite(compiler)?;
    if let Some(replacements) = &replacements {
        replacements.check(&program, &rewritten.report)?;
    }
    let module = device.load(&rewritten.object)?;
    let not_counted = NotCounted::of(&tool, &program, &rewritten.report.refused);
    let code = Instrumented { original, module, rewritten };
    Ok(InstrumentedCode { tool, object, program, emulated, not_counted, code })
}

impl<T: Tool> InstrumentedCode<'_, T> {
    /// Runs a dispatch on the instrumented code and builds its table.
    fn run(
        &self,
        device: &mut impl Device,
        index: usize,
        dispatch: &Dispatch,
    ) -> Result<DispatchTable<T::Row>, ToolError> {
        for data in &self.code.rewritten.data {
            Variables::reset(device, self.code.module, data)?;
        }
        let instrumented = Dispatch { module: self.code.module, ..dispatch.clone() };
        let end = device.dispatch(&instrumented)?;
        let statistics = complete(index, dispatch, end, |fault| self.fault(fault))?;
        let mut table = DispatchTable {
            dispatch: index,
            kernel: dispatch.kernel.clone(),
            rows: Vec::new(),
            not_counted: Vec::new(),
            lost: 0,
            statistics,
        };
        let scope = ToolScope::new(self.object, &self.program, Some(&dispatch.kernel));
        let scope = scope.with_emulated(&self.emulated).without(&self.not_counted);
        let read = |data| Variables::read(device, self.code.module, data);
        let variables = self.code.rewritten.data.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        table.rows = self.tool.rows(&scope, &variables)?;
        table.not_counted = T::uncounted_rows(&scope);
        table.lost = self.tool.lost_records(&variables)?;
        Ok(table)
    }

    /// Translates the location of a fault to the original code.
    fn fault(&self, fault: DeviceFault) -> DeviceFault {
        DeviceFault { place: self.code.rewritten.layout.original_location(fault.place), ..fault }
    }
}

/// Returns the statistics of a completed dispatch. The error of a faulted one has the fault translated
/// by `translate`.
fn complete(
    index: usize,
    dispatch: &Dispatch,
    end: Completion,
    translate: impl Fn(DeviceFault) -> DeviceFault,
) -> Result<Statistics, ToolError> {
    match end {
        Completion::Completed(statistics) => Ok(statistics),
        Completion::Faulted(fault) => Err(ToolError::Faulted {
            dispatch: index,
            kernel: dispatch.kernel.clone(),
            fault: translate(fault),
        }),
    }
}
