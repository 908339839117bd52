//! The ways through the inserted code of one seam.

use super::content::Content;
use super::state::SymbolicState;
use super::{ComputedJump, End, execute, range_of};
use crate::checker::Question;
use crate::checker::code::{ClaimedCode, ClaimedInst, Owner};
use crate::checker::finding::{CheckRule, Finding};
use crate::checker::originals::Seam;
use flipwave_isa::{Inst, Opcode, Register, RegisterRange, RegisterSet, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A place of a seam: an address, and where the routines that are under way return to.
type Node = (u64, Vec<u64>);

/// Routines in routines beyond this are not followed.
const DEEPEST_CALL: usize = 8;

/// A walk through one seam.
pub struct SeamWalk<'a> {
    /// What the checker is asked.
    pub question: &'a Question<'a>,
    /// The new code.
    pub code: &'a ClaimedCode,
    /// The seam.
    pub seam: Seam,
    /// Where it may end.
    pub ends: &'a [End],
}

impl<'a> SeamWalk<'a> {
    /// Follows all ways from the beginning; gives the ends that were reached with what is known
    /// there.
    pub fn run(
        &self,
        state: SymbolicState,
        jumps: &mut BTreeSet<ComputedJump>,
        findings: &mut Vec<Finding>,
    ) -> Vec<(&'a End, SymbolicState)> {
        let mut known: BTreeMap<Node, SymbolicState> = BTreeMap::new();
        let mut waiting = vec![((self.seam.start, Vec::new()), state)];
        // Where computed jumps go, beside the targets of branches.
        let mut jumped_to: BTreeSet<u64> = BTreeSet::new();
        let mut reached: Vec<(&End, SymbolicState)> = Vec::new();
        while let Some((node, state)) = waiting.pop() {
            let (pc, returns) = &node;
            let end = self.ends.iter().find(|end| end.pc == *pc);
            if let Some(end) = end.filter(|_| returns.is_empty()) {
                match reached.iter_mut().find(|(own, _)| std::ptr::eq(*own, end)) {
                    Some((_, known)) => _ = known.join(&state),
                    None => reached.push((end, state)),
                }
                continue;
            }
            let item = match self.code.at(*pc) {
                Some(item) if item.is_inserted() => item,
                other => {
                    findings.push(self.astray(*pc, other));
                    return Vec::new();
                }
            };
            // Where two ways may meet, what is known is what is known on both.
            let state = if item.is_target || jumped_to.contains(pc) {
                match known.get_mut(&node) {
                    Some(old) => {
                        if !old.join(&state) {
                            continue;
                        }
                        old.clone()
                    }
                    None => {
                        known.insert(node.clone(), state.clone());
                        state
                    }
                }
            } else {
                state
            };
            match self.step(item, node.1, state) {
                Ok(next) => {
                    if item.facts.opcode() == Opcode::SSetpc || item.facts.inst.flags.call {
                        jumps.extend(next.iter().map(|((to, _), _)| (item.pc, *to)));
                        jumped_to.extend(next.iter().map(|((to, _), _)| *to));
                    }
                    waiting.extend(next);
                }
                Err(what) => {
                    let finding = Finding::at(CheckRule::Control, item.pc, what);
                    findings.push(finding.of(self.question.old(self.seam.to)));
                    return Vec::new();
                }
            }
        }
        reached
    }

    /// The finding where control has left the code that it may be in.
    fn astray(&self, pc: u64, found: Option<&ClaimedInst>) -> Finding {
        let old = self.question.old(self.seam.to);
        let what = match found.map(|item| item.owner) {
            Some(Owner::Original(other)) => {
                let other = self.question.old(other);
                format!("control comes to the original instruction of {other} instead")
            }
            _ => format!("control from {:#x} comes to what is no claimed code", self.seam.start),
        };
        Finding::at(CheckRule::Control, pc, what).of(old)
    }

    /// Executes an instruction; gives where control may be then.
    fn step(
        &self,
        item: &ClaimedInst,
        mut returns: Vec<u64>,
        mut state: SymbolicState,
    ) -> Result<Vec<(Node, SymbolicState)>, &'static str> {
        let facts = &item.facts;
        let pair = |state: &SymbolicState| jump_target(&facts.inst, state);
        if facts.opcode() == Opcode::SSetpc {
            let target = pair(&state).ok_or("control goes to an address that is not known")?;
            if returns.last() == Some(&target) {
                returns.pop();
            }
            return Ok(self.go(item, vec![target], returns, state));
        }
        if facts.inst.flags.call {
            let target = match facts.target(item.pc) {
                Some(target) => target,
                None => pair(&state).ok_or("a call of an address that is not known")?,
            };
            if returns.len() >= DEEPEST_CALL {
                return Err("routines call each other too deeply");
            }
            execute::execute(facts, item.pc, &mut state)?;
            returns.push(item.end());
            return Ok(vec![((target, returns), state)]);
        }
        execute::execute(facts, item.pc, &mut state)?;
        let next = [facts.target(item.pc), facts.falls_through.then_some(item.end())];
        Ok(self.go(item, next.into_iter().flatten().collect(), returns, state))
    }

    /// Goes on from an instruction. Outside the range, what the range was asked to change is what
    /// is to be kept.
    fn go(
        &self,
        from: &ClaimedInst,
        to: Vec<u64>,
        returns: Vec<u64>,
        state: SymbolicState,
    ) -> Vec<(Node, SymbolicState)> {
        let range = range_of(from.owner).map(|range| &self.question.claims.inserted[range]);
        let leaves =
            |target: u64| range.filter(|own| returns.is_empty() && !own.range.contains(&target));
        let last = to.len().saturating_sub(1);
        let mut next = Vec::with_capacity(to.len());
        let mut rest = Some(state);
        for (at, target) in to.into_iter().enumerate() {
            let own = if at == last { rest.take() } else { rest.clone() };
            let Some(mut state) = own else { break };
            if let Some(range) = leaves(target) {
                let changes = range.changes.union(self.asked(range.at));
                if !changes.is_empty() {
                    state.accept(changes);
                }
            }
            next.push(((target, returns.clone()), state));
        }
        next
    }

    /// What the instruction wrote that inserted code stands for.
    fn asked(&self, at: Option<crate::flow::InstIndex>) -> RegisterSet {
        let replaced = at.filter(|at| self.question.place(*at).is_none());
        let inst = replaced.map(|at| &self.question.program.instructions[at]);
        inst.map(|inst| inst.writes.iter().copied().collect()).unwrap_or_default()
    }
}

/// The code address in the register pair that a jump names as its source.
fn jump_target(inst: &Inst, state: &SymbolicState) -> Option<u64> {
    let pair = inst.sources().find_map(|operand| match operand.value {
        Value::Register(range @ RegisterRange { words: 2, .. }) => Some(range),
        _ => None,
    })?;
    let half = |word| pair.first.offset(word).map(|register: Register| state.scalar(register));
    match (half(0)?, half(1)?) {
        (Content::AddressLow(low), Content::AddressHigh(high)) if low == high => Some(low),
        _ => None,
    }
}
