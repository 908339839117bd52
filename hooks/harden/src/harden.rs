//! The code object in which chosen instructions are executed twice.

use crate::duplicate::Duplicate;
use crate::plan::{Comparing, Errors, Plan};
use crate::{HardenError, Reason};
use flipwave_codeobj::CodeObject;
use flipwave_hooks::dataflow::Liveness;
use flipwave_hooks::flow::{Disassembly, InstIndex};
use flipwave_hooks::hook::{Argument, HookCompiler, Mask, Source};
use flipwave_hooks::rewrite::{HookCall, Instrumentation, Rewritten, Side, SourceIndex, When};
use flipwave_isa::{Pc, RegisterRange};
use flipwave_tools::{EmulatedInsts, Guest};
use std::collections::{BTreeMap, BTreeSet};

/// The variable of hardened code that counts the waves which have seen a difference: 64 bits.
pub const DETECTED: &str = "detected";

/// What hardened code does at the end of a wave.
const HOOKS: &str = include_str!("hooks.c");

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Hardening<'a> {
    /// The instructions to be executed twice, by their addresses.
    pub instructions: &'a BTreeSet<Pc>,
    /// How results are compared.
    pub comparing: Comparing,
}

/// A hardened code object.
#[derive(Clone, Debug)]
pub struct Hardened {
    /// The new code object, and where everything went.
    pub rewritten: Rewritten,
    /// The code as it was, which faults are injected into.
    pub guest: Guest,
    /// The instructions that are executed twice.
    pub duplicated: BTreeMap<Pc, Duplicated>,
    /// Instructions that were asked for and are executed once.
    pub left_out: BTreeMap<Pc, Reason>,
}

/// An instruction that is executed twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duplicated {
    /// Its results, which are compared.
    pub results: Vec<RegisterRange>,
    /// Instructions that it takes more, without waits.
    pub instructions: u32,
}

/// Hardens a code object.
///
/// # Errors
/// [`HardenError`]: the code cannot be changed, or a kernel has no room for what counts.
pub fn harden(
    object: &CodeObject,
    hardening: Hardening<'_>,
    compiler: &HookCompiler,
) -> Result<Hardened, HardenError> {
    let hardened = attempt(object, hardening, compiler)?;
    let is_refused = hardened.left_out.values().any(|reason| *reason == Reason::Refused);
    if is_refused && hardening.comparing == Comparing::Ends {
        // A copy that is missing leaves others without the shadows that they read.
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
    // What counts is rarely wanted: its address is computed where it is.
    instrumentation.set_keeping(&[]);
    for errors in &plan.errors {
        count_errors(&mut instrumentation, &program, errors, source)?;
    }
    // After what is done where kernels begin.
    for (at, duplicate) in &plan.duplicates {
        instrumentation.insert(*at, Side::Before, &duplicate.before);
        if !duplicate.after.is_empty() {
            instrumentation.insert(*at, Side::After, &duplicate.after);
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
    let guest = Guest::new(object, &program, &rewritten, &EmulatedInsts::default(), |_| Vec::new());
    let pc = |at: InstIndex| program.instructions[at].pc;
    let duplicated = plan.duplicates.into_iter().map(|(at, own)| {
        let Duplicate { results, instructions, .. } = own;
        (pc(at), Duplicated { results, instructions })
    });
    Ok(Hardened {
        duplicated: duplicated.collect(),
        left_out: plan.left_out.iter().map(|(at, reason)| (pc(*at), *reason)).collect(),
        rewritten,
        guest,
    })
}

/// Sets the lanes' sums to zero where the kernels of a component begin, and counts those that are not
/// where waves end.
fn count_errors(
    instrumentation: &mut Instrumentation<'_>,
    program: &Disassembly,
    errors: &Errors,
    source: SourceIndex,
) -> Result<(), HardenError> {
    let Errors { component, error, lanes } = errors;
    let first = program.functions[*component].instructions.start;
    let functions = instrumentation.component_of(first).map(|own| own.functions.clone());
    for index in functions.into_iter().flatten() {
        let function = &program.functions[index];
        if function.kernel.is_some() {
            if !program.blocks[function.blocks.start].predecessors.is_empty() {
                let reason = "its first instruction is executed more than once".to_owned();
                return Err(HardenError::Kernel { kernel: function.name.to_string(), reason });
            }
            let (word, exec) =
                if program.wave_size == 32 { ("b32", "exec_lo") } else { ("b64", "exec") };
            // In lanes that the wave does not have, too: in the end all are looked at.
            let begin = format!(
                "s_mov_{word} {lanes}, {exec}\ns_mov_{word} {exec}, -1\nv_mov_b32 {error}, 0\n\
                 s_mov_{word} {exec}, {lanes}"
            );
            instrumentation.insert(function.instructions.start, Side::Before, &begin);
        }
        for (at, inst) in program.insts_of(function.instructions) {
            if inst.ends_wave() {
                let call = HookCall {
                    source,
                    function: "end".to_owned(),
                    arguments: vec![Argument::Register(RegisterRange::new(*error, 1))],
                    results: Vec::new(),
                    // Lanes that EXEC selects nowhere near the end may have seen a difference.
                    mask: Mask::All,
                };
                instrumentation.call(at, When::Before, call);
            }
        }
    }
    Ok(())
}
