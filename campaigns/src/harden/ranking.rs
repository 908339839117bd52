//! Ranking of instructions by the benefit and the cost of duplicating them.

use super::code::{HardenedProgram, PlainProgram};
use super::error::HardeningError;
use crate::error::CampaignError;
use crate::file::campaign::Campaign;
use crate::platform::ToolRun;
use flipwave_analysis::{Outcome, Row, read_rows};
use flipwave_arch::{Pc, SourceLines};
use flipwave_device::ModuleId;
use flipwave_harden::{Candidate, Comparing};
use flipwave_tools::{InstExecutions, Options, ToolFile};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// An instruction that can be duplicated.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RankedInstruction {
    /// Number of the code object, in the order of first launch.
    pub module: u32,
    /// Kernel or device function.
    pub function: String,
    /// Address, as printed by disassemblers.
    pub pc: String,
    /// Source line, `file:line`, if known.
    pub line: String,
    /// Assembly text.
    pub instruction: String,
    /// Executions by waves in the golden run.
    pub executions: u64,
    /// Fraction of SDC caused by faults at this instruction, 0 to 1.
    pub part_of_sdc: f64,
    /// The smallest budget that duplicates it.
    pub budget: Option<f64>,
}

/// Instructions of a program in the order in which budgets select them.
pub(super) struct Ranking {
    ranked: BTreeMap<ModulePc, RankedInstruction>,
    copies: BTreeMap<ModulePc, CopyCost>,
    /// Instructions in the order in which they are selected.
    order: Vec<ModulePc>,
    /// Number of distinct instructions that the program executes.
    executed: usize,
}

/// Result of selecting instructions for a budget.
pub(super) enum Selected {
    /// A hardened version of the program.
    Program(Box<HardenedProgram>),
    /// The budget is too small.
    Nothing {
        /// Cost of the cheapest version that was tried, relative to the plain program.
        minimum: f64,
    },
}

/// An instruction, by module and address.
type ModulePc = (u32, Pc);

impl Ranking {
    /// Ranks the instructions of a program by the rows of its campaign that are not held out.
    ///
    /// # Errors
    /// [`CampaignError`].
    pub fn new(
        campaign: &Campaign,
        plain: &PlainProgram,
        rows: &Path,
        holds_out: bool,
    ) -> Result<Ranking, CampaignError> {
        let executed = executions(campaign, plain)?;
        let sdc = parts_of_sdc(plain, rows, holds_out)?;
        let (mut ranked, mut copies) = (BTreeMap::new(), BTreeMap::new());
        let machine = &plain.prepared.workload.device;
        for (number, module) in (0..).zip(plain.modules()) {
            let candidates = plain.method.candidates(machine, ModuleId(module))?;
            let lines = machine.lines(ModuleId(module));
            for (pc, candidate) in candidates.instructions {
                let at = (module, pc);
                let Some((function, executions)) = executed.get(&at) else { continue };
                let Candidate { text, copy, comparison, readers } = candidate;
                let part_of_sdc = sdc.get(&at).copied().unwrap_or(0.0);
                let instruction = RankedInstruction {
                    module: number,
                    function: function.clone(),
                    pc: pc.to_string(),
                    line: line(lines, pc),
                    instruction: text,
                    executions: *executions,
                    part_of_sdc,
                    budget: None,
                };
                ranked.insert(at, instruction);
                let readers = readers.into_iter().flatten().map(|pc| (module, pc)).collect();
                let [copy, comparison] =
                    [copy, comparison].map(|count| executions * u64::from(count));
                copies.insert(at, CopyCost { copy, comparison, readers, benefit: part_of_sdc });
            }
        }
        if copies.is_empty() {
            return Err(HardeningError::NothingToDuplicate.into());
        }
        let order = order(&copies);
        if order.is_empty() {
            return Err(HardeningError::NothingToProtect.into());
        }
        Ok(Ranking { ranked, copies, order, executed: executed.len() })
    }

    /// Returns the number of distinct instructions that the program executes.
    pub fn executed(&self) -> usize {
        self.executed
    }

    /// Returns the instructions that can be duplicated, in descending order of the SDC they cause.
    pub fn instructions(self) -> Vec<RankedInstruction> {
        let mut all: Vec<RankedInstruction> = self.ranked.into_values().collect();
        all.sort_by(|a, b| b.part_of_sdc.total_cmp(&a.part_of_sdc));
        all
    }

    /// Returns the version of the program with as many instructions duplicated as the budget permits. The
    /// cost is measured; if waits and the counting of differences exceed the budget, fewer instructions
    /// are selected.
    ///
    /// # Errors
    /// An error if the hardened version cannot be created.
    pub fn select(
        &mut self,
        campaign: &Campaign,
        plain: &PlainProgram,
        budget: f64,
        comparing: Comparing,
    ) -> Result<Selected, CampaignError> {
        let all = plain.instructions();
        let max_added = (all as f64 * (budget - 1.0)) as u64;
        let (mut limit, mut minimum) = (max_added, f64::INFINITY);
        loop {
            let chosen = self.affordable(limit);
            if chosen.is_empty() {
                let costs = self.order.iter().map(|at| cost(&self.copies, &[*at]));
                let cheapest = relative_cost(all, costs.min().unwrap_or(0));
                return Ok(Selected::Nothing { minimum: minimum.min(cheapest) });
            }
            let version = plain.hardened(campaign, &by_module(&chosen), comparing)?;
            let added = version.instructions.saturating_sub(all);
            if added <= max_added {
                self.note(&chosen, budget);
                return Ok(Selected::Program(Box::new(version)));
            }
            minimum = minimum.min(relative_cost(all, added));
            // Reduce the limit by the excess, and by at least one instruction.
            let spent = cost(&self.copies, &chosen);
            limit = spent.saturating_sub((added - max_added).max(1)).min(limit.saturating_sub(1));
        }
    }

    /// Returns instructions whose duplication adds at most `limit` executed instructions: the longest
    /// affordable prefix of the order, then each later instruction that still fits.
    fn affordable(&self, limit: u64) -> Vec<ModulePc> {
        let fits = |chosen: &[ModulePc]| cost(&self.copies, chosen) <= limit;
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

    fn note(&mut self, selected: &[ModulePc], budget: f64) {
        for at in selected {
            if let Some(ranked) = self.ranked.get_mut(at) {
                ranked.budget = Some(ranked.budget.map_or(budget, |known| known.min(budget)));
            }
        }
    }
}

/// Returns the cost of a program that executes `added` instructions in addition to `all`, relative to
/// `all`.
fn relative_cost(all: u64, added: u64) -> f64 {
    1.0 + added as f64 / all.max(1) as f64
}

/// Cost and benefit of duplicating an instruction. Costs are executed instructions.
struct CopyCost {
    copy: u64,
    /// Cost of the comparison. It is saved if there are `readers` and all of them are duplicated.
    comparison: u64,
    readers: BTreeSet<ModulePc>,
    /// Fraction of SDC caused by faults at this instruction.
    benefit: f64,
}

impl CopyCost {
    /// Returns the cost if the instructions in a set are duplicated.
    fn among(&self, is_duplicated: impl Fn(&ModulePc) -> bool) -> u64 {
        let is_compared = self.readers.is_empty() || !self.readers.iter().all(is_duplicated);
        self.copy + if is_compared { self.comparison } else { 0 }
    }
}

/// Returns the cost of duplicating instructions.
fn cost(copies: &BTreeMap<ModulePc, CopyCost>, chosen: &[ModulePc]) -> u64 {
    let set: BTreeSet<&ModulePc> = chosen.iter().collect();
    let costs = chosen.iter().filter_map(|at| copies.get(at));
    costs.map(|copy| copy.among(|at| set.contains(at))).sum()
}

/// Returns the order in which instructions are selected. It is the reverse of a greedy elimination that
/// repeatedly drops the instruction with the smallest benefit per saved cost. If the duplicate of an
/// instruction makes comparisons of other instructions unnecessary, dropping it saves less, or nothing;
/// it is dropped later than those instructions.
fn order(copies: &BTreeMap<ModulePc, CopyCost>) -> Vec<ModulePc> {
    let mut left: BTreeSet<ModulePc> = copies.keys().copied().collect();
    let mut feeds: BTreeMap<ModulePc, Vec<ModulePc>> = BTreeMap::new();
    for (at, copy) in copies {
        copy.readers.iter().for_each(|reader| feeds.entry(*reader).or_default().push(*at));
    }
    let mut dropped = Vec::new();
    while !left.is_empty() {
        let is_left = |at: &ModulePc| left.contains(at);
        let saves = |at: &ModulePc| {
            let cost = copies.get(at).map_or(0, |copy| copy.among(is_left)) as i64;
            let sources = feeds.get(at).into_iter().flatten().filter(|source| is_left(source));
            let sources = sources.filter_map(|source| copies.get(source));
            let compared = sources.filter(|copy| copy.readers.iter().all(is_left));
            cost - compared.map(|copy| copy.comparison as i64).sum::<i64>()
        };
        // Instructions that save nothing are dropped last, the one that saves least first.
        let merit = |at: &ModulePc| {
            let benefit = copies.get(at).map_or(0.0, |copy| copy.benefit);
            match saves(at) {
                saved if saved > 0 => (0, benefit / saved as f64),
                saved => (1, saved as f64),
            }
        };
        let merits = left.iter().map(|at| (merit(at), *at));
        let next = merits.min_by(|((class_a, a), _), ((class_b, b), _)| {
            class_a.cmp(class_b).then(a.total_cmp(b))
        });
        let Some((_, at)) = next else { break };
        left.remove(&at);
        dropped.push(at);
    }
    // Instructions without benefit, dropped before any with benefit.
    let has_benefit = |at: &ModulePc| copies.get(at).is_some_and(|copy| copy.benefit > 0.0);
    let useless = dropped.iter().take_while(|at| !has_benefit(at)).count();
    dropped.into_iter().skip(useless).rev().collect()
}

/// Groups instructions by module.
fn by_module(instructions: &[ModulePc]) -> BTreeMap<u32, BTreeSet<Pc>> {
    let mut modules: BTreeMap<u32, BTreeSet<Pc>> = BTreeMap::new();
    for (module, pc) in instructions {
        modules.entry(*module).or_default().insert(*pc);
    }
    modules
}

/// Returns the function and the number of executions by waves of each executed instruction.
fn executions(
    campaign: &Campaign,
    plain: &PlainProgram,
) -> Result<BTreeMap<ModulePc, (String, u64)>, CampaignError> {
    let workload = &plain.prepared.workload;
    let dispatches = &workload.program.dispatches;
    let (file, options) = (ToolFile::shipped("instruction-count"), Options::default());
    let file = file.map_err(Box::new)?;
    let run = ToolRun { workload, dispatches, instructions: &[], file: &file, options: &options };
    let found = campaign.target.tools()?.measure(&run).map_err(CampaignError::from);
    let found = campaign.unless_cancelled(found)?;
    let mut executed: BTreeMap<(u32, Pc), (String, u64)> = BTreeMap::new();
    for table in found.tables {
        let Some(module) = dispatches.get(table.dispatch).map(|dispatch| dispatch.module.0) else {
            continue;
        };
        let counts = table.rows.iter().filter_map(|row| InstExecutions::from_row(row));
        for count in counts.filter(|count| count.executions > 0) {
            executed.entry((module, count.pc)).or_insert((count.function, 0)).1 += count.executions;
        }
    }
    Ok(executed)
}

/// Returns the fraction of SDC caused by faults at each instruction.
fn parts_of_sdc(
    plain: &PlainProgram,
    rows: &Path,
    holds_out: bool,
) -> Result<BTreeMap<ModulePc, f64>, CampaignError> {
    let failed = |reason: String| HardeningError::Rows { file: rows.display().to_string(), reason };
    let table =
        flipwave_host::input::open_lines(rows).map_err(|error| failed(error.to_string()))?;
    let table = read_rows(table).map_err(|error| failed(error.to_string()))?;
    let dispatches = &plain.prepared.workload.program.dispatches;
    let mut parts: BTreeMap<ModulePc, f64> = BTreeMap::new();
    let mut all = 0.0;
    let counts =
        |row: &&Row| row.outcome == Outcome::Sdc && (!holds_out || is_ranked(row.injection));
    for row in table.iter().filter(counts) {
        all += row.weight;
        let dispatch = row.dispatch.and_then(|index| dispatches.get(index as usize));
        if let (Some(dispatch), Some(pc)) = (dispatch, row.pc) {
            *parts.entry((dispatch.module.0, Pc(pc))).or_default() += row.weight;
        }
    }
    parts.values_mut().for_each(|part| *part /= all);
    Ok(parts)
}

fn line(lines: Option<&dyn SourceLines>, pc: Pc) -> String {
    let line = lines.and_then(|lines| lines.lookup(pc));
    line.map(|line| format!("{}:{}", line.file, line.line)).unwrap_or_default()
}

/// Returns `true` if a fault is used for ranking when faults are held out.
pub fn is_ranked(index: u64) -> bool {
    index.is_multiple_of(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format_tests::csv_text;

    #[test]
    fn instruction_table_columns_are_fixed() {
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
