//! Fault sites of a program that hooks cannot strike.

use super::calls::{Call, calls};
use super::request::{Instructions, Request};
use super::rewriting::{Rewritten, rewrite};
use super::{BRANCH_REACH, WORKGROUP_WAVES, library};
use flipwave_arch::{Pc, RegisterSpan};
use flipwave_codeobj::CodeObject;
use flipwave_device::ModuleId;
use flipwave_hooks::hook::HookCompiler;
use flipwave_hooks::rewrite::{Instrumentation, RewriteError, alone};
use flipwave_injector::method::{Resources, Words, words};
use flipwave_injector::{Duration, Fault, FaultModel, FloatFormat, Scope, Selection, Unreached};
use flipwave_injector::{Place, Workload};
use flipwave_isa::{Inst, Register};
use flipwave_sim::EmbeddedGpu;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the words that `fault` can strike in the selection but hooks cannot. Empty for permanent
/// faults, which strike all instructions of an operation together.
///
/// # Errors
/// [`RewriteError`] for code that cannot be disassembled or hooks that do not compile.
pub fn unreached_by_hooks(
    workload: &Workload,
    fault: &Fault,
    selection: &Selection,
    compiler: &HookCompiler,
) -> Result<Unreached, RewriteError> {
    let mut unreached = Unreached::default();
    if matches!(fault.duration, Duration::Permanent(_)) {
        return Ok(unreached);
    }
    let mut seen = BTreeSet::new();
    for (index, dispatch) in (0..).zip(&workload.program.dispatches) {
        let (module, kernel) = (dispatch.module, dispatch.kernel.as_str());
        let is_guest = workload.device.is_rewritten(module);
        if is_guest || !selection.has_dispatch(index, kernel) || !seen.insert((module.0, kernel)) {
            continue;
        }
        let gpu = workload.device.downcast::<EmbeddedGpu>();
        let Some(object) = gpu.and_then(|gpu| gpu.code_object(module)) else { continue };
        let lines = workload.lines(dispatch);
        let is_selected = |inst: &Inst| {
            let line = lines.and_then(|table| table.lookup(inst.pc));
            selection.has_instruction(inst, line.as_ref())
        };
        let registers = selection.registers_of(&workload.device, module);
        let single = single_kernel(object, kernel)?;
        let search = Search {
            object: single.as_ref().unwrap_or(object),
            module,
            kernel,
            fault,
            registers: registers.as_deref(),
            compiler,
        };
        for (pc, place) in search.unreached(is_selected)? {
            unreached.insert(kernel, pc, place);
        }
    }
    Ok(unreached)
}

/// Extracts the kernel from a large library, as for rewriting.
fn single_kernel(object: &CodeObject, kernel: &str) -> Result<Option<CodeObject>, RewriteError> {
    let is_large = object.text().map(|section| section.size).sum::<u64>() > BRANCH_REACH;
    let index = object.kernels().iter().position(|candidate| *candidate.name == *kernel);
    match index.filter(|_| is_large && object.can_extract_kernels()) {
        Some(index) => alone(object, index),
        None => Ok(None),
    }
}

/// Searches one kernel and its callees for words that hooks cannot strike.
struct Search<'a> {
    object: &'a CodeObject,
    module: ModuleId,
    kernel: &'a str,
    fault: &'a Fault,
    /// The selected registers; `None` for all.
    registers: Option<&'a [RegisterSpan]>,
    compiler: &'a HookCompiler,
}

/// A word that hooks may be able to strike.
struct Candidate {
    request: Request,
    pc: Pc,
    place: Place,
    calls: Vec<Call>,
}

impl Search<'_> {
    fn unreached(
        &self,
        is_selected: impl Fn(&Inst) -> bool,
    ) -> Result<Vec<(Pc, Place)>, RewriteError> {
        let instrumentation = Instrumentation::new(self.object)?;
        let program = instrumentation.program();
        let index = self.object.kernels().iter().position(|kernel| *kernel.name == *self.kernel);
        let Some(function) = index.and_then(|kernel| program.kernel(kernel)) else {
            return Ok(Vec::new());
        };
        let mut unreached = Vec::new();
        // Hooks with the same source are inserted together.
        let mut candidates: BTreeMap<(String, Option<FloatFormat>), Vec<Candidate>> =
            BTreeMap::new();
        for function in program.reachable(function) {
            for (_, inst) in program.insts_of(program.functions[function].instructions) {
                if !is_selected(inst) {
                    continue;
                }
                for request in self.requests(inst) {
                    let (pc, place) = (inst.pc, request.place);
                    let is_wide_scalar = request.words() > 1 && !request.is_per_lane;
                    match calls(program, &request) {
                        Ok(_) if is_wide_scalar => unreached.push((pc, place)),
                        Ok(calls) => {
                            let source = library::source(&request, WORKGROUP_WAVES);
                            let key = (source.name, request.format);
                            let candidate = Candidate { request, pc, place, calls };
                            candidates.entry(key).or_default().push(candidate);
                        }
                        Err(_) => unreached.push((pc, place)),
                    }
                }
            }
        }
        for group in candidates.values() {
            unreached.extend(self.refused(group)?);
        }
        Ok(unreached)
    }

    /// The requests for a fault at an instruction, if hooks support its target.
    fn requests(&self, inst: &Inst) -> Vec<Request> {
        let model = self.fault.model.of_opcode(inst.operation.name());
        let fault = Fault { model, ..self.fault.clone() };
        if fault.target.part_of_sum().is_some() {
            return Vec::new();
        }
        // Registers that the instruction does not name behave alike, and so do words of memory.
        let named = inst.reads.iter().chain(&inst.writes).copied();
        let registers = named.map(RegisterSpan::from).collect();
        let resources = Resources { registers, lds_bytes: 4, buffers: vec![4], scratch_bytes: 0 };
        let words = words(inst, &fault, &resources, self.registers);
        let is_number = fault.model.changes_numbers();
        let function = match fault.model {
            FaultModel::Function(function) => Some(function),
            _ => None,
        };
        let request = |word: Words| {
            let place = word.first;
            let is_possible = match place {
                Place::Register(register) | Place::Source(register) => {
                    Register::of_id(register).is_some_and(Register::can_be_struck)
                }
                Place::Lds(_) | Place::Memory { .. } | Place::Branch => true,
                _ => false,
            };
            is_possible.then(|| Request {
                module: self.module,
                kernel: None,
                at: Instructions::At(inst.pc),
                place,
                is_per_lane: place.is_per_lane(),
                is_active: place.is_per_lane() && fault.scope == Scope::Workgroup,
                format: word.format.filter(|_| is_number),
                function,
            })
        };
        words.into_iter().filter_map(request).collect()
    }

    /// The candidates that the rewriter rejects. Candidates rejected together are tried one by one.
    fn refused(&self, candidates: &[Candidate]) -> Result<Vec<(Pc, Place)>, RewriteError> {
        let Some(first) = candidates.first() else { return Ok(Vec::new()) };
        let mut instrumentation = Instrumentation::new(self.object)?;
        instrumentation.set_checked(false);
        let wave_size = instrumentation.program().wave_size;
        let source = library::source(&first.request, WORKGROUP_WAVES);
        let source = self.compiler.read(&source, self.object.target(), wave_size)?;
        instrumentation.add_source(source);
        for (at, when, call) in candidates.iter().flat_map(|candidate| &candidate.calls) {
            instrumentation.call(*at, *when, call.clone());
        }
        let refused = match instrumentation.rewrite(self.compiler) {
            Ok(rewritten) => rewritten.report.refused.iter().map(|site| site.pc).collect(),
            // Many hooks at once may not fit although one does.
            Err(_) => candidates.iter().map(|candidate| candidate.pc).collect::<BTreeSet<Pc>>(),
        };
        let mut unreached = Vec::new();
        for candidate in candidates.iter().filter(|candidate| refused.contains(&candidate.pc)) {
            let alone = rewrite(self.object, &candidate.request, WORKGROUP_WAVES, self.compiler);
            if matches!(alone, Ok(Rewritten::Refused(_)) | Err(_)) {
                unreached.push((candidate.pc, candidate.place));
            }
        }
        Ok(unreached)
    }
}
