//! The code object in which chosen instructions are executed twice.

use crate::duplicate::{Duplicate, Shadows, needed, results};
use crate::{HardenError, Reason};
use flipwave_codeobj::CodeObject;
use flipwave_hooks::flow::{Disassembly, FunctionIndex, InstIndex};
use flipwave_hooks::hook::{Argument, HookCompiler, Mask, Source};
use flipwave_hooks::registers::{Allocation, RegisterRun};
use flipwave_hooks::rewrite::{HookCall, Instrumentation, Rewritten, Side, SourceIndex, When};
use flipwave_isa::{Pc, RegisterRange, RegisterSet};
use flipwave_tools::{Guest, Substitutes};
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
    /// Whether results are compared. Without it nothing is ever detected: it is for those who check
    /// that somebody notices.
    pub compares: bool,
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
    let mut instrumentation = Instrumentation::new(object)?;
    let program = instrumentation.program().clone();
    let chosen = hardening.instructions.iter().filter_map(|pc| program.at(*pc)).collect();
    let mut plan = Plan::new(&mut instrumentation, &chosen, hardening.compares)?;
    for (at, duplicate) in &plan.duplicates {
        instrumentation.insert(*at, Side::Before, &duplicate.before);
        if !duplicate.after.is_empty() {
            instrumentation.insert(*at, Side::After, &duplicate.after);
        }
    }
    let source = Source {
        name: "hardening".to_owned(),
        text: HOOKS.to_owned(),
        include: Vec::new(),
        defines: Vec::new(),
    };
    let source = compiler.read(&source, &program.target, program.wave_size)?;
    let source = instrumentation.add_source(source);
    for (component, shadows) in &plan.shadows {
        count_errors(&mut instrumentation, &program, *component, shadows, source)?;
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
    let guest = Guest::new(&program, &rewritten, &Substitutes::default(), |_| Vec::new());
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
    component: FunctionIndex,
    shadows: &Shadows,
    source: SourceIndex,
) -> Result<(), HardenError> {
    let error = RegisterRange::new(shadows.error, 1);
    // Lanes that EXEC selects nowhere near the end may have seen a difference.
    let call = |function: &str, arguments, results| HookCall {
        source,
        function: function.to_owned(),
        arguments,
        results,
        mask: Mask::All,
    };
    let first = program.functions[component].instructions.start;
    let functions = instrumentation.component_of(first).map(|own| own.functions.clone());
    for index in functions.into_iter().flatten() {
        let function = &program.functions[index];
        if function.kernel.is_some() {
            let start = function.instructions.start;
            if !program.blocks[function.blocks.start].predecessors.is_empty() {
                let reason = "its first instruction is executed more than once".to_owned();
                return Err(HardenError::Kernel { kernel: function.name.to_string(), reason });
            }
            instrumentation.call(start, When::Before, call("begin", vec![], vec![error]));
        }
        for (at, inst) in program.insts_of(function.instructions) {
            if inst.ends_wave() {
                let arguments = vec![Argument::Register(error)];
                instrumentation.call(at, When::Before, call("end", arguments, vec![]));
            }
        }
    }
    Ok(())
}

/// Which instructions are executed twice, and with which registers.
pub struct Plan {
    /// Each that is.
    pub duplicates: BTreeMap<InstIndex, Duplicate>,
    /// Each that is not.
    pub left_out: BTreeMap<InstIndex, Reason>,
    /// The registers, by the first function of those that share them.
    shadows: BTreeMap<FunctionIndex, Shadows>,
}

impl Plan {
    /// A plan for `chosen` instructions, with registers that are reserved for them.
    ///
    /// # Errors
    /// A target without a decoder.
    pub fn new(
        instrumentation: &mut Instrumentation<'_>,
        chosen: &BTreeSet<InstIndex>,
        compares: bool,
    ) -> Result<Plan, HardenError> {
        let program = instrumentation.program().clone();
        let isa = program.isa()?;
        let (mut duplicates, mut left_out) = (BTreeMap::new(), BTreeMap::new());
        let mut components: BTreeMap<FunctionIndex, Vec<(InstIndex, Vec<RegisterRange>)>> =
            BTreeMap::new();
        for at in chosen {
            let component = instrumentation.component_of(*at);
            let component = component.and_then(|own| own.functions.first().copied());
            match (results(&program.instructions[*at]), component) {
                (Ok(own), Some(component)) => {
                    components.entry(component).or_default().push((*at, own));
                }
                (Err(reason), _) => _ = left_out.insert(*at, reason),
                (Ok(_), None) => _ = left_out.insert(*at, Reason::Registers),
            }
        }
        let mut all = BTreeMap::new();
        for (component, own) in components {
            let Some(shadows) = reserve(instrumentation, &own) else {
                left_out.extend(own.into_iter().map(|(at, _)| (at, Reason::Registers)));
                continue;
            };
            all.insert(component, shadows);
            for (at, _) in own {
                match Duplicate::new(&program.instructions[at], &isa, &shadows, compares) {
                    Ok(duplicate) => _ = duplicates.insert(at, duplicate),
                    Err(reason) => _ = left_out.insert(at, reason),
                }
            }
        }
        Ok(Plan { duplicates, left_out, shadows: all })
    }
}

/// Reserves registers for copies of instructions that share them, as many as the largest results take
/// that there is room for.
fn reserve(
    instrumentation: &mut Instrumentation<'_>,
    copied: &[(InstIndex, Vec<RegisterRange>)],
) -> Option<Shadows> {
    let (at, _) = *copied.first()?;
    let mut take = |file: RegisterSet, words: u8, alignment: u8| {
        instrumentation.reserve(at, RegisterRun { file, words, alignment })
    };
    let error = take(RegisterSet::VGPRS, 1, 1)?.first;
    let needs: Vec<Allocation> = copied.iter().map(|(_, results)| needed(results)).collect();
    // Ranges of VGPRs begin at even numbers on gfx90a, of SGPRs at multiples of up to four.
    let mut largest = |file: RegisterSet, words: &dyn Fn(&Allocation) -> u16| {
        let mut wanted: BTreeSet<u16> = needs.iter().map(words).filter(|own| *own > 0).collect();
        while let Some(words) = wanted.pop_last() {
            let most = if file == RegisterSet::SGPRS { 4 } else { 2 };
            let words = u8::try_from(words).ok()?;
            let found = take(file, words, words.next_power_of_two().min(most));
            if found.is_some() {
                return found;
            }
        }
        None
    };
    let vectors = largest(RegisterSet::VGPRS, &|own| own.vgprs);
    let accumulators = largest(RegisterSet::ACC_VGPRS, &|own| own.acc_vgprs);
    let scalars = largest(RegisterSet::SGPRS, &|own| own.sgprs.into());
    let compared = match scalars.is_some() || accumulators.is_some() {
        true => take(RegisterSet::VGPRS, 2, 1),
        false => None,
    };
    Some(Shadows { vectors, accumulators, scalars, compared, error })
}
