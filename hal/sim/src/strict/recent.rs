//! The last instructions of a wave, as far back as manual hazards reach.

use super::facts::Facts;
use super::violation::Finding;
use flipwave_isa::hazard::{
    Hazard, HazardViolation, LOOKBACK_WAIT_STATES, MAX_WAIT_STATES, Mitigation, Preceding,
    violations,
};
use std::collections::VecDeque;
use std::sync::Arc;

/// Number of instructions to remember if a hazard is not ended by wait states.
const REMEMBERED: usize = LOOKBACK_WAIT_STATES as usize;

/// Executed instructions, the latest first, each with the total of wait states at its end.
#[derive(Debug)]
pub struct Recent {
    executed: VecDeque<(Arc<Facts>, u64)>,
    clock: u64,
    /// Number of instructions that are remembered regardless of their distance.
    least: usize,
}

impl Recent {
    /// Creates an empty history.
    pub fn new(families: &[&'static [Hazard]]) -> Recent {
        let is_bounded =
            families.iter().copied().flatten().all(|hazard| hazard.max_wait_states().is_some());
        let least = if is_bounded { 0 } else { REMEMBERED };
        Recent { executed: VecDeque::new(), clock: 0, least }
    }

    /// Returns the worst hazard that affects an instruction.
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

    /// Returns `true` if a trigger of one of the instruction's hazards is near enough.
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

    /// Records the execution of an instruction.
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
        // LLVM's hazard recognizer looks back at most to the start of a function.
        if facts.inst.leaves_function() {
            self.executed.clear();
        } else {
            self.executed.push_front((Arc::clone(facts), self.clock));
        }
    }
}
