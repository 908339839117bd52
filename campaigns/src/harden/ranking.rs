//! Instructions by what executing them twice brings and costs.

use super::code::{Plain, Version};
use super::error::HardeningError;
use crate::error::CampaignError;
use crate::file::campaign::Campaign;
use flipwave_analysis::{Outcome, Row, read_rows};
use flipwave_codeobj::LineTable;
use flipwave_harden::{Candidate, Candidates, Comparing};
use flipwave_isa::Pc;
use flipwave_tools::{InstructionCount, Options, measure};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// An instruction that can be executed twice.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RankedInstruction {
    /// The code object, by its number in the order in which the program launches from them.
    pub module: u32,
    /// The kernel or device function.
    pub function: String,
    /// Its address, as disassemblers print it.
    pub pc: String,
    /// Its source line, `file:line`, where the code says it.
    pub line: String,
    /// Its text.
    pub instruction: String,
    /// Executions by waves, without a fault.
    pub executions: u64,
    /// Which part of the SDC faults at it are the cause of, 0 to 1.
    pub part_of_sdc: f64,
    /// The smallest budget by which it is executed twice.
    pub budget: Option<f64>,
}

/// The instructions of a program in the order in which budgets buy them.
pub(super) struct Ranking {
    ranked: BTreeMap<InstructionOf, RankedInstruction>,
    copies: BTreeMap<InstructionOf, CopyCost>,
    /// Budgets buy as many of these as they can, from the first on.
    order: Vec<InstructionOf>,
    /// How many instructions of its code the program executes.
    executed: usize,
}

/// What a budget buys.
pub(super) enum Bought {
    /// A version of the program.
    Version(Box<Version>),
    /// Nothing: the cheapest version that was tried costs this much, the plain program being 1.
    Nothing {
        /// Its cost.
        least: f64,
    },
}

/// An instruction of a module.
type InstructionOf = (u32, Pc);

impl Ranking {
    /// Ranks the instructions of a program by the rows of its campaign, by those that are not held out.
    ///
    /// # Errors
    /// [`CampaignError`].
    pub fn new(
        campaign: &Campaign,
        plain: &Plain,
        rows: &Path,
        holds_out: bool,
    ) -> Result<Ranking, CampaignError> {
        let executed = executions(campaign, plain)?;
        let sdc = parts_of_sdc(plain, rows, holds_out)?;
        let (mut ranked, mut copies) = (BTreeMap::new(), BTreeMap::new());
        for (number, (module, object)) in (0..).zip(plain.objects()) {
            let candidates = Candidates::of(object).map_err(HardeningError::from)?;
            let lines = object.lines().unwrap_or_default();
            for (pc, candidate) in candidates.instructions {
                let at = (module, pc);
                let Some((function, executions)) = executed.get(&at) else { continue };
                let Candidate { text, copy, comparison, readers } = candidate;
                let part_of_sdc = sdc.get(&at).copied().unwrap_or(0.0);
                let own = RankedInstruction {
                    module: number,
                    function: function.clone(),
                    pc: pc.to_string(),
                    line: line(&lines, pc),
                    instruction: text,
                    executions: *executions,
                    part_of_sdc,
                    budget: None,
                };
                ranked.insert(at, own);
                let readers = readers.into_iter().flatten().map(|pc| (module, pc)).collect();
                let [copy, comparison] = [copy, comparison].map(|own| executions * u64::from(own));
                copies.insert(at, CopyCost { copy, comparison, readers, brings: part_of_sdc });
            }
        }
        let order = order(&copies);
        match order.is_empty() {
            true => Err(HardeningError::NothingToProtect.into()),
            false => Ok(Ranking { ranked, copies, order, executed: executed.len() }),
        }
    }

    /// How many instructions of its code the program executes.
    pub fn executed(&self) -> usize {
        self.executed
    }

    /// The instructions that can be executed twice, those that most of the SDC comes from first.
    pub fn instructions(self) -> Vec<RankedInstruction> {
        let mut all: Vec<RankedInstruction> = self.ranked.into_values().collect();
        all.sort_by(|one, other| other.part_of_sdc.total_cmp(&one.part_of_sdc));
        all
    }

    /// The version of the program that a budget buys. What it costs is measured: where waits and what counts
    /// at the end take more than is left, fewer instructions are bought.
    ///
    /// # Errors
    /// Those of making it.
    pub fn buy(
        &mut self,
        campaign: &Campaign,
        plain: &Plain,
        budget: f64,
        comparing: Comparing,
    ) -> Result<Bought, CampaignError> {
        let all = plain.instructions();
        let most = (all as f64 * (budget - 1.0)) as u64;
        let (mut limit, mut least) = (most, f64::INFINITY);
        loop {
            let chosen = self.affordable(limit);
            if chosen.is_empty() {
                let costs = self.order.iter().map(|at| cost(&self.copies, &[*at]));
                let cheapest = plain_cost(all, costs.min().unwrap_or(0));
                return Ok(Bought::Nothing { least: least.min(cheapest) });
            }
            let version = plain.hardened(campaign, &by_module(&chosen), comparing)?;
            let more = version.instructions.saturating_sub(all);
            if more <= most {
                self.note(&chosen, budget);
                return Ok(Bought::Version(Box::new(version)));
            }
            least = least.min(plain_cost(all, more));
            // As much less as it was too much, and one instruction less in any case.
            let spent = cost(&self.copies, &chosen);
            limit = spent.saturating_sub((more - most).max(1)).min(limit.saturating_sub(1));
        }
    }

    /// The instructions that can be had for at most so many instructions more: as many of the order as
    /// possible, and of the rest those for which there is enough left.
    fn affordable(&self, limit: u64) -> Vec<InstructionOf> {
        let fits = |chosen: &[InstructionOf]| cost(&self.copies, chosen) <= limit;
        let first = |count: &usize| fits(self.order.get(..*count).unwrap_or_default());
        let count = (0..=self.order.len()).rev().find(first).unwrap_or(0);
        let (chosen, rest) = self.order.split_at_checked(count).unwrap_or_default();
        let mut chosen = chosen.to_vec();
        for at in rest {
            chosen.push(*at);
            if !fits(&chosen) {
                chosen.pop();
            }
        }
        chosen
    }

    fn note(&mut self, bought: &[InstructionOf], budget: f64) {
        for at in bought {
            if let Some(own) = self.ranked.get_mut(at) {
                own.budget = Some(own.budget.map_or(budget, |known| known.min(budget)));
            }
        }
    }
}

/// What a program costs that executes so many instructions more than `all`.
fn plain_cost(all: u64, more: u64) -> f64 {
    1.0 + more as f64 / all.max(1) as f64
}

/// What executing an instruction twice costs, in instructions of a run, and brings.
struct CopyCost {
    copy: u64,
    /// Saved where all `readers` are executed twice, if there are any.
    comparison: u64,
    readers: BTreeSet<InstructionOf>,
    /// Which part of the SDC faults at it are the cause of.
    brings: f64,
}

impl CopyCost {
    /// What it costs where the instructions of a set are executed twice.
    fn among(&self, is_copied: impl Fn(&InstructionOf) -> bool) -> u64 {
        let is_compared = self.readers.is_empty() || !self.readers.iter().all(is_copied);
        self.copy + if is_compared { self.comparison } else { 0 }
    }
}

/// What it costs to execute instructions twice.
fn cost(copies: &BTreeMap<InstructionOf, CopyCost>, chosen: &[InstructionOf]) -> u64 {
    let set: BTreeSet<&InstructionOf> = chosen.iter().collect();
    let own = chosen.iter().filter_map(|at| copies.get(at));
    own.map(|copy| copy.among(|at| set.contains(at))).sum()
}

/// The order in which instructions are bought: the reverse of the one in which they are given up, where
/// the next is always the one that loses least for what it saves. One whose copy spares others their
/// comparison saves less than it costs, or nothing, and goes after those.
fn order(copies: &BTreeMap<InstructionOf, CopyCost>) -> Vec<InstructionOf> {
    let mut left: BTreeSet<InstructionOf> = copies.keys().copied().collect();
    let mut feeds: BTreeMap<InstructionOf, Vec<InstructionOf>> = BTreeMap::new();
    for (at, copy) in copies {
        copy.readers.iter().for_each(|reader| feeds.entry(*reader).or_default().push(*at));
    }
    let mut given_up = Vec::new();
    while !left.is_empty() {
        let is_left = |at: &InstructionOf| left.contains(at);
        let saves = |at: &InstructionOf| {
            let own = copies.get(at).map_or(0, |copy| copy.among(is_left)) as i64;
            let fed = feeds.get(at).into_iter().flatten().filter(|own| is_left(own));
            let fed = fed.filter_map(|own| copies.get(own));
            let compared = fed.filter(|copy| copy.readers.iter().all(is_left));
            own - compared.map(|copy| copy.comparison as i64).sum::<i64>()
        };
        // What saves nothing is given up last, that which saves least of all first among it.
        let merit = |at: &InstructionOf| {
            let brings = copies.get(at).map_or(0.0, |copy| copy.brings);
            match saves(at) {
                saved if saved > 0 => (0, brings / saved as f64),
                saved => (1, saved as f64),
            }
        };
        let merits = left.iter().map(|at| (merit(at), *at));
        let next = merits
            .min_by(|((one, own), _), ((other, its), _)| one.cmp(other).then(own.total_cmp(its)));
        let Some((_, at)) = next else { break };
        left.remove(&at);
        given_up.push(at);
    }
    // Those that bring nothing, and spare nothing that brings something.
    let brings = |at: &InstructionOf| copies.get(at).is_some_and(|copy| copy.brings > 0.0);
    let useless = given_up.iter().take_while(|at| !brings(at)).count();
    given_up.into_iter().skip(useless).rev().collect()
}

/// Instructions, by their modules.
fn by_module(instructions: &[InstructionOf]) -> BTreeMap<u32, BTreeSet<Pc>> {
    let mut modules: BTreeMap<u32, BTreeSet<Pc>> = BTreeMap::new();
    for (module, pc) in instructions {
        modules.entry(*module).or_default().insert(*pc);
    }
    modules
}

/// The function of each instruction that the program executes, and how often waves do.
fn executions(
    campaign: &Campaign,
    plain: &Plain,
) -> Result<BTreeMap<InstructionOf, (String, u64)>, CampaignError> {
    let workload = &plain.prepared.workload;
    let dispatches = &workload.program.dispatches;
    let mut device = workload.device.clone();
    let found = measure::<InstructionCount, _>(
        &mut flipwave_injector::CancellableDevice {
            device: &mut device,
            cancellation: &campaign.cancellation,
        },
        |module| workload.device.code_object(module),
        dispatches,
        &Options::default(),
        &plain.compiler,
    );
    let found = campaign.unless_stopped(found.map_err(|error| Box::new(error).into()))?;
    let mut executed: BTreeMap<(u32, Pc), (String, u64)> = BTreeMap::new();
    for table in found.tables {
        let Some(module) = dispatches.get(table.dispatch).map(|own| own.module.0) else { continue };
        for (place, own) in table.rows.into_iter().filter(|(_, own)| own.executions > 0) {
            executed.entry((module, place.pc)).or_insert((place.function, 0)).1 += own.executions;
        }
    }
    Ok(executed)
}

/// Which part of the SDC faults at each instruction are the cause of.
fn parts_of_sdc(
    plain: &Plain,
    rows: &Path,
    holds_out: bool,
) -> Result<BTreeMap<InstructionOf, f64>, CampaignError> {
    let failed = |reason: String| HardeningError::Rows { file: rows.display().to_string(), reason };
    let table =
        flipwave_host::input::open_lines(rows).map_err(|error| failed(error.to_string()))?;
    let table = read_rows(table).map_err(|error| failed(error.to_string()))?;
    let dispatches = &plain.prepared.workload.program.dispatches;
    let mut parts: BTreeMap<InstructionOf, f64> = BTreeMap::new();
    let mut all = 0.0;
    let counts = |row: &&Row| row.outcome == Outcome::Sdc && (!holds_out || is_ranked(row.index));
    for row in table.iter().filter(counts) {
        all += row.weight;
        let dispatch = row.dispatch.and_then(|own| dispatches.get(own as usize));
        if let (Some(dispatch), Some(pc)) = (dispatch, row.pc) {
            *parts.entry((dispatch.module.0, Pc(pc))).or_default() += row.weight;
        }
    }
    parts.values_mut().for_each(|part| *part /= all);
    Ok(parts)
}

fn line(lines: &LineTable, pc: Pc) -> String {
    let line = lines.lookup(pc);
    line.map(|own| format!("{}:{}", own.file, own.line)).unwrap_or_default()
}

/// Whether a fault is one of those that instructions are ranked by, where some are held out.
pub fn is_ranked(index: u64) -> bool {
    index.is_multiple_of(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format_tests::csv_text;

    #[test]
    fn the_table_of_instructions_has_fixed_columns() {
        let instruction = RankedInstruction {
            module: 1,
            function: "add".to_owned(),
            pc: "0x100".to_owned(),
            line: "add.cl:3".to_owned(),
            instruction: "v_add_f32 v0, v1, v2".to_owned(),
            executions: 4,
            part_of_sdc: 0.5,
            budget: Some(1.1),
        };
        assert_eq!(
            csv_text(&instruction),
            "module,function,pc,line,instruction,executions,part_of_sdc,budget\n\
             1,add,0x100,add.cl:3,\"v_add_f32 v0, v1, v2\",4,0.5,1.1\n"
        );
    }
}
