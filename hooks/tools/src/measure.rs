//! A tool in all code of a list of dispatches.

use super::{
    Beside, Cells, NotCounted, Options, Substitutes, Tool, ToolError, ToolRequests, ToolScope,
};
use flipwave_codeobj::CodeObject;
use flipwave_device::{Completion, Device, DeviceFault, Dispatch, ModuleId, Statistics};
use flipwave_hooks::flow::Disassembly;
use flipwave_hooks::hook::{HookCompiler, Variables};
use flipwave_hooks::rewrite::{Instrumentation, Rewritten};
use std::collections::BTreeMap;

/// What a tool found.
#[derive(Clone, Debug)]
pub struct Measurement<R> {
    /// Each dispatch that was looked at, in their order.
    pub tables: Vec<DispatchTable<R>>,
    /// Each code object that the tool was put into.
    pub instrumented: Vec<Instrumented>,
}

/// A code object with a tool in it.
#[derive(Clone, Debug)]
pub struct Instrumented {
    /// The code as it was.
    pub original: ModuleId,
    /// The code with the tool.
    pub module: ModuleId,
    /// What was done; sites that were left out are in its report.
    pub rewritten: Rewritten,
}

/// What a tool found in one dispatch.
#[derive(Clone, Debug)]
pub struct DispatchTable<R> {
    /// Its index in the list.
    pub dispatch: usize,
    /// Its kernel.
    pub kernel: String,
    /// The rows.
    pub rows: Vec<R>,
    /// Rows for what could not be counted, see [`Tool::marked`].
    pub not_counted: Vec<Cells>,
    /// Records that found no place and are missing in the rows.
    pub lost: u64,
    /// What was executed, hooks included.
    pub statistics: Statistics,
}

/// A tool with the code that it was put into.
struct Running<'a, T> {
    tool: T,
    object: &'a CodeObject,
    program: Disassembly,
    substitutes: Substitutes,
    not_counted: NotCounted,
    code: Instrumented,
}

/// Puts a tool into the code of `dispatches`, loads it beside the original, and runs them.
///
/// `code_of` gives the code object of a loaded module. Dispatches of other kernels than
/// [`Options::kernel`] run as they are. Sites that were left out
/// are in the reports of [`Measurement::instrumented`].
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
    measure_beside::<T, D>(device, code_of, dispatches, options, compiler, None)
}

/// The same with something else put into the code, too, that of all kernels.
///
/// # Errors
/// [`ToolError`].
pub fn measure_beside<'a, T: Tool, D: Device>(
    device: &mut D,
    code_of: impl Fn(ModuleId) -> Option<&'a CodeObject>,
    dispatches: &[Dispatch],
    options: &Options,
    compiler: &HookCompiler,
    beside: Option<&dyn Beside>,
) -> Result<Measurement<T::Row>, ToolError> {
    let is_wanted = |dispatch: &Dispatch| {
        options.kernel.as_ref().is_none_or(|kernel| *kernel == dispatch.kernel)
    };
    if let Some(wanted) = &options.kernel
        && !dispatches.iter().any(is_wanted)
    {
        let mut present: Vec<String> = dispatches.iter().map(|own| own.kernel.clone()).collect();
        present.sort();
        present.dedup();
        return Err(ToolError::NoKernel { wanted: wanted.clone(), present });
    }
    let mut running: BTreeMap<u32, Running<'a, T>> = BTreeMap::new();
    let mut tables = Vec::new();
    for (index, dispatch) in dispatches.iter().enumerate() {
        if !is_wanted(dispatch) && beside.is_none() {
            complete(index, dispatch, device.dispatch(dispatch)?, |fault| fault)?;
            continue;
        }
        let module = dispatch.module.0;
        let own = match running.remove(&module) {
            Some(own) => own,
            None => {
                let object = code_of(dispatch.module)
                    .ok_or(ToolError::NoCode { dispatch: index, module })?;
                instrument(device, dispatch.module, object, options, compiler, beside)?
            }
        };
        tables.extend(Some(own.run(device, index, dispatch)?).filter(|_| is_wanted(dispatch)));
        running.insert(module, own);
    }
    let instrumented = running.into_values().map(|own| own.code).collect();
    Ok(Measurement { tables, instrumented })
}

fn instrument<'a, T: Tool>(
    device: &mut impl Device,
    original: ModuleId,
    object: &'a CodeObject,
    options: &Options,
    compiler: &HookCompiler,
    beside: Option<&dyn Beside>,
) -> Result<Running<'a, T>, ToolError> {
    let mut instrumentation = Instrumentation::new(object)?;
    if let Some(placement) = options.placement {
        instrumentation.place_all(placement);
    }
    let program = instrumentation.program().clone();
    let replacement = beside.map(|beside| beside.read(object, &program)).transpose()?;
    let substitutes = replacement.as_ref().map(|own| own.substitutes()).unwrap_or_default();
    let scope = ToolScope::new(object, &program, options.kernel.as_deref()).with(&substitutes);
    // The tool's source comes first: its variables are found there.
    let tool = T::ask(&mut ToolRequests::new(&mut instrumentation, compiler, options, scope))?;
    if let Some(own) = &replacement {
        own.ask(&mut instrumentation);
    }
    let rewritten = instrumentation.rewrite(compiler)?;
    if let Some(own) = &replacement {
        own.look_at(&program, &rewritten.report)?;
    }
    let module = device.load(&rewritten.object)?;
    let not_counted = NotCounted::of(&tool, &program, &rewritten.report.refused);
    let code = Instrumented { original, module, rewritten };
    Ok(Running { tool, object, program, substitutes, not_counted, code })
}

impl<T: Tool> Running<'_, T> {
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
        let scope = scope.with(&self.substitutes).without(&self.not_counted);
        let read = |data| Variables::read(device, self.code.module, data);
        let variables = self.code.rewritten.data.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        table.rows = self.tool.rows(&scope, &variables)?;
        table.not_counted = T::marked(&scope);
        table.lost = self.tool.lost(&variables)?;
        Ok(table)
    }

    /// A fault, with the address that its instruction had before.
    fn fault(&self, fault: DeviceFault) -> DeviceFault {
        DeviceFault { place: self.code.rewritten.layout.old_place(fault.place), ..fault }
    }
}

fn complete(
    index: usize,
    dispatch: &Dispatch,
    end: Completion,
    original: impl Fn(DeviceFault) -> DeviceFault,
) -> Result<Statistics, ToolError> {
    match end {
        Completion::Completed(statistics) => Ok(statistics),
        Completion::Faulted(fault) => Err(ToolError::Faulted {
            dispatch: index,
            kernel: dispatch.kernel.clone(),
            fault: original(fault),
        }),
    }
}
