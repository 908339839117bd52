//! Plans the duplication of instructions: reserves registers and builds the copies.

use super::chains::{Block, Chains};
use super::duplicate::{ComparedWith, CopyRegisters, Duplicate, Shadows, needed, results};
use crate::{Comparing, HardenError, Reason};
use flipwave_hooks::dataflow::Liveness;
use flipwave_hooks::flow::{Disassembly, FunctionIndex, InstIndex};
use flipwave_hooks::registers::{Allocation, RegisterRun};
use flipwave_hooks::rewrite::Instrumentation;
use flipwave_isa::{Isa, Register, RegisterRange, RegisterSet};
use std::collections::{BTreeMap, BTreeSet};

/// A plan for duplicating instructions.
pub struct Plan {
    /// The instructions to duplicate.
    pub duplicates: BTreeMap<InstIndex, Duplicate>,
    /// The chosen instructions that cannot be duplicated.
    pub left_out: BTreeMap<InstIndex, Reason>,
    /// The registers for differences of each component, a set of functions that share registers.
    pub errors: Vec<ErrorRegisters>,
}

/// The registers in which the functions of a component accumulate differences.
pub struct ErrorRegisters {
    /// The first function of the component.
    pub component: FunctionIndex,
    /// The VGPR with each lane's sum of differences.
    pub error: Register,
    /// SGPRs that save EXEC at the start of a wave.
    pub lanes: RegisterRange,
}

/// An instruction to duplicate, and its results.
type Chosen = (InstIndex, Vec<RegisterRange>);

impl Plan {
    /// Plans the duplication of the `chosen` instructions and reserves registers for it.
    ///
    /// # Errors
    /// [`HardenError::Isa`] if the target has no decoder.
    pub fn new(
        instrumentation: &mut Instrumentation<'_>,
        liveness: &Liveness<'_>,
        chosen: &BTreeSet<InstIndex>,
        comparing: Comparing,
    ) -> Result<Plan, HardenError> {
        let mut components: BTreeMap<FunctionIndex, Vec<Chosen>> = BTreeMap::new();
        let mut plan =
            Plan { duplicates: BTreeMap::new(), left_out: BTreeMap::new(), errors: Vec::new() };
        for at in chosen {
            let component = instrumentation.component_of(*at);
            let component = component.and_then(|component| component.functions.first().copied());
            match (results(&instrumentation.program().instructions[*at]), component) {
                (Ok(results), Some(component)) => {
                    components.entry(component).or_default().push((*at, results));
                }
                (Err(reason), _) => _ = plan.left_out.insert(*at, reason),
                (Ok(_), None) => _ = plan.left_out.insert(*at, Reason::Registers),
            }
        }
        let isa = instrumentation.program().isa()?;
        for (component, chosen) in components {
            let Some(shadows) = reserve(instrumentation, &chosen) else {
                let refused = chosen.iter().map(|(at, _)| (*at, Reason::Registers));
                plan.left_out.extend(refused);
                continue;
            };
            let (error, lanes) = (shadows.error, shadows.lanes);
            plan.errors.push(ErrorRegisters { component, error, lanes });
            plan.add(instrumentation, liveness, &isa, &shadows, &chosen, comparing);
        }
        Ok(plan)
    }

    /// Adds the instructions of a component.
    fn add(
        &mut self,
        instrumentation: &mut Instrumentation<'_>,
        liveness: &Liveness<'_>,
        isa: &Isa,
        shadows: &Shadows,
        chosen: &[Chosen],
        comparing: Comparing,
    ) {
        let registers = CopyRegisters { shadows, kept: None, sources: &[] };
        let program = instrumentation.program();
        let mut duplicates = BTreeMap::new();
        let compared = match comparing {
            Comparing::Each | Comparing::Ends => ComparedWith::Shadow,
            Comparing::Nothing => ComparedWith::Itself,
        };
        for (at, _) in chosen {
            let inst = &program.instructions[*at];
            match Duplicate::new(inst, isa, registers, compared) {
                Ok(duplicate) => _ = duplicates.insert(*at, duplicate),
                Err(reason) => _ = self.left_out.insert(*at, reason),
            }
        }
        if comparing == Comparing::Ends {
            chain(instrumentation, liveness, isa, shadows, &mut duplicates);
        }
        self.duplicates.append(&mut duplicates);
    }
}

/// Keeps the shadows of results that are read only by duplicated instructions, instead of comparing the
/// results.
fn chain(
    instrumentation: &mut Instrumentation<'_>,
    liveness: &Liveness<'_>,
    isa: &Isa,
    shadows: &Shadows,
    duplicates: &mut BTreeMap<InstIndex, Duplicate>,
) {
    let program: &Disassembly = instrumentation.program();
    let Some(first) = duplicates.keys().next().copied() else { return };
    let blocks: Vec<Block<'_>> = program
        .blocks
        .iter()
        // In other functions, a branch may target any instruction.
        .filter(|block| program.functions[block.function].unresolved.is_empty())
        .map(|block| Block { program, liveness, instructions: block.instructions })
        .filter(|block| {
            duplicates.range(block.instructions.start..block.instructions.end).count() > 1
        })
        .collect();
    let chains: Vec<Chains> = blocks.iter().map(|block| Chains::new(block, duplicates)).collect();
    let blocks: Vec<_> = blocks.iter().map(|block| block.instructions).collect();
    let needed = chains.iter().map(Chains::words).max().unwrap_or(0);
    let mut words = needed.min(MAX_KEPT);
    let mut pool = None;
    while pool.is_none() && words > 0 {
        let run = RegisterRun { file: RegisterSet::VGPRS, words, alignment: 2 };
        pool = instrumentation.reserve(first, run);
        words /= 2;
    }
    let Some(pool) = pool else { return };
    let program = instrumentation.program();
    for (instructions, chains) in blocks.into_iter().zip(chains) {
        let block = Block { program, liveness, instructions };
        // If a copy cannot be encoded with different sources, the block keeps no shadows.
        if let Some(chained) = chains.duplicates(&block, isa, shadows, pool, duplicates) {
            duplicates.extend(chained);
        }
    }
}

/// The maximum number of VGPRs for kept shadows.
const MAX_KEPT: u8 = 64;

/// Reserves registers for the copies of a component's instructions. In each register file, the shadows are
/// as large as the largest result for which there are enough free registers.
fn reserve(instrumentation: &mut Instrumentation<'_>, chosen: &[Chosen]) -> Option<Shadows> {
    let (at, _) = *chosen.first()?;
    let lane_words = if instrumentation.program().wave_size == 32 { 1 } else { 2 };
    let mut take = |file: RegisterSet, words: u8, alignment: u8| {
        instrumentation.reserve(at, RegisterRun { file, words, alignment })
    };
    let error = take(RegisterSet::VGPRS, 1, 1)?.first;
    let lanes = take(RegisterSet::SGPRS, lane_words, lane_words)?;
    let needs: Vec<Allocation> = chosen.iter().map(|(_, results)| needed(results)).collect();
    // VGPR ranges start at even numbers on gfx90a, SGPR ranges at multiples of up to four.
    let mut largest = |file: RegisterSet, words: &dyn Fn(&Allocation) -> u16| {
        let mut sizes: BTreeSet<u16> = needs.iter().map(words).filter(|words| *words > 0).collect();
        while let Some(words) = sizes.pop_last() {
            let max_alignment = if file == RegisterSet::SGPRS { 4 } else { 2 };
            let words = u8::try_from(words).ok()?;
            let range = take(file, words, words.next_power_of_two().min(max_alignment));
            if range.is_some() {
                return range;
            }
        }
        None
    };
    let vectors = largest(RegisterSet::VGPRS, &|need| need.vgprs);
    let accumulators = largest(RegisterSet::ACC_VGPRS, &|need| need.acc_vgprs);
    let scalars = largest(RegisterSet::SGPRS, &|need| need.sgprs.into());
    let needs_moves = scalars.is_some() || accumulators.is_some();
    let compared = if needs_moves { take(RegisterSet::VGPRS, 2, 1) } else { None };
    Some(Shadows { vectors, accumulators, scalars, compared, error, lanes })
}
