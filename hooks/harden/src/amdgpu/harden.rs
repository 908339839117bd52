//! Creates a code object with chosen instructions duplicated.

use super::duplicate::Duplicate;
use super::plan::{ErrorRegisters, Plan};
use crate::{Comparing, Duplicated, HardenError, Hardening, Reason};
use flipwave_arch::RegisterId;
use flipwave_codeobj::CodeObject;
use flipwave_hooks::dataflow::Liveness;
use flipwave_hooks::flow::{Disassembly, InstIndex};
use flipwave_hooks::hook::{Argument, HookCompiler, Mask, Source};
use flipwave_hooks::rewrite::{HookCall, Instrumentation, Rewritten, SourceIndex, When};
use flipwave_isa::{Pc, RegisterRange};
use flipwave_tools::{EmulatedInsts, Guest};
use std::collections::BTreeMap;

/// The source of the hook that runs at the end of a wave.
const HOOKS: &str = include_str!("hooks.c");

/// A hardened code object.
#[derive(Clone, Debug)]
pub struct Hardened {
    /// The rewritten code object.
    pub rewritten: Rewritten,
    /// The original code, into which faults are injected.
    pub guest: Guest,
    /// The duplicated instructions.
    pub duplicated: BTreeMap<Pc, Duplicated>,
    /// The requested instructions that are not duplicated, with the reason.
    pub left_out: BTreeMap<Pc, Reason>,
}

/// Hardens a code object.
///
/// # Errors
/// [`HardenError`] if the code cannot be rewritten, or the hook that counts cannot be inserted.
pub fn harden(
    object: &CodeObject,
    hardening: Hardening<'_>,
    compiler: &HookCompiler,
) -> Result<Hardened, HardenError> {
    let hardened = attempt(object, hardening, compiler)?;
    let is_refused = hardened.left_out.values().any(|reason| *reason == Reason::Refused);
    if is_refused && hardening.comparing == Comparing::Ends {
        // Other copies would read the shadow of a missing copy.
        return attempt(object, Hardening { comparing: Comparing::Each, ..hardening }, compiler);
    }
    Ok(hardened)
}

fn attempt(
    object: &CodeObject,
    hardening: Hardening<'_>,
    compiler: &HookCompiler,
) -> Result<Hardened, HardenError> {
    let mut instrumentation = Instrumentation::new(object)?;
    let program = instrumentation.program().clone();
    let chosen = hardening.instructions.iter().filter_map(|pc| program.at(*pc)).collect();
    let liveness = Liveness::new(&program);
    let mut plan = Plan::new(&mut instrumentation, &liveness, &chosen, hardening.comparing)?;
    let source = Source {
        name: "hardening".to_owned(),
        text: HOOKS.to_owned(),
        include: Vec::new(),
        defines: Vec::new(),
    };
    let source = compiler.read(&source, &program.target, program.wave_size)?;
    let source = instrumentation.add_source(source);
    // The counter is rarely accessed, so no register is reserved for its address.
    instrumentation.set_value_storage(&[]);
    for errors in &plan.errors {
        count_errors(&mut instrumentation, &program, errors, source)?;
    }
    // Inserted last, to come after the code at the start of kernels.
    for (at, duplicate) in &plan.duplicates {
        instrumentation.insert(*at, When::Before, &duplicate.before);
        if !duplicate.after.is_empty() {
            instrumentation.insert(*at, When::After, &duplicate.after);
        }
    }
    let rewritten = instrumentation.rewrite(compiler)?;
    for refused in &rewritten.report.refused {
        let at = program.at(refused.pc);
        if !refused.hook.is_empty() {
            let kernel = at.map(|at| program.functions[program.function_of(at)].name.to_string());
            let (kernel, reason) = (kernel.unwrap_or_default(), refused.reason.clone());
            return Err(HardenError::Kernel { kernel, reason });
        }
        if let Some(at) = at.filter(|at| plan.duplicates.remove(at).is_some()) {
            plan.left_out.insert(at, Reason::Refused);
        }
    }
    let emulated = EmulatedInsts::default();
    let guest = Guest::new(object, &program, &rewritten, &emulated, |_| Vec::new());
    let pc = |at: InstIndex| program.instructions[at].pc;
    let duplicated = plan.duplicates.into_iter().map(|(at, duplicate)| {
        let Duplicate { results, instructions, .. } = duplicate;
        let results = results.iter().flat_map(|range| range.iter()).map(RegisterId::from).collect();
        (pc(at), Duplicated { results, instructions })
    });
    Ok(Hardened {
        duplicated: duplicated.collect(),
        left_out: plan.left_out.iter().map(|(at, reason)| (pc(*at), *reason)).collect(),
        rewritten,
        guest,
    })
}

/// Inserts code that clears the sums of differences at the start of a component's kernels, and that counts
/// waves with nonzero sums at their end.
fn count_errors(
    instrumentation: &mut Instrumentation<'_>,
    program: &Disassembly,
    errors: &ErrorRegisters,
    source: SourceIndex,
) -> Result<(), HardenError> {
    let ErrorRegisters { component, error, lanes } = errors;
    let first = program.functions[*component].instructions.start;
    let functions =
        instrumentation.component_of(first).map(|component| component.functions.clone());
    for index in functions.into_iter().flatten() {
        let function = &program.functions[index];
        if function.kernel.is_some() {
            if !program.blocks[function.blocks.start].predecessors.is_empty() {
                let reason = "its first instruction is executed more than once".to_owned();
                return Err(HardenError::Kernel { kernel: function.name.to_string(), reason });
            }
            let (word, exec) =
                if program.wave_size == 32 { ("b32", "exec_lo") } else { ("b64", "exec") };
            // Clears all lanes, also those that the wave does not have, because all are checked at the end.
            let clear = format!(
                "s_mov_{word} {lanes}, {exec}\ns_mov_{word} {exec}, -1\nv_mov_b32 {error}, 0\n\
                 s_mov_{word} {exec}, {lanes}"
            );
            instrumentation.insert(function.instructions.start, When::Before, &clear);
        }
        for (at, inst) in program.insts_of(function.instructions) {
            if inst.ends_wave() {
                let call = HookCall {
                    source,
                    function: "end".to_owned(),
                    arguments: vec![Argument::Register(RegisterRange::new(*error, 1))],
                    results: Vec::new(),
                    // Lanes that are inactive at the end may have detected a difference.
                    mask: Mask::All,
                };
                instrumentation.call(at, When::Before, call);
            }
        }
    }
    Ok(())
}
