//! Instructions by what executing them twice brings and costs.

use super::code::{Plain, Version};
use super::error::HardeningError;
use crate::campaign::Campaign;
use crate::error::CampaignError;
use flipwave_analysis::{Outcome, read_rows};
use flipwave_codeobj::LineTable;
use flipwave_harden::{Candidate, Candidates};
use flipwave_isa::Pc;
use flipwave_tools::{InstructionCount, Options, measure};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
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
    /// Instructions that each takes more when it is executed twice, without waits.
    pub instructions: u32,
    /// Which part of the SDC faults at it are the cause of, 0 to 1.
    pub part_of_sdc: f64,
    /// The smallest budget by which it is executed twice.
    pub budget: Option<f64>,
}

impl RankedInstruction {
    /// Instructions that it takes more in a run.
    fn cost(&self) -> u64 {
        self.executions * u64::from(self.instructions)
    }

    /// What it brings for what it costs.
    fn merit(&self) -> f64 {
        self.part_of_sdc / self.cost().max(1) as f64
    }
}

/// The instructions of a program in the order in which budgets buy them.
pub(super) struct Ranking {
    ranked: Vec<((u32, Pc), RankedInstruction)>,
    /// How many instructions of its code the program executes.
    executed: usize,
}

impl Ranking {
    /// Ranks the instructions of a program by the rows of its campaign.
    ///
    /// # Errors
    /// [`CampaignError`].
    pub fn new(campaign: &Campaign, plain: &Plain, rows: &Path) -> Result<Ranking, CampaignError> {
        let executed = executions(campaign, plain)?;
        let sdc = parts_of_sdc(plain, rows)?;
        let mut ranked = Vec::new();
        for (number, (module, object)) in (0..).zip(plain.objects()) {
            let candidates = Candidates::of(object).map_err(HardeningError::from)?;
            let lines = object.lines().unwrap_or_default();
            for (pc, candidate) in candidates.instructions {
                let Some((function, executions)) = executed.get(&(module, pc)) else { continue };
                let Candidate { text, instructions } = candidate;
                ranked.push((
                    (module, pc),
                    RankedInstruction {
                        module: number,
                        function: function.clone(),
                        pc: pc.to_string(),
                        line: line(&lines, pc),
                        instruction: text,
                        executions: *executions,
                        instructions,
                        part_of_sdc: sdc.get(&(module, pc)).copied().unwrap_or(0.0),
                        budget: None,
                    },
                ));
            }
        }
        // What brings as much comes in the order of the code.
        ranked.sort_by(|(at, one), (other_at, other)| {
            other.merit().total_cmp(&one.merit()).then(at.cmp(other_at))
        });
        if ranked.iter().all(|(_, own)| own.part_of_sdc == 0.0) {
            return Err(HardeningError::NothingToProtect.into());
        }
        Ok(Ranking { ranked, executed: executed.len() })
    }

    /// How many instructions of its code the program executes.
    pub fn executed(&self) -> usize {
        self.executed
    }

    /// The instructions that can be executed twice, those that are bought first before the others.
    pub fn instructions(self) -> Vec<RankedInstruction> {
        self.ranked.into_iter().map(|(_, own)| own).collect()
    }

    /// The version of the program that a budget buys. What it costs is measured: where waits and what counts
    /// at the end take more than is left, fewer instructions are bought.
    ///
    /// # Errors
    /// [`HardeningError::TooSmall`], and those of making it.
    pub fn buy(
        &mut self,
        campaign: &Campaign,
        plain: &Plain,
        budget: f64,
        compares: bool,
    ) -> Result<Version, CampaignError> {
        let all = plain.instructions();
        let most = (all as f64 * (budget - 1.0)) as u64;
        let mut limit = most;
        let mut least = f64::INFINITY;
        loop {
            let chosen = self.choose(limit);
            let Some(spent) = chosen.spent else {
                return Err(HardeningError::TooSmall { budget, least: least.min(self.least(all)) }.into());
            };
            let version = plain.hardened(campaign, &chosen.instructions, compares)?;
            let more = version.instructions.saturating_sub(all);
            if more <= most {
                self.note(&chosen.instructions, budget);
                return Ok(version);
            }
            least = least.min(version.instructions as f64 / all as f64);
            // At least as much less as it was too much, and one instruction less in any case.
            limit = spent.saturating_sub((more - most).max(1));
        }
    }

    /// What the cheapest instruction costs that brings something, those of the whole program being 1.
    fn least(&self, all: u64) -> f64 {
        let useful = self.ranked.iter().filter(|(_, own)| own.part_of_sdc > 0.0);
        let cheapest = useful.map(|(_, own)| own.cost()).min().unwrap_or(0);
        1.0 + cheapest as f64 / all.max(1) as f64
    }

    /// The instructions that bring most for at most so many instructions more.
    fn choose(&self, limit: u64) -> Chosen {
        let mut chosen = Chosen::default();
        for ((module, pc), own) in &self.ranked {
            let spent = chosen.spent.unwrap_or(0) + own.cost();
            if own.part_of_sdc > 0.0 && spent <= limit {
                chosen.spent = Some(spent);
                chosen.instructions.entry(*module).or_default().insert(*pc);
            }
        }
        chosen
    }

    fn note(&mut self, bought: &BTreeMap<u32, BTreeSet<Pc>>, budget: f64) {
        for ((module, pc), own) in &mut self.ranked {
            if bought.get(module).is_some_and(|own| own.contains(pc)) {
                own.budget = Some(own.budget.map_or(budget, |known| known.min(budget)));
            }
        }
    }
}

/// Instructions that are bought.
#[derive(Default)]
struct Chosen {
    instructions: BTreeMap<u32, BTreeSet<Pc>>,
    /// What they take more; nothing where there are none.
    spent: Option<u64>,
}

/// The function of each instruction that the program executes, and how often waves do.
fn executions(
    campaign: &Campaign,
    plain: &Plain,
) -> Result<BTreeMap<(u32, Pc), (String, u64)>, CampaignError> {
    let workload = &plain.prepared.workload;
    let dispatches = &workload.program.dispatches;
    let mut device = workload.device.clone();
    let found = measure::<InstructionCount, _>(
        &mut flipwave_injector::Attended { device: &mut device, attendance: &campaign.attendance },
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
fn parts_of_sdc(plain: &Plain, rows: &Path) -> Result<BTreeMap<(u32, Pc), f64>, CampaignError> {
    let failed = |reason: String| HardeningError::Rows { file: rows.display().to_string(), reason };
    let table = File::open(rows).map_err(|error| failed(error.to_string()))?;
    let table = read_rows(table).map_err(|error| failed(error.to_string()))?;
    let dispatches = &plain.prepared.workload.program.dispatches;
    let mut parts: BTreeMap<(u32, Pc), f64> = BTreeMap::new();
    let mut all = 0.0;
    for row in table.iter().filter(|row| row.outcome == Outcome::Sdc) {
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
