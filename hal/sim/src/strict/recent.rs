//! The instructions that a wave executed last, as far back as manual hazards reach.

use super::facts::Facts;
use super::violation::Finding;
use flipwave_isa::hazard::{
    Hazard, HazardViolation, LOOKBACK_WAIT_STATES, MAX_WAIT_STATES, Mitigation, Preceding,
    violations,
};
use std::collections::VecDeque;
use std::sync::Arc;

/// Instructions that are remembered where there are hazards that wait states do not end.
const REMEMBERED: usize = LOOKBACK_WAIT_STATES as usize;

/// Instructions executed, the nearest first, each with the wait states counted up to its end.
#[derive(Debug)]
pub struct Recent {
    executed: VecDeque<(Arc<Facts>, u64)>,
    clock: u64,
    /// Instructions that are remembered however long ago they were executed.
    least: usize,
}

impl Recent {
    /// Nothing is executed yet.
    pub fn new(families: &[&'static [Hazard]]) -> Recent {
        let is_bounded =
            families.iter().copied().flatten().all(|own| own.max_wait_states().is_some());
        let least = if is_bounded { 0 } else { REMEMBERED };
        Recent { executed: VecDeque::new(), clock: 0, least }
    }

    /// The worst hazard that an instruction runs into.
    pub fn check(&self, facts: &Facts, families: &[&'static [Hazard]]) -> Option<Finding> {
        if !self.may_run_into(facts, families) {
            return None;
        }
        let before: Vec<Preceding<'_>> = self
            .executed
            .iter()
            .map(|(facts, end)| Preceding {
                inst: &facts.inst,
                distance: u8::try_from(self.clock - end).unwrap_or(u8::MAX),
            })
            .collect();
        let missing = |breach: &HazardViolation| match breach.needed {
            Mitigation::WaitStates(states) => {
                states.saturating_sub(before[breach.trigger].distance)
            }
            Mitigation::Instruction(_) => u8::MAX,
        };
        let worst = families
            .iter()
            .flat_map(|family| violations(family, &before, &facts.inst))
            .max_by_key(missing)?;
        Some(Finding::TooClose {
            hazard: worst.hazard,
            distance: before[worst.trigger].distance,
            trigger: self.executed[worst.trigger].0.instruction(),
            registers: worst.registers,
            needed: worst.needed,
        })
    }

    /// Whether a trigger of one of the instruction's hazards is near enough.
    fn may_run_into(&self, facts: &Facts, families: &[&'static [Hazard]]) -> bool {
        if facts.runs_into == 0 {
            return false;
        }
        let hazards = families.iter().copied().flatten().enumerate();
        let mut possible = hazards.filter(|(number, _)| facts.runs_into >> number & 1 != 0);
        possible.any(|(number, hazard)| {
            self.executed
                .iter()
                .take_while(|(_, end)| {
                    hazard.max_wait_states().is_none_or(|reach| self.clock - end < reach.into())
                })
                .any(|(trigger, _)| trigger.triggers >> number & 1 != 0)
        })
    }

    /// Notes that an instruction is executed.
    pub fn push(&mut self, facts: &Arc<Facts>) {
        self.clock += u64::from(facts.wait_states);
        while self.executed.len() > self.least
            && self
                .executed
                .back()
                .is_some_and(|(_, end)| self.clock - end >= MAX_WAIT_STATES.into())
        {
            self.executed.pop_back();
        }
        // LLVM's recognizer looks no further back than the beginning of a function.
        if facts.inst.leaves_function() {
            self.executed.clear();
        } else {
            self.executed.push_front((Arc::clone(facts), self.clock));
        }
    }
}
