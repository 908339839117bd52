//! Which instructions are executed twice, and with which registers.

use crate::chains::{Block, Chains};
use crate::duplicate::{ComparedWith, CopyRegisters, Duplicate, Shadows, needed, results};
use crate::{HardenError, Reason};
use flipwave_hooks::dataflow::Liveness;
use flipwave_hooks::flow::{Disassembly, FunctionIndex, InstIndex};
use flipwave_hooks::registers::{Allocation, RegisterRun};
use flipwave_hooks::rewrite::Instrumentation;
use flipwave_isa::{Isa, Register, RegisterRange, RegisterSet};
use std::collections::{BTreeMap, BTreeSet};

/// How results are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparing {
    /// Each at once.
    Each,
    /// Those that only copies read not at all: what is made of them is compared.
    Ends,
    /// Each with itself. Nothing is ever detected: it is for those who check that somebody notices.
    Nothing,
}

/// Which instructions are executed twice, and how.
pub struct Plan {
    /// Each that is.
    pub duplicates: BTreeMap<InstIndex, Duplicate>,
    /// Each that is not.
    pub left_out: BTreeMap<InstIndex, Reason>,
    /// Where errors are added up, for all functions that share registers.
    pub errors: Vec<Errors>,
}

/// Where functions that share registers add up errors.
pub struct Errors {
    /// The first of them.
    pub component: FunctionIndex,
    /// The VGPR.
    pub error: Register,
    /// SGPRs for the lanes of a wave when it begins.
    pub lanes: RegisterRange,
}

/// An instruction to be executed twice, and its results.
type Chosen = (InstIndex, Vec<RegisterRange>);

impl Plan {
    /// A plan for `chosen` instructions, with registers that are reserved for them.
    ///
    /// # Errors
    /// A target without a decoder.
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
            let component = component.and_then(|own| own.functions.first().copied());
            match (results(&instrumentation.program().instructions[*at]), component) {
                (Ok(own), Some(component)) => {
                    components.entry(component).or_default().push((*at, own));
                }
                (Err(reason), _) => _ = plan.left_out.insert(*at, reason),
                (Ok(_), None) => _ = plan.left_out.insert(*at, Reason::Registers),
            }
        }
        let isa = instrumentation.program().isa()?;
        for (component, own) in components {
            plan.add(instrumentation, liveness, &isa, (component, &own), comparing);
        }
        Ok(plan)
    }

    /// Adds the instructions of functions that share registers.
    fn add(
        &mut self,
        instrumentation: &mut Instrumentation<'_>,
        liveness: &Liveness<'_>,
        isa: &Isa,
        (component, chosen): (FunctionIndex, &[Chosen]),
        comparing: Comparing,
    ) {
        let Some(shadows) = reserve(instrumentation, chosen) else {
            self.left_out.extend(chosen.iter().map(|(at, _)| (*at, Reason::Registers)));
            return;
        };
        self.errors.push(Errors { component, error: shadows.error, lanes: shadows.lanes });
        let alone = CopyRegisters { shadows: &shadows, kept: None, sources: &[] };
        let program = instrumentation.program();
        let mut possible = BTreeMap::new();
        let compared = match comparing {
            Comparing::Each | Comparing::Ends => ComparedWith::Shadow,
            Comparing::Nothing => ComparedWith::Itself,
        };
        for (at, _) in chosen {
            let inst = &program.instructions[*at];
            match Duplicate::new(inst, isa, alone, compared) {
                Ok(duplicate) => _ = possible.insert(*at, duplicate),
                Err(reason) => _ = self.left_out.insert(*at, reason),
            }
        }
        if comparing == Comparing::Ends {
            chain(instrumentation, liveness, isa, &shadows, &mut possible);
        }
        self.duplicates.append(&mut possible);
    }
}

/// Keeps the shadows of results that only copies read, in place of comparing them.
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
        // Elsewhere control may come to any instruction.
        .filter(|block| program.functions[block.function].unresolved.is_empty())
        .map(|block| Block { program, liveness, instructions: block.instructions })
        .filter(|block| {
            duplicates.range(block.instructions.start..block.instructions.end).count() > 1
        })
        .collect();
    let chains: Vec<Chains> = blocks.iter().map(|own| Chains::new(own, duplicates)).collect();
    let most = chains.iter().map(Chains::words).max().unwrap_or(0);
    let mut found = None;
    let mut wanted = most.min(MOST_KEPT);
    let blocks: Vec<_> = blocks.iter().map(|own| own.instructions).collect();
    while found.is_none() && wanted > 0 {
        let run = RegisterRun { file: RegisterSet::VGPRS, words: wanted, alignment: 2 };
        found = instrumentation.reserve(first, run);
        wanted /= 2;
    }
    let Some(pool) = found else { return };
    let program = instrumentation.program();
    for (instructions, chains) in blocks.into_iter().zip(chains) {
        let block = Block { program, liveness, instructions };
        // Where a copy has no encoding with other sources, its block does without.
        if let Some(chained) = chains.duplicates(&block, isa, shadows, pool, duplicates) {
            duplicates.extend(chained);
        }
    }
}

/// Most VGPRs for shadows that are kept.
const MOST_KEPT: u8 = 64;

/// Reserves registers for copies of instructions that share them, as many as the largest results take
/// that there is room for.
fn reserve(instrumentation: &mut Instrumentation<'_>, copied: &[Chosen]) -> Option<Shadows> {
    let (at, _) = *copied.first()?;
    let lane_words = if instrumentation.program().wave_size == 32 { 1 } else { 2 };
    let mut take = |file: RegisterSet, words: u8, alignment: u8| {
        instrumentation.reserve(at, RegisterRun { file, words, alignment })
    };
    let error = take(RegisterSet::VGPRS, 1, 1)?.first;
    let lanes = take(RegisterSet::SGPRS, lane_words, lane_words)?;
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
    Some(Shadows { vectors, accumulators, scalars, compared, error, lanes })
}
