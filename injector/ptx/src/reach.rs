//! Fault sites of a program that hooks cannot strike.

use crate::calls::calls;
use crate::request::{Instructions, Request};
use flipwave_arch::{Instruction, RegisterId, RegisterSpan};
use flipwave_injector::method::{Resources, words};
use flipwave_injector::{Duration, Fault, FaultModel, FaultTarget, Selection, Unreached, Workload};
use flipwave_ptx::{CallGraph, FunctionCode, Inst, PREDICATES, WORDS};
use flipwave_ptx_hooks::{Instrumentation, PtxHookError};
use flipwave_ptx_sim::PtxGpu;
use std::collections::BTreeSet;

/// Returns the words that `fault` can strike in the selection but hooks cannot. Empty for permanent faults, which
/// strike all instructions of an operation together.
///
/// # Errors
/// [`PtxHookError`] for modules that hooks cannot be inserted into.
pub fn unreached_by_hooks(
    workload: &Workload,
    fault: &Fault,
    selection: &Selection,
) -> Result<Unreached, PtxHookError> {
    let mut unreached = Unreached::default();
    if matches!(fault.duration, Duration::Permanent(_)) {
        return Ok(unreached);
    }
    let mut seen = BTreeSet::new();
    for (index, dispatch) in (0..).zip(&workload.program.dispatches) {
        let (module, kernel) = (dispatch.module, dispatch.kernel.as_str());
        let is_rewritten = workload.device.is_rewritten(module);
        if is_rewritten
            || !selection.has_dispatch(index, kernel)
            || !seen.insert((module.0, kernel))
        {
            continue;
        }
        let gpu = workload.device.downcast::<PtxGpu>();
        let Some(program) = gpu.and_then(|gpu| gpu.program(module)) else { continue };
        let instrumentation = Instrumentation::new(&program.module)?;
        let functions = &program.code.functions;
        let number = functions.iter().position(|function| *function.name == *kernel);
        let reachable = number.map(|kernel| CallGraph::of(&program.code).reachable(kernel));
        let reachable = reachable.unwrap_or_default();
        let all = reachable.iter().flat_map(|number| spans(&functions[*number])).collect();
        let registers = selection.registers_of(&workload.device, module);
        let resources =
            Resources { registers: all, lds_bytes: 4, buffers: vec![4], scratch_bytes: 4 };
        for inst in
            program.code.instructions.iter().filter(|inst| reachable.contains(&inst.function))
        {
            let line = workload.lines(dispatch).and_then(|table| table.lookup(inst.pc));
            if !selection.has_instruction(inst, line.as_ref()) {
                continue;
            }
            for request in requests(inst, fault, &resources, registers.as_deref(), module) {
                if calls(&instrumentation, &request).is_err() {
                    unreached.insert(kernel, inst.pc, request.place);
                }
            }
        }
    }
    Ok(unreached)
}

/// The registers of a function.
fn spans(function: &FunctionCode) -> Vec<RegisterSpan> {
    let span = |class, range: &std::ops::Range<u16>| {
        let first = RegisterId { class, number: range.start };
        (!range.is_empty()).then(|| RegisterSpan::new(first, range.end - range.start))
    };
    let spans = [span(&WORDS, &function.words), span(&PREDICATES, &function.predicates)];
    spans.into_iter().flatten().collect()
}

/// The requests for a fault at an instruction.
fn requests(
    inst: &Inst,
    fault: &Fault,
    resources: &Resources,
    registers: Option<&[RegisterSpan]>,
    module: flipwave_device::ModuleId,
) -> Vec<Request> {
    let model = fault.model.of_opcode(inst.operation().name());
    let fault = Fault { model, ..fault.clone() };
    if fault.target.part_of_sum().is_some() || fault.target == FaultTarget::Instruction {
        return Vec::new();
    }
    let is_number = fault.model.changes_numbers();
    let function = match fault.model {
        FaultModel::Function(function) => Some(function),
        _ => None,
    };
    let words = words(inst, &fault, resources, registers).into_iter();
    let places = words.flat_map(|words| {
        // Words of one memory behave alike.
        let count = if words.first.is_per_lane() { words.count } else { words.count.min(1) };
        (0..count).filter_map(move |index| Some((words.place(index)?, words.format)))
    });
    let request = |(place, format): (_, Option<_>)| Request {
        module,
        at: Instructions::At(inst.pc()),
        place,
        format: format.filter(|_| is_number),
        function,
        is_deferred: false,
    };
    places.map(request).collect()
}
