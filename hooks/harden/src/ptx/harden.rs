//! Creates a module with chosen instructions duplicated.

use super::chains::Block;
use super::differences::{Differences, Report, Width};
use super::duplicate::copy;
use super::program::Program;
use super::results::ResultRegister;
use crate::{Comparing, Duplicated, HardenError, Hardening, Reason};
use flipwave_arch::Pc;
use flipwave_ptx::{Guard, Instruction, Module, Name, Register, ScalarType};
use flipwave_ptx_hooks::{Instrumentation, Point, PtxHookError, Rewritten};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The 64-bit variable of hardened modules that counts lanes which detected a difference.
pub const VARIABLE: &str = "flipwave_detected";

/// A hardened module.
#[derive(Clone, Debug)]
pub struct Hardened {
    /// The rewritten module.
    pub rewritten: Rewritten,
    /// The duplicated instructions.
    pub duplicated: BTreeMap<Pc, Duplicated>,
    /// The requested instructions that are not duplicated, with the reason.
    pub left_out: BTreeMap<Pc, Reason>,
}

/// Hardens a module.
///
/// # Errors
/// [`HardenError::Ptx`] if the module cannot be rewritten, or already declares [`VARIABLE`].
pub fn harden(module: &Module, hardening: Hardening<'_>) -> Result<Hardened, HardenError> {
    let (mut instrumentation, program) = Program::of(module)?;
    instrumentation.add_variable(VARIABLE, ScalarType::U64)?;
    let chosen = hardening.instructions.iter().filter_map(|pc| program.code.number_of(*pc));
    let (chosen, others): (BTreeSet<usize>, BTreeSet<usize>) =
        chosen.partition(|number| program.results.contains_key(number));
    let mut builder = Builder {
        program: &program,
        instrumentation: &mut instrumentation,
        chosen: &chosen,
        comparing: hardening.comparing,
        shadows: HashMap::new(),
        differences: BTreeMap::new(),
        duplicated: BTreeMap::new(),
    };
    for (function, number, instructions) in program.blocks() {
        builder.block(&Block { program: &program, function, number, instructions })?;
    }
    builder.count_differences()?;
    let Builder { duplicated, .. } = builder;
    let left_out = others.iter().filter_map(|at| Some((program.pc(*at), *program.others.get(at)?)));
    let left_out = left_out.collect();
    Ok(Hardened { rewritten: instrumentation.rewrite()?, duplicated, left_out })
}

/// Inserts copies and comparisons.
struct Builder<'a> {
    program: &'a Program,
    instrumentation: &'a mut Instrumentation,
    /// Numbers of the instructions to duplicate.
    chosen: &'a BTreeSet<usize>,
    comparing: Comparing,
    /// By function and register: the shadow.
    shadows: HashMap<(usize, Name), Name>,
    /// By function and width: the registers for differences.
    differences: BTreeMap<(usize, Width), Differences>,
    duplicated: BTreeMap<Pc, Duplicated>,
}

impl Builder<'_> {
    /// Duplicates the chosen instructions of a block.
    fn block(&mut self, block: &Block<'_>) -> Result<(), PtxHookError> {
        let program = self.program;
        let function = block.function;
        // Registers whose shadows are valid and have not been compared, with their shadows.
        let mut kept: HashMap<Name, (Register, Name)> = HashMap::new();
        for at in block.instructions.clone() {
            let inst = &program.code.instructions[at];
            let mut new = None;
            if let Some(results) = program.results.get(&at).filter(|_| self.chosen.contains(&at)) {
                let shadows: Vec<Name> =
                    results.iter().map(|result| self.shadow(function, result)).collect();
                let sources = kept.iter().map(|(name, (_, shadow))| (name.clone(), shadow.clone()));
                let tree = &program.trees[at];
                let copy =
                    copy(tree, results, &shadows, inst.written_operands(), &sources.collect());
                self.instrumentation.insert(Point::Before(at), vec![copy])?;
                let is_copied = |reader| self.chosen.contains(&reader);
                let is_kept =
                    self.comparing == Comparing::Ends && block.readers(at, &is_copied).is_some();
                let mut instructions = 1;
                if is_kept {
                    let kept = results.first().zip(shadows.first());
                    new = kept.map(|(result, shadow)| (result.clone(), shadow.clone()));
                } else {
                    let code = self.comparisons(function, results, &shadows, tree.guard.as_ref());
                    instructions += code.len() as u32;
                    self.instrumentation.insert(Point::After(at), code)?;
                }
                let results = results.iter().flat_map(|result| result.register.iter()).collect();
                self.duplicated.insert(inst.pc, Duplicated { results, instructions });
            }
            let destinations = &inst.accesses().destinations;
            kept.retain(|_, (register, _)| {
                !register.iter().any(|word| destinations.contains(&word))
            });
            if let Some((result, shadow)) = new {
                kept.insert(result.name, (result.register, shadow));
            }
        }
        Ok(())
    }

    /// The comparisons of results with their shadows.
    fn comparisons(
        &mut self,
        function: usize,
        results: &[ResultRegister],
        shadows: &[Name],
        guard: Option<&Guard>,
    ) -> Vec<Instruction> {
        let mut code = Vec::new();
        for (result, shadow) in results.iter().zip(shadows) {
            let is_compared = self.comparing != Comparing::Nothing;
            let shadow = if is_compared { shadow } else { &result.name };
            let differences = self.differences(function, result.width);
            code.extend(differences.compare(&result.name, shadow, guard));
        }
        code
    }

    /// The shadow of a register.
    fn shadow(&mut self, function: usize, result: &ResultRegister) -> Name {
        let instrumentation = &mut self.instrumentation;
        let shadow = self.shadows.entry((function, result.name.clone()));
        let new = || instrumentation.add_register(function, result.register.kind);
        shadow.or_insert_with(new).clone()
    }

    /// The registers for differences of a width.
    fn differences(&mut self, function: usize, width: Width) -> &Differences {
        let instrumentation = &mut self.instrumentation;
        self.differences.entry((function, width)).or_insert_with(|| {
            let mut register = || instrumentation.add_register(function, width.kind());
            Differences { width, sum: register(), current: register() }
        })
    }

    /// Clears the sums of differences when functions are entered, and counts lanes with differences where
    /// lanes leave them.
    fn count_differences(&mut self) -> Result<(), PtxHookError> {
        let program = self.program;
        for (number, function) in program.code.functions.iter().enumerate() {
            let range = (number, Width::Word)..=(number, Width::Predicate);
            let differences: Vec<&Differences> =
                self.differences.range(range).map(|(_, found)| found).collect();
            if differences.is_empty() {
                continue;
            }
            let instrumentation = &mut *self.instrumentation;
            let clear = differences.iter().map(|found| found.clear()).collect();
            instrumentation.insert(Point::Entry(number), clear)?;
            let mut register = || instrumentation.add_register(number, ScalarType::Pred);
            let report = Report { found: register(), inverse: register() };
            let calls = program.ending_calls(function).into_iter().map(Point::Before);
            for point in instrumentation.exits(number).into_iter().chain(calls) {
                let guard = match point {
                    Point::Before(at) => program.trees[at].guard.as_ref(),
                    _ => None,
                };
                let code = report.code(&differences, VARIABLE, guard);
                instrumentation.insert(point, code)?;
            }
        }
        Ok(())
    }
}
